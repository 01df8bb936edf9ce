#include "model/golden_check.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "model/golden_data.h"
#include "model/golden_folder.h"
#include "model/golden_recorder.h"
#include "model/json_object.h"

namespace deepinfer {
namespace {

constexpr float kDraftGap = 0.2f;
constexpr double kPre = 2e-6;  // mHC coefficients from equal streams

double RelativeRms(std::span<const float> got, std::span<const float> want) {
  double diff = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(want[i]);
    diff += d * d;
    norm += static_cast<double>(want[i]) * static_cast<double>(want[i]);
  }
  return Magnitude(std::sqrt(diff / norm));
}

int32_t ArgMax(std::span<const float> row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

class GoldenRun {
 public:
  GoldenRun(const ModelConfig& config, const ModelWeights& weights, std::vector<int32_t> classes,
            const GoldenData& data, const GoldenOptions& options, const GoldenLimits& limits,
            GoldenReport& report)
      : config_(config),
        weights_(weights),
        classes_(std::move(classes)),
        data_(data),
        options_(options),
        limits_(limits),
        report_(report) {}

  void All() {
    report_.not_run = {"vision patches", "vision tower", "aligner", "resize plan"};
    if (data_.Has("layer_X")) {
      LayerByLayer();
    } else {
      report_.not_run.push_back("layer by layer (no stored streams)");
    }
    if (options_.layers_only) return;
    EndToEnd("official", IndexScores::kOfficial, GoldenFeed::kSelections);
    EndToEnd("official", IndexScores::kOfficial, GoldenFeed::kNothing);
    if (data_.Has("f32idx.decode_logits")) {
      EndToEnd("f32idx", IndexScores::kF32, GoldenFeed::kNothing);
    }
    if (config_.num_nextn_predict_layers > 0) DraftAlone();
    if (data_.Has("vl.logits") && config_.has_vision) ImageSpan();
  }

 private:
  Model MakeModel(IndexScores scores) const {
    return Model(config_, weights_, classes_,
                 {.backend = options_.backend, .index_scores = scores});
  }

  std::vector<int32_t> PromptAnd(const std::string& prompt, const std::string& decode) const {
    const auto p = data_.Get<int32_t>(prompt), d = data_.Get<int32_t>(decode);
    std::vector<int32_t> tokens(p.begin(), p.end());
    tokens.insert(tokens.end(), d.begin(), d.end());
    return tokens;
  }
  int32_t PromptLength() const { return static_cast<int32_t>(data_.Shape("prompt_ids")[0]); }
  int32_t DecodeSteps() const {
    return static_cast<int32_t>(data_.Shape("official.decode_logits")[0]);
  }

  void AtMost(std::string name, double measured, double limit) {
    report_.figures.push_back({std::move(name), measured, limit, false});
  }
  void AtLeast(std::string name, double measured, double limit) {
    report_.figures.push_back({std::move(name), measured, limit, true});
  }
  void Fractions(const std::string& name, const std::map<int32_t, FractionEqual>& layers,
                 double limit) {
    for (const auto& [layer, figure] : layers) {
      AtLeast(StrCat(name, ", layer ", layer, ", bit-equal"), figure.value(), limit);
    }
  }

  void LayerByLayer() {
    Model model = MakeModel(IndexScores::kOfficial);
    GoldenSequence sequence(model, PromptAnd("prompt_ids", "official.decode_tokens"));
    GoldenRecorder recorder(config_, data_, GoldenFeed::kStreams, "official");
    const int32_t length = PromptLength();
    recorder.Begin("", -1);
    sequence.Run(0, length, &recorder);
    Records(sequence, length);
    for (int32_t step = 0; step < DecodeSteps(); ++step) {
      recorder.Begin("", step);
      sequence.Run(length + step, length + step + 1, &recorder);
    }
    LastRecords(sequence, length + DecodeSteps());

    AtMost("engram rows, different", static_cast<double>(recorder.engram_row_mismatches), 0);
    if (recorder.engram_out.total > 0) {
      AtLeast("layer by layer, after engram, bit-equal", recorder.engram_out.value(),
              limits_.layers);
    }
    Fractions("layer by layer, after attention", recorder.prompt_attention, limits_.layers);
    Fractions("layer by layer, after experts", recorder.prompt_experts, limits_.layers);
    Fractions("layer by layer, decode steps", recorder.decode_layers, limits_.decode_layers);
    if (!recorder.prompt_attention.empty())
      AtMost("pre after attention, max error", recorder.pre_error, kPre);
    AtMost("expert routes, different rows", static_cast<double>(recorder.route_mismatches), 0);
    AtMost(StrCat("selections, different rows of ", recorder.selection_rows, " (",
                  recorder.selection_ties, " more are near ties)"),
           static_cast<double>(recorder.selection_mismatches), limits_.selections);
    AtMost("candidate blocks, different rows", static_cast<double>(recorder.candidate_mismatches),
           0);
    if (recorder.main_hidden_out.total > 0) {
      AtLeast("main hidden, bit-equal", recorder.main_hidden_out.value(), limits_.layers);
    }
  }

  // Number of decoded values that differ from a stored row.
  static int64_t Different(const std::vector<float>& got, std::span<const float> want) {
    int64_t count = 0;
    for (size_t i = 0; i < want.size(); ++i) count += got[i] != want[i] ? 1 : 0;
    return count;
  }

  static int64_t DifferentSwa(const GoldenSequence& sequence, int32_t ring, int32_t position,
                              std::span<const float> want) {
    return Different(sequence.SwaRow(ring, position), want);
  }

  static int64_t DifferentEntry(const GoldenSequence& sequence, int32_t layer, int32_t entry,
                                bool index, std::span<const float> want) {
    return Different(index ? sequence.IndexKey(layer, entry) : sequence.GlobalEntry(layer, entry),
                     want);
  }

  // Stored rows [n, dim] against entries first, first + 1, ...
  int64_t DifferentEntries(const GoldenSequence& sequence, int32_t layer, const std::string& name,
                           bool index, int32_t first) const {
    const auto stored = data_.Get<float>(name);
    const auto dim = static_cast<size_t>(index ? config_.index_head_dim : config_.head_dim);
    int64_t count = 0;
    for (size_t i = 0; i * dim < stored.size(); ++i) {
      count += DifferentEntry(sequence, layer, first + static_cast<int32_t>(i), index,
                              stored.subspan(i * dim, dim));
    }
    return count;
  }

  // KV made from the stored streams of the prompt. A ring longer than its window still holds the
  // rows asked for only if the prompt is short; otherwise the row is gone and not counted.
  void Records(const GoldenSequence& sequence, int32_t length) {
    int64_t global = 0, index = 0, swa = 0;
    for (const int32_t layer : config_.kv_source_layer_ids) {
      global += DifferentEntries(sequence, layer, StrCat("global_kv.", layer), false, 0);
      index += DifferentEntries(sequence, layer, StrCat("index_key.", layer), true, 0);
    }
    const auto dim = static_cast<size_t>(config_.head_dim);
    const auto seventh = data_.Get<float>("swa_row7"), last = data_.Get<float>("swa_row_last");
    for (int32_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      const size_t at = static_cast<size_t>(layer) * dim;
      if (length - sequence.kv().shape().ring_rows <= 7) {
        swa += DifferentSwa(sequence, layer, 7, seventh.subspan(at, dim));
      }
      swa += DifferentSwa(sequence, layer, length - 1, last.subspan(at, dim));
    }
    AtMost("global KV, first entries, different values", static_cast<double>(global),
           limits_.records);
    AtMost("index keys, first entries, different values", static_cast<double>(index),
           limits_.records);
    AtMost("SWA rows, different values", static_cast<double>(swa), limits_.records);
  }

  void LastRecords(const GoldenSequence& sequence, int32_t length) {
    int64_t global = 0, index = 0;
    for (const int32_t layer : config_.kv_source_layer_ids) {
      const int32_t entries = length / config_.ratio(layer);
      global +=
          DifferentEntries(sequence, layer, StrCat("global_kv_last.", layer), false, entries - 2);
      index +=
          DifferentEntries(sequence, layer, StrCat("index_key_last.", layer), true, entries - 2);
    }
    AtMost("global KV after decode, different values", static_cast<double>(global),
           limits_.records);
    AtMost("index keys after decode, different values", static_cast<double>(index),
           limits_.records);
    if (config_.num_nextn_predict_layers == 0) return;
    const auto stored = data_.Get<float>("draft_kv_row_last");
    const auto dim = static_cast<size_t>(config_.head_dim);
    int64_t draft = 0;
    for (int32_t i = 0; i < config_.num_nextn_predict_layers; ++i) {
      draft += DifferentSwa(sequence, config_.num_hidden_layers + i, length - 1,
                            stored.subspan(static_cast<size_t>(i) * dim, dim));
    }
    AtMost("draft KV rows, different values", static_cast<double>(draft), limits_.records);
  }

  // Rows whose stored top-2 gap is clear must have the same argmax.
  int64_t WrongArgmax(std::span<const float> got, std::span<const float> want, double limit) const {
    const auto vocab = static_cast<size_t>(config_.vocab_size);
    double square = 0;
    for (const float x : want) square += static_cast<double>(x) * static_cast<double>(x);
    const double clear = 4 * limit * std::sqrt(square / static_cast<double>(want.size()));
    int64_t wrong = 0;
    for (size_t row = 0; row * vocab < want.size(); ++row) {
      const auto w = want.subspan(row * vocab, vocab);
      const int32_t best = ArgMax(w);
      float second = -HUGE_VALF;
      for (size_t v = 0; v < vocab; ++v) {
        if (static_cast<int32_t>(v) != best) second = std::max(second, w[v]);
      }
      if (w[static_cast<size_t>(best)] - second <= clear) continue;
      wrong += ArgMax(got.subspan(row * vocab, vocab)) != best ? 1 : 0;
    }
    return wrong;
  }

  void CompareLogits(const std::string& name, std::span<const float> got,
                     std::span<const float> want, double limit) {
    AtMost(name + ", logits, relative RMS", RelativeRms(got, want), limit);
    AtMost(name + ", clear argmax, different rows",
           static_cast<double>(WrongArgmax(got, want, limit)), 0);
  }

  void EndToEnd(const std::string& run, IndexScores scores, GoldenFeed feed) {
    Model model = MakeModel(scores);
    GoldenSequence sequence(model, PromptAnd("prompt_ids", run + ".decode_tokens"));
    GoldenRecorder recorder(config_, data_, feed, run);
    const bool injected = feed == GoldenFeed::kSelections;
    const double limit = injected ? limits_.injected : limits_.free;
    const std::string name = StrCat(run, injected ? ", selections given" : ", free");
    const int32_t length = PromptLength();
    recorder.Begin("", -1);
    const std::span<const float> prompt = sequence.Run(0, length, &recorder);
    std::string stored = run + ".prompt_logits";
    if (!data_.Has(stored)) stored += "_tail32";
    const auto want = data_.Get<float>(stored);
    CompareLogits(name + ", prefill", prompt.last(want.size()), want, limit);

    std::vector<float> steps;
    for (int32_t step = 0; step < DecodeSteps(); ++step) {
      recorder.Begin("", step);
      const auto row = sequence.Run(length + step, length + step + 1, &recorder);
      steps.insert(steps.end(), row.begin(), row.end());
    }
    CompareLogits(name + ", decode", steps, data_.Get<float>(run + ".decode_logits"), limit);
  }

  // The draft from the stored main_hidden and anchors; each position continues from the stored ids.
  void DraftAlone() {
    Model model = MakeModel(IndexScores::kOfficial);
    GoldenSequence sequence(model, PromptAnd("prompt_ids", "official.decode_tokens"));
    const int32_t length = PromptLength(), block = config_.dspark_block_size;
    const auto hidden = data_.Get<bf16>("main_hidden");
    const auto anchors = data_.Get<int32_t>("official.decode_tokens");
    const auto ids = data_.Get<int32_t>("draft_ids");
    const auto top = data_.Get<float>("draft_top5_vals");
    const auto confidence = data_.Get<float>("draft_conf");
    const auto full = data_.Get<float>("draft_logits_at_0_9_23");
    const std::vector<int32_t> full_steps = {0, 9, 23};
    const auto vocab = static_cast<size_t>(config_.vocab_size);
    const auto width = static_cast<int64_t>(hidden.size()) / (length + DecodeSteps());

    int64_t wrong = 0;
    double confidence_error = 0;
    std::vector<float> got_full, want_full;
    model.WriteDraftRows(&sequence.kv(), 0, length, hidden.data());
    for (int32_t step = 0; step < DecodeSteps(); ++step) {
      const int32_t position = length + step;
      model.WriteDraftRows(&sequence.kv(), position, 1, hidden.data() + position * width);
      const DraftRequest request = {&sequence.kv(), anchors[static_cast<size_t>(step) + 1],
                                    position + 1};
      const auto full_at =
          std::find(full_steps.begin(), full_steps.end(), step) - full_steps.begin();
      const auto choose = [&](int32_t, int32_t k, std::span<const float> logits) {
        const auto at = static_cast<size_t>(step * block + k);
        const float gap = top[at * 5] - top[at * 5 + 1];
        if (ArgMax(logits) != ids[at] && gap > kDraftGap) ++wrong;
        if (full_at < 3) {
          const auto row =
              (static_cast<size_t>(full_at) * static_cast<size_t>(block) + static_cast<size_t>(k)) *
              vocab;
          got_full.insert(got_full.end(), logits.begin(), logits.end());
          want_full.insert(want_full.end(), full.begin() + row, full.begin() + row + vocab);
        }
        return ids[at];
      };
      const std::vector<Draft> drafts = model.Propose(std::span(&request, 1), choose).value();
      for (int32_t k = 0; k < block; ++k) {
        const double diff =
            std::fabs(static_cast<double>(drafts[0].confidences[static_cast<size_t>(k)]) -
                      static_cast<double>(confidence[static_cast<size_t>(step * block + k)]));
        confidence_error = std::max(confidence_error, Magnitude(diff));
      }
    }
    AtMost("draft alone, clear ids, different", static_cast<double>(wrong), 0);
    AtMost("draft alone, logits, relative RMS", RelativeRms(got_full, want_full), limits_.draft);
    AtMost("draft alone, confidence, max error", confidence_error, limits_.confidence);
  }

  // A prompt with an image span; the span's vectors are the stored aligner rows and the model's own
  // delimiters.
  void ImageSpan() {
    Model model = MakeModel(IndexScores::kOfficial);
    GoldenSequence sequence(model, PromptAnd("vl.ids", "vl.decode_tokens"));
    const auto types = data_.Get<int32_t>("vl.types");
    const bf16* aligner = data_.Get<bf16>("vl.aligner").data();
    const auto length = static_cast<int32_t>(types.size());
    for (const int32_t type : types) {
      sequence.image_mask.push_back(type >= 0 ? 1 : 0);
      const bf16* row = nullptr;
      if (type == 0) row = weights_.image_start;
      if (type == 2) row = weights_.image_newline;
      if (type == 3) row = weights_.image_end;
      if (type == 1) {
        row = aligner;
        aligner += config_.hidden_size;
      }
      sequence.image_rows.push_back(row);
    }
    sequence.image_mask.resize(sequence.tokens.size(), 0);
    sequence.image_rows.resize(sequence.tokens.size(), nullptr);

    GoldenRecorder recorder(config_, data_, GoldenFeed::kSelections, "official");
    recorder.Begin("vl.", -1);
    CompareLogits("image span, selections given, prefill", sequence.Run(0, length, &recorder),
                  data_.Get<float>("vl.logits"), limits_.injected);
    std::vector<float> steps;
    const auto want = data_.Get<float>("vl.decode_logits");
    for (int32_t step = 0; steps.size() < want.size(); ++step) {
      recorder.Begin("vl.", step);
      const auto row = sequence.Run(length + step, length + step + 1, &recorder);
      steps.insert(steps.end(), row.begin(), row.end());
    }
    CompareLogits("image span, selections given, decode", steps, want, limits_.injected);
    AtMost("image span, engram rows, different",
           static_cast<double>(recorder.engram_row_mismatches), 0);
  }

  const ModelConfig& config_;
  const ModelWeights& weights_;
  const std::vector<int32_t> classes_;
  const GoldenData& data_;
  const GoldenOptions& options_;
  const GoldenLimits& limits_;
  GoldenReport& report_;
};

StatusOr<GoldenLimits> ReadLimits(Disk& disk, const std::string& path) {
  GoldenLimits limits;
  if (!disk.IsFile(path)) return limits;
  nlohmann::json json;
  DI_RETURN_IF_ERROR(ReadJsonObject(disk, path, &json));
  Status status;
  JsonObject object(json, path, &status);
  const std::pair<const char*, double*> keys[] = {
      {"injected", &limits.injected}, {"free", &limits.free},
      {"layers", &limits.layers},     {"decode_layers", &limits.decode_layers},
      {"records", &limits.records},   {"selections", &limits.selections},
      {"draft", &limits.draft},       {"confidence", &limits.confidence}};
  for (const auto& [key, value] : keys) {
    if (object.Has(key)) object.Read(key, value, 0, 1e6);
  }
  object.Ignore({"why"});
  object.Finish(/*strict=*/true);
  DI_RETURN_IF_ERROR(status);
  return limits;
}

}  // namespace

bool GoldenReport::pass() const {
  return !figures.empty() &&
         std::all_of(figures.begin(), figures.end(), [](const auto& f) { return f.pass(); });
}

StatusOr<GoldenReport> RunGoldenCheck(Disk& disk, const std::string& golden_dir,
                                      const GoldenOptions& options) {
  DI_ASSIGN_OR_RETURN(const GoldenLimits limits, ReadLimits(disk, golden_dir + "/limits.json"));
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<GoldenData> data,
                      GoldenData::Open(disk, golden_dir + "/outputs.safetensors"));
  DI_ASSIGN_OR_RETURN(GoldenFolder folder, OpenGoldenFolder(disk, golden_dir, options.work_dir,
                                                            options.backend.threads));
  GoldenReport report;
  GoldenRun(folder.checkpoint->config(), folder.packed->weights(), std::move(folder.classes), *data,
            options, limits, report)
      .All();
  return report;
}

}  // namespace deepinfer
