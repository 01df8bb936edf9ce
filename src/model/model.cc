#include "model/model.h"

#include <algorithm>

#include "kernels/embedding/embedding.h"
#include "kernels/fault.h"
#include "kernels/hyper_connection/hyper_connection.h"
#include "kernels/linear/linear.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "model/model_impl.h"

namespace deepinfer {
namespace {

// Rows of `width` elements move from row `from` to row `to`; the ranges may overlap.
template <typename T>
void MoveRows(T* data, int64_t from, int64_t to, int64_t count, int64_t width) {
  std::memmove(data + to * width, data + from * width,
               static_cast<size_t>(count * width) * sizeof(T));
}

}  // namespace

Model::Impl::Impl(const ModelConfig& config, const ModelWeights& weights,
                  std::vector<int32_t> token_classes, const ModelOptions& options)
    : config_(config),
      shape_(MakeKvShape(config)),
      weights_(weights),
      token_classes_(std::move(token_classes)),
      backend_(options.backend),
      index_scores_(options.index_scores),
      index_scratch_bytes_(options.index_scratch_bytes),
      engram_source_(options.engram_source),
      engram_ids_(config.engram_layer_ids.size()) {
  const RopeScaling yarn = {
      .factor = config.yarn.factor,
      .beta_fast = config.yarn.beta_fast,
      .beta_slow = config.yarn.beta_slow,
      .original_positions = static_cast<double>(config.yarn.original_max_position_embeddings)};
  if (options.expert_source != nullptr) {
    expert_rounds_.emplace(*options.expert_source,
                           std::max(config.n_routed_experts, config.dspark_n_routed_experts));
  }
  plain_freqs_ = RopeFrequencies(config.qk_rope_head_dim, config.rope_theta, nullptr);
  compress_freqs_ = RopeFrequencies(config.qk_rope_head_dim, config.compress_rope_theta,
                                    DI_FAULT("yarn_off") ? nullptr : &yarn);
  if (!config.engram_layer_ids.empty()) {
    CHECK_EQ(token_classes_.size(), static_cast<size_t>(config.vocab_size));
    engram_hash_.emplace(config, token_classes_[static_cast<size_t>(config.engram_pad_token_id)]);
  }
}

StatusOr<std::span<const float>> Model::Impl::Forward(const ForwardBatch& batch,
                                                      ForwardObserver* observer) {
  ForwardObserver quiet;
  observer_ = observer != nullptr ? observer : &quiet;
  MakeRows(batch, /*decoder=*/false, all_);
  MakeRows(batch, /*decoder=*/true, kept_);
  const RowSet &all = all_, &kept = kept_;
  const RowSet* rows = &all;
  if (all.num_rows() == 0) return std::span<const float>();
  AnnounceEngramRows(all, kept);

  Embed(all);
  SetRopeRows(all);
  const int32_t targets = static_cast<int32_t>(config_.dspark_target_layer_ids.size());
  main_hidden_.Get(int64_t{all.num_rows()} * targets * config_.hidden_size);
  for (int32_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
    if (layer == config_.FirstDecoderLayer()) {
      observer_->LayerInput(layer, *rows, streams_.data(), pre_.data());
      EnterDecoder(all, kept);
      rows = &kept;
      if (kept.num_rows() == 0) return std::span<const float>();
    } else {
      observer_->LayerInput(layer, *rows, streams_.data(), pre_.data());
    }
    DI_RETURN_IF_ERROR(RunLayer(layer, *rows));
  }
  observer_->LayerInput(config_.num_hidden_layers, kept, streams_.data(), pre_.data());
  if (config_.num_nextn_predict_layers > 0) {
    observer_->MainHidden(kept, main_hidden_.data());
    WriteDraftRows(kept, main_hidden_.data());
  }
  return Logits(kept);
}

void Model::Impl::MakeRows(const ForwardBatch& batch, bool decoder, RowSet& rows) const {
  rows.Clear();
  for (const ForwardSegment& segment : batch.segments) {
    CHECK_LE(segment.begin, segment.end);
    CHECK(segment.snapshot.rows == nullptr ||
          (segment.begin <= segment.snapshot.end && segment.snapshot.end <= segment.end));
    const int32_t first =
        decoder ? std::clamp(segment.decoder_begin, segment.begin, segment.end) : segment.begin;
    if (first == segment.end) continue;
    const int32_t row = rows.num_rows();
    rows.segments.push_back({&segment, row, row + segment.end - first, first});
    for (int32_t p = first; p < segment.end; ++p) {
      const bool narrowed = decoder && p >= segment.decoder_window_begin;
      rows.positions.push_back(p);
      rows.tokens.push_back(segment.tokens[p]);
      rows.window_begin.push_back(narrowed  ? segment.decoder_window_begin
                                  : decoder ? 0
                                            : segment.window_begin);
      const uint8_t image = segment.image_mask != nullptr ? segment.image_mask[p] : 0;
      rows.is_image.push_back(image);
      rows.has_images |= image != 0;
    }
  }
}

void Model::Impl::Embed(const RowSet& rows) {
  const int64_t count = rows.num_rows();
  overrides_.clear();
  if (rows.has_images) {
    for (const RowSet::Segment& segment : rows.segments) {
      const ForwardSegment& source = *segment.source;
      for (int32_t i = 0; i < segment.row_end - segment.row_begin; ++i) {
        overrides_.push_back(source.image_rows != nullptr ? source.image_rows[i] : nullptr);
      }
    }
  }
  Embedding(backend_, {.num_tokens = rows.num_rows(),
                       .dim = config_.hidden_size,
                       .num_streams = config_.hc_mult,
                       .ids = rows.tokens.data(),
                       .table = weights_.embed,
                       .overrides = overrides_.empty() ? nullptr : overrides_.data(),
                       .streams = streams_.Get(count * StreamElements()),
                       .pre = pre_.Get(count * config_.hc_mult)});
}

RopeRows Model::Impl::MakeRopeRows(const std::vector<float>& freqs,
                                   const std::vector<int32_t>& positions, Scratch<float>& cos,
                                   Scratch<float>& sin) const {
  const auto count = static_cast<int64_t>(positions.size());
  const auto pairs = static_cast<int64_t>(freqs.size());
  float* const c = cos.Get(count * pairs);
  float* const s = sin.Get(count * pairs);
  constexpr int64_t kPositionsPerPiece = 4;  // some microseconds
  backend_.ParallelFor(count, kPositionsPerPiece, [&](int64_t begin, int64_t end) {
    RopeCosSin(freqs, positions.data() + begin, end - begin, c + begin * pairs, s + begin * pairs);
  });
  return {c, s};
}

void Model::Impl::SetRopeRows(const RowSet& rows) {
  plain_rope_ = MakeRopeRows(plain_freqs_, rows.positions, plain_cos_, plain_sin_);
  compress_rope_ = MakeRopeRows(compress_freqs_, rows.positions, compress_cos_, compress_sin_);
}

Status Model::Impl::RunLayer(int32_t layer, const RowSet& rows) {
  const int32_t table = config_.EngramIndex(layer);
  if (table >= 0 && !DI_FAULT("engram_skipped")) {
    DI_RETURN_IF_ERROR(EngramLayer(table, rows));
    observer_->EngramOutput(layer, rows, streams_.data());
  }
  const std::vector<int32_t>& targets = config_.dspark_target_layer_ids;
  const auto target = std::find(targets.begin(), targets.end(), layer);
  if (target != targets.end()) {
    RecordMainHidden(static_cast<int32_t>(target - targets.begin()), rows);
  }
  AttentionSublayer(layer, rows);
  observer_->AttentionOutput(layer, rows, streams_.data(), pre_.data());
  return FeedForwardSublayer(layer, rows);
}

// The first decoder layer makes global KV from all rows; then only the kept rows go on.
void Model::Impl::EnterDecoder(const RowSet& all, const RowSet& kept) {
  const int32_t layer = config_.FirstDecoderLayer();
  const BlockWeights& block = weights_.layers[static_cast<size_t>(layer)];
  SublayerInput(block.hc_attn, block.attn_norm, all.num_rows(), /*mix=*/false);
  ProduceGlobalKv(layer, all);
  if (kept.num_rows() == all.num_rows()) return;
  // Features of targets below this layer were recorded for all rows.
  const int64_t features =
      std::ssize(config_.dspark_target_layer_ids) * int64_t{config_.hidden_size};
  // Both sets list segments in the same order, so kept rows only move towards the front.
  size_t at = 0;
  for (const RowSet::Segment& segment : kept.segments) {
    while (all.segments[at].source != segment.source) ++at;
    const int32_t from =
        all.segments[at].row_begin + segment.first_position - all.segments[at].first_position;
    const int32_t rows = segment.row_end - segment.row_begin;
    MoveRows(streams_.data(), from, segment.row_begin, rows, StreamElements());
    MoveRows(pre_.data(), from, segment.row_begin, rows, config_.hc_mult);
    MoveRows(main_hidden_.data(), from, segment.row_begin, rows, features);
  }
  SetRopeRows(kept);
}

// main_hidden[t, target] = bf16(mean over the streams). The number of streams is a power of two, so
// the mean is a collapse with equal weights.
void Model::Impl::RecordMainHidden(int32_t target, const RowSet& rows) {
  const int32_t dim = config_.hidden_size;
  const auto targets = static_cast<int64_t>(config_.dspark_target_layer_ids.size());
  const int32_t count = rows.num_rows();
  equal_.assign(static_cast<size_t>(count) * static_cast<size_t>(config_.hc_mult),
                1.0f / static_cast<float>(config_.hc_mult));
  bf16* const mean = collapsed_.Get(int64_t{count} * dim);
  HyperCollapse(backend_, {.num_tokens = count,
                           .num_streams = config_.hc_mult,
                           .dim = dim,
                           .streams = streams_.data(),
                           .pre = equal_.data(),
                           .out = mean});
  for (int64_t t = 0; t < count; ++t) {
    std::memcpy(main_hidden_.data() + (t * targets + target) * dim, mean + t * dim,
                static_cast<size_t>(dim) * sizeof(bf16));
  }
}

std::span<const float> Model::Impl::Logits(const RowSet& rows) {
  const int32_t dim = config_.hidden_size;
  HyperCollapse(backend_, {.num_tokens = rows.num_rows(),
                           .num_streams = config_.hc_mult,
                           .dim = dim,
                           .streams = streams_.data(),
                           .pre = pre_.data(),
                           .out = collapsed_.Get(int64_t{rows.num_rows()} * dim)});
  int32_t asked = 0;
  for (const RowSet::Segment& segment : rows.segments) {
    const int32_t count = segment.row_end - segment.row_begin;
    const int32_t first =
        std::clamp(segment.source->logits_begin - segment.first_position, 0, count);
    std::memmove(collapsed_.data() + int64_t{asked} * dim,
                 collapsed_.data() + int64_t{segment.row_begin + first} * dim,
                 static_cast<size_t>(count - first) * static_cast<size_t>(dim) * sizeof(bf16));
    asked += count - first;
  }
  if (asked == 0) return {};
  bf16* const x = head_x_.Get(int64_t{asked} * dim);
  Normalise(collapsed_.data(), weights_.norm, dim, asked, x);
  const int64_t size = int64_t{asked} * config_.vocab_size;
  ProjectF32(weights_.head, x, asked, logits_.Get(size));
  return {logits_.data(), static_cast<size_t>(size)};
}

void Model::Impl::Project(const Matrix& weight, const bf16* x, int32_t num_rows, bf16* out) const {
  Linear(backend_, {.num_tokens = num_rows,
                    .weight = weight,
                    .x = x,
                    .x_stride = weight.cols,
                    .out = out,
                    .out_stride = weight.rows});
}

void Model::Impl::ProjectF32(const Matrix& weight, const bf16* x, int32_t num_rows,
                             float* out) const {
  Linear(backend_, {.num_tokens = num_rows,
                    .weight = weight,
                    .x = x,
                    .x_stride = weight.cols,
                    .out_f32 = out,
                    .out_stride = weight.rows});
}

void Model::Impl::Normalise(const bf16* x, const bf16* gain, int32_t dim, int32_t num_rows,
                            bf16* out) const {
  RmsNorm(backend_, {.num_tokens = num_rows,
                     .dim = dim,
                     .eps = eps(),
                     .x = x,
                     .x_stride = dim,
                     .gain = gain,
                     .out = out});
}

Model::Model(const ModelConfig& config, const ModelWeights& weights,
             std::vector<int32_t> token_classes, const ModelOptions& options)
    : impl_(std::make_unique<Impl>(config, weights, std::move(token_classes), options)) {}
Model::~Model() = default;

const ModelConfig& Model::config() const { return impl_->config_; }
const KvShape& Model::kv_shape() const { return impl_->shape_; }

StatusOr<std::span<const float>> Model::Forward(const ForwardBatch& batch,
                                                ForwardObserver* observer) {
  return impl_->Forward(batch, observer);
}

Status Model::Propose(std::span<const DraftRequest> requests, DraftChooser choose,
                      std::span<Draft> drafts) {
  return impl_->Propose(requests, choose, drafts);
}

StatusOr<std::vector<Draft>> Model::Propose(std::span<const DraftRequest> requests,
                                            DraftChooser choose) {
  std::vector<Draft> drafts(requests.size());
  DI_RETURN_IF_ERROR(Propose(requests, choose, drafts));
  return drafts;
}

ScratchPlan Model::PlanScratch(const ModelConfig& config, const ScratchOptions& options,
                               const ReserveShape& shape) {
  return Impl::PlanScratch(config, options, shape);
}
void Model::Reserve(const ReserveShape& shape) { impl_->Reserve(shape); }

void Model::WriteDraftRows(SequenceKv* kv, int32_t begin, int32_t num_rows,
                           const bf16* main_hidden) {
  const ForwardSegment segment = {.kv = kv, .begin = begin, .end = begin + num_rows};
  RowSet rows;
  rows.segments.push_back({&segment, 0, num_rows, begin});
  for (int32_t p = begin; p < begin + num_rows; ++p) rows.positions.push_back(p);
  impl_->WriteDraftRows(rows, main_hidden);
}

}  // namespace deepinfer
