#include "model/golden_output.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/rng.h"
#include "model/golden_folder.h"
#include "model/golden_writer.h"

namespace deepinfer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

int32_t ArgMax(std::span<const float> row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

// BOS and then any id but the image token, which means something only inside an image span.
std::vector<int32_t> RandomPrompt(const ModelConfig& config, uint64_t seed, int32_t length) {
  SeededRng rng(seed);
  std::vector<int32_t> ids = {config.bos_token_id};
  while (std::ssize(ids) < length) {
    const auto id = static_cast<int32_t>(rng.Uniform(static_cast<uint64_t>(config.vocab_size)));
    if (id != config.image_token_id) ids.push_back(id);
  }
  return ids;
}

Status CheckPrompt(const ModelConfig& config, const std::vector<int32_t>& prompt) {
  if (std::ssize(prompt) < kMinGoldenPrompt) {
    return InvalidArgument("prompt: expected at least ", kMinGoldenPrompt, " ids, found ",
                           prompt.size());
  }
  for (const int32_t id : prompt) {
    if (id >= 0 && id < config.vocab_size) continue;
    return InvalidArgument("prompt: id ", id, " is outside the vocabulary of ", config.vocab_size);
  }
  return OkStatus();
}

// Feeds every layer from a finished recording, in a model that selects one entry more than the
// recorded one: the score behind the last selected entry gives the gap.
class GapRecorder : public ForwardObserver {
 public:
  // config: of the recorded model. Both outlive the object.
  GapRecorder(const ModelConfig& config, TensorSet& recorded)
      : config_(config), recorded_(recorded) {}

  void Begin(int32_t step) { step_ = step; }  // < 0 = the prompt
  bool wants_details() const override { return true; }

  void LayerInput(int32_t layer, const RowSet& rows, bf16* streams, float* pre) override {
    const int64_t count = rows.num_rows();
    const int64_t row =
        step_ < 0 ? layer * count : int64_t{step_} * (config_.num_hidden_layers + 1) + layer;
    const std::string prefix = step_ < 0 ? "" : "decode_";
    const int64_t width = int64_t{config_.hc_mult} * config_.hidden_size;
    std::copy_n(recorded_.Get<bf16>(prefix + "layer_X").data() + row * width, count * width,
                streams);
    std::copy_n(recorded_.Get<float>(prefix + "layer_pre").data() + row * config_.hc_mult,
                count * config_.hc_mult, pre);
  }

  void Selection(int32_t layer, const RowSet& rows, int32_t*, const float* scores) override {
    const int64_t width = config_.index_topk + 1;
    std::vector<float> gaps;
    for (int64_t t = 0; t < rows.num_rows(); ++t) {
      std::vector<float> row(scores + t * width, scores + (t + 1) * width);
      std::sort(row.begin(), row.end(), std::greater<>());
      const float next = row.back();  // -infinity: nothing was left to select
      gaps.push_back(next == -kInfinity ? kInfinity : row[row.size() - 2] - next);
    }
    recorded_.Put<float>(StrCat("official.selgap_", step_ < 0 ? "prompt." : "decode.", layer),
                         std::max(step_, 0), gaps);
  }

 private:
  const ModelConfig& config_;
  TensorSet& recorded_;
  int32_t step_ = -1;
};

class GoldenRecording {
 public:
  GoldenRecording(const GoldenFolder& folder, const Backend& backend, std::vector<int32_t> prompt)
      : folder_(folder),
        config_(folder.checkpoint->config()),
        backend_(backend),
        prompt_(std::move(prompt)),
        length_(static_cast<int32_t>(prompt_.size())),
        writer_(config_, length_),
        tensors_(writer_.tensors()) {}

  // Everything of the layout.
  TensorSet& Run() {
    Model model = MakeModel(config_);
    tensors_.Put<int32_t>("prompt_ids", 0, prompt_);
    PutEarlySwaRows(model);
    std::vector<int32_t> tokens = prompt_;
    tokens.resize(static_cast<size_t>(length_ + kGoldenDecodeSteps) + 1);
    GoldenSequence sequence(model, std::move(tokens));
    RunPrompt(sequence);
    for (int32_t step = 0; step < kGoldenDecodeSteps; ++step) {
      RunStep(sequence, step);
      if (config_.num_nextn_predict_layers > 0) PutDraft(model, sequence, step);
    }
    PutLastRecords(sequence);
    PutGaps(sequence.tokens);
    return tensors_;
  }

 private:
  Model MakeModel(const ModelConfig& config) const {
    return Model(config, folder_.packed->weights(), folder_.classes, {.backend = backend_});
  }

  void PutToken(GoldenSequence& sequence, int32_t step, std::span<const float> logits) {
    const int32_t token = ArgMax(logits);
    sequence.tokens[static_cast<size_t>(length_ + step)] = token;
    tensors_.Put<int32_t>("official.decode_tokens", step, std::span(&token, 1));
  }

  void RunPrompt(GoldenSequence& sequence) {
    writer_.Begin(-1);
    const std::span<const float> logits = sequence.Run(0, length_, &writer_);
    tensors_.Put("official.prompt_logits", 0, logits);
    PutToken(sequence, 0, logits.last(static_cast<size_t>(config_.vocab_size)));
    for (const int32_t layer : config_.kv_source_layer_ids) {
      PutEntries(sequence, layer, "", 0, kGoldenFirstEntries);
    }
    for (int32_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      PutRow("swa_row_last", layer, sequence.SwaRow(layer, length_ - 1));
    }
  }

  void RunStep(GoldenSequence& sequence, int32_t step) {
    writer_.Begin(step);
    const int32_t position = length_ + step;
    const std::span<const float> logits = sequence.Run(position, position + 1, &writer_);
    tensors_.Put("official.decode_logits", int64_t{step} * config_.vocab_size, logits);
    PutToken(sequence, step + 1, logits);
  }

  void PutRow(const std::string& name, int64_t row, const std::vector<float>& values) {
    tensors_.Put<float>(name, row * std::ssize(values), values);
  }

  // Row 7 of every window, from a pass so short that the rings still hold it.
  void PutEarlySwaRows(Model& model) {
    GoldenSequence sequence(model, {prompt_.begin(), prompt_.begin() + 8});
    sequence.Run(0, 8, nullptr);
    for (int32_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      PutRow("swa_row7", layer, sequence.SwaRow(layer, 7));
    }
  }

  void PutEntries(const GoldenSequence& sequence, int32_t layer, const std::string& suffix,
                  int32_t first, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
      PutRow(StrCat("global_kv", suffix, ".", layer), i, sequence.GlobalEntry(layer, first + i));
      PutRow(StrCat("index_key", suffix, ".", layer), i, sequence.IndexKey(layer, first + i));
    }
  }

  void PutLastRecords(const GoldenSequence& sequence) {
    const int32_t end = length_ + kGoldenDecodeSteps;
    for (const int32_t layer : config_.kv_source_layer_ids) {
      PutEntries(sequence, layer, "_last", end / config_.ratio(layer) - 2, 2);
    }
    for (int32_t i = 0; i < config_.num_nextn_predict_layers; ++i) {
      PutRow("draft_kv_row_last", i, sequence.SwaRow(config_.num_hidden_layers + i, end - 1));
    }
  }

  // The proposal after a decode step, each token by argmax.
  void PutDraft(Model& model, const GoldenSequence& sequence, int32_t step) {
    const int32_t position = length_ + step + 1, block = config_.dspark_block_size;
    const DraftRequest request = {&sequence.kv(), sequence.tokens[static_cast<size_t>(position)],
                                  position};
    const auto choose = [&](int32_t, int32_t k, std::span<const float> logits) {
      PutDraftLogits(step, k, logits);
      return ArgMax(logits);
    };
    const Draft draft = model.Propose(std::span(&request, 1), choose).value().front();
    tensors_.Put<int32_t>("draft_ids", int64_t{step} * block, draft.tokens);
    tensors_.Put<float>("draft_conf", int64_t{step} * block, draft.confidences);
  }

  void PutDraftLogits(int32_t step, int32_t k, std::span<const float> logits) {
    std::vector<int32_t> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
      return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
    });
    ids.resize(kGoldenDraftTop);
    std::vector<float> values;
    for (const int32_t id : ids) values.push_back(logits[static_cast<size_t>(id)]);
    const int64_t row = int64_t{step} * config_.dspark_block_size + k;
    tensors_.Put<int32_t>("draft_top5_ids", row * kGoldenDraftTop, ids);
    tensors_.Put<float>("draft_top5_vals", row * kGoldenDraftTop, values);

    const auto* const full =
        std::find(std::begin(kGoldenDraftLogitSteps), std::end(kGoldenDraftLogitSteps), step);
    if (full == std::end(kGoldenDraftLogitSteps)) return;
    const int64_t full_row = (full - kGoldenDraftLogitSteps) * config_.dspark_block_size + k;
    tensors_.Put("draft_logits_at_0_9_23", full_row * config_.vocab_size, logits);
  }

  // A second run of the same rows.
  void PutGaps(const std::vector<int32_t>& tokens) {
    ModelConfig wider = config_;
    ++wider.index_topk;
    Model model = MakeModel(wider);
    GoldenSequence sequence(model, tokens);
    GapRecorder gaps(config_, tensors_);
    gaps.Begin(-1);
    sequence.Run(0, length_, &gaps);
    for (int32_t step = 0; step < kGoldenDecodeSteps; ++step) {
      gaps.Begin(step);
      sequence.Run(length_ + step, length_ + step + 1, &gaps);
    }
  }

  const GoldenFolder& folder_;
  const ModelConfig& config_;
  const Backend backend_;
  const std::vector<int32_t> prompt_;
  const int32_t length_;
  GoldenWriter writer_;
  TensorSet& tensors_;
};

}  // namespace

StatusOr<int64_t> RecordGolden(Disk& disk, const std::string& golden_dir,
                               const GoldenRecordOptions& options) {
  const std::string path = golden_dir + "/outputs.safetensors";
  if (disk.IsFile(path)) {
    return FailedPrecondition(path, ": is there already; remove it or record into another folder");
  }
  DI_ASSIGN_OR_RETURN(
      const GoldenFolder folder,
      OpenGoldenFolder(disk, golden_dir, options.work_dir, options.backend.threads));
  const ModelConfig& config = folder.checkpoint->config();
  std::vector<int32_t> prompt = options.prompt;
  if (prompt.empty()) prompt = RandomPrompt(config, options.seed, options.num_prompt_tokens);
  DI_RETURN_IF_ERROR(CheckPrompt(config, prompt));
  GoldenRecording recording(folder, options.backend, std::move(prompt));
  const TensorSet& tensors = recording.Run();
  DI_RETURN_IF_ERROR(tensors.Write(disk, path));
  return static_cast<int64_t>(tensors.size());
}

}  // namespace deepinfer
