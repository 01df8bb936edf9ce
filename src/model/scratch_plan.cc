// model/scratch_plan.cc: what forward passes of some shape need besides weights and KV, and taking
// it ahead.
//
// One list of sizes serves the plan and the taking. Sizes are upper bounds by the number of rows:
// which rows run the decoder, complete an entry or are an image is not known before.
#include <algorithm>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/linear/cpu/panel_kernels.h"
#include "model/model_impl.h"
#include "model/tensor_spec.h"

namespace deepinfer {
namespace {

int32_t DraftRows(const ModelConfig& config, const ReserveShape& shape) {
  return config.num_nextn_predict_layers > 0 ? shape.max_draft_requests * config.dspark_block_size
                                             : 0;
}

// Rows of the largest pass or proposal.
int32_t MaxRows(const ModelConfig& config, const ReserveShape& shape) {
  return std::max(shape.max_rows, DraftRows(config, shape));
}

int32_t MaxExperts(const ModelConfig& config) {
  return std::max(config.n_routed_experts, config.dspark_n_routed_experts);
}
int32_t MaxTopk(const ModelConfig& config) {
  return std::max(config.num_experts_per_tok, config.dspark_num_experts_per_tok);
}

// Rows and experts of each.
int64_t ExpertPlaces(const ModelConfig& config, const ReserveShape& shape) {
  return int64_t{MaxRows(config, shape)} * MaxTopk(config);
}

// Products with `num_rows` rows: every matrix alone, and those that run together.
ScratchBytes AllLinears(const ModelConfig& config, VariantId variant, int32_t num_rows) {
  ScratchBytes bytes;
  const auto include = [&](int64_t rows, int64_t cols, WeightFormat format, int64_t together) {
    const LinearParams product = {.num_tokens = num_rows,
                                  .weight = {.format = format,
                                             .rows = static_cast<int32_t>(rows),
                                             .cols = static_cast<int32_t>(cols)}};
    const std::vector<LinearParams> products(static_cast<size_t>(together), product);
    bytes.Include(LinearsScratchBytes(variant, products));
  };
  for (const TensorSpec& tensor : ExpectedTensors(config)) {
    const bool weight = tensor.shape.size() == 2 && tensor.part != Part::kRoutedExperts &&
                        tensor.part != Part::kDraftExperts && tensor.part != Part::kEngramTables &&
                        tensor.part != Part::kVision;
    if (!weight) continue;
    if (tensor.dtype == Dtype::kF8E4m3) {
      include(tensor.shape[0], tensor.shape[1], WeightFormat::kFp8, 1);
    } else if (tensor.dtype == Dtype::kBf16) {
      include(tensor.shape[0], tensor.shape[1], WeightFormat::kBf16, 1);
    }
  }
  include(config.o_lora_rank,
          int64_t{config.num_attention_heads} * config.head_dim / config.o_groups,
          WeightFormat::kFp8, config.o_groups);
  include(config.moe_intermediate_size, config.hidden_size, WeightFormat::kFp8, 2);
  return bytes;
}

ScratchBytes IndexScratch(const ModelConfig& config, const ScratchOptions& options,
                          const ReserveShape& shape) {
  int32_t any = 0;
  IndexSelectParams params = {.num_heads = config.index_n_heads,
                              .dim = config.index_head_dim,
                              .topk = config.index_topk,
                              .block_size = config.candidate_block_size,
                              .topk_blocks = config.candidate_topk_blocks,
                              .scratch_bytes = options.index_scratch_bytes};
  ScratchBytes bytes;
  for (const int32_t layer : config.index_source_layer_ids) {
    params.blocks_out = config.candidate_source_layer_id == layer ? &any : nullptr;
    bytes.Include(IndexSelectScratchBytes(options.num_threads, params,
                                          shape.max_context / config.ratio(layer)));
  }
  return bytes;
}

ScratchBytes AttentionScratch(const ModelConfig& config, VariantId variant) {
  const SparseAttentionParams params = {.num_heads = config.num_attention_heads,
                                        .head_dim = config.head_dim};
  return SparseAttentionScratchBytes(
      variant, params,
      config.sliding_window + std::max(config.index_topk, config.dspark_block_size));
}

ScratchBytes OpScratch(const ModelConfig& config, const ScratchOptions& options,
                       const ReserveShape& shape) {
  const VariantId variant = options.variant;
  const int32_t rows = MaxRows(config, shape);
  ScratchBytes bytes = IndexScratch(config, options, shape);
  bytes.Include(AttentionScratch(config, variant));
  bytes.Include(AllLinears(config, variant, rows));
  bytes.Include(AllLinears(config, variant, std::min(rows, kFewRows)));
  bytes.Include(HyperMixScratchBytes(
      {.num_tokens = rows, .num_streams = config.hc_mult, .dim = config.hidden_size}));
  bytes.Include(RouterScratchBytes({.num_experts = MaxExperts(config)}));
  bytes.Include(ExpertsScratchBytes(variant, WeightFormat::kFp4,
                                    {.num_tokens = rows,
                                     .dim = config.hidden_size,
                                     .inner = config.moe_intermediate_size,
                                     .num_experts = MaxExperts(config),
                                     .topk = MaxTopk(config)}));
  bytes.Include(CombineScratchBytes({.dim = config.hidden_size}));
  return bytes;
}

template <typename T>
int64_t BytesOf(const Scratch<T>*, int64_t count) {
  return Scratch<T>::BytesOf(count);
}
template <typename T>
int64_t BytesOf(const std::vector<T>*, int64_t count) {
  return count * static_cast<int64_t>(sizeof(T));
}
constexpr int64_t kRowSetBytes = sizeof(RowSet::Segment) + 3 * sizeof(int32_t) + 1;
int64_t BytesOf(const RowSet*, int64_t count) { return count * kRowSetBytes; }

template <typename T>
void Take(Scratch<T>& scratch, int64_t count) {
  scratch.Reserve(count);
}
template <typename T>
void Take(std::vector<T>& list, int64_t count) {
  list.reserve(static_cast<size_t>(count));
}
void Take(RowSet& rows, int64_t count) {
  const auto size = static_cast<size_t>(count);
  rows.segments.reserve(size);
  rows.positions.reserve(size);
  rows.tokens.reserve(size);
  rows.window_begin.reserve(size);
  rows.is_image.reserve(size);
}

}  // namespace

template <typename Visit>
void Model::Impl::VisitScratch(const ModelConfig& c, const ReserveShape& shape,
                               const Visit& visit) {
  const int64_t rows = MaxRows(c, shape),
                drafts = DraftRows(c, shape) > 0 ? shape.max_draft_requests : 0;
  const int64_t dim = c.hidden_size, head = c.head_dim, inner = c.moe_intermediate_size;
  const int64_t heads = int64_t{c.num_attention_heads} * head, hc = c.hc_mult;
  const int64_t pairs = c.qk_rope_head_dim / 2, topk = MaxTopk(c);
  const auto targets = static_cast<int64_t>(c.dspark_target_layer_ids.size());
  const auto tables = static_cast<int64_t>(c.engram_layer_ids.size());
  const int64_t columns = tables > 0 ? c.EngramColumns() : 0;
  const int64_t logits = shape.max_logits_rows, guesses = drafts * c.dspark_block_size;

  for (const auto member : {&Impl::all_, &Impl::kept_, &Impl::draft_rows_}) visit(member, rows);
  visit(&Impl::streams_, rows * hc * dim);
  visit(&Impl::main_hidden_, rows * targets * dim);
  for (const auto member : {&Impl::pre_, &Impl::pre_next_, &Impl::post_}) visit(member, rows * hc);
  visit(&Impl::comb_, rows * hc * hc);
  visit(&Impl::equal_, rows * hc);
  visit(&Impl::selection_, rows * c.index_topk);
  visit(&Impl::blocks_, rows * c.candidate_topk_blocks);
  for (const auto member : {&Impl::plain_cos_, &Impl::plain_sin_, &Impl::compress_cos_,
                            &Impl::compress_sin_, &Impl::entry_cos_, &Impl::entry_sin_}) {
    visit(member, rows * pairs);
  }
  for (const auto member :
       {&Impl::collapsed_, &Impl::x_, &Impl::xq_, &Impl::y_, &Impl::shared_out_}) {
    visit(member, rows * dim);
  }
  for (const auto member : {&Impl::qr_, &Impl::qrq_}) visit(member, rows * c.q_lora_rank);
  for (const auto member : {&Impl::q_, &Impl::o_}) visit(member, rows * heads);
  for (const auto member : {&Impl::kv_, &Impl::latent_}) visit(member, rows * head);
  visit(&Impl::z_, rows * c.o_groups * c.o_lora_rank);
  visit(&Impl::fresh_, rows * SwaRecordBytes(c.head_dim));
  visit(&Impl::ab_, rows * 2 * head);
  visit(&Impl::index_key_, rows * c.index_head_dim);
  visit(&Impl::index_q_, rows * c.index_n_heads * c.index_head_dim);
  visit(&Impl::index_w_, rows * c.index_n_heads);
  for (const auto member : {&Impl::shared_gate_, &Impl::shared_up_}) visit(member, rows * inner);
  visit(&Impl::expert_y_, rows * topk * dim);
  visit(&Impl::gate_logits_, rows * MaxExperts(c));
  visit(&Impl::route_weights_, rows * topk);
  visit(&Impl::route_experts_, rows * topk);
  visit(&Impl::engram_x_, rows * columns * c.engram_head_dim);
  visit(&Impl::engram_kv_, tables > 0 ? rows * (hc + 1) * dim : 0);
  visit(&Impl::head_x_, std::max(logits, guesses) * dim);
  visit(&Impl::logits_, logits * c.vocab_size);
  visit(&Impl::draft_x_, rows * targets * dim);
  visit(&Impl::draft_logits_, guesses * c.vocab_size);
  visit(&Impl::markov_logits_, drafts * c.vocab_size);
  visit(&Impl::confidence_, drafts);
  visit(&Impl::bigram_, drafts * c.dspark_markov_rank);
  visit(&Impl::confidence_x_, drafts * (dim + c.dspark_markov_rank));

  int64_t ratio = 1;
  for (const int32_t layer : c.kv_source_layer_ids)
    ratio = std::max<int64_t>(ratio, c.ratio(layer));
  visit(&Impl::entries_, rows);
  visit(&Impl::group_rows_, rows * ratio);
  for (const auto member : {&Impl::entry_positions_, &Impl::num_visible_}) visit(member, rows);
  for (const auto member : {&Impl::entry_records_, &Impl::entry_keys_, &Impl::entry_scales_}) {
    visit(member, rows);
  }
  visit(&Impl::pages_, rows);
  visit(&Impl::row_sources_, rows);
  visit(&Impl::attention_segments_, rows);
  visit(&Impl::overrides_, rows);
  visit(&Impl::live_, rows);
  visit(&Impl::products_, std::max(2, c.o_groups));
  visit(&Impl::announced_, tables);
  visit(&Impl::history_, tables > 0 ? c.engram_max_ngram_size : 0);
  visit(&Impl::draft_segments_, drafts);
  visit(&Impl::previous_, drafts);
}

int64_t Model::MaxEngramRows(const ModelConfig& config, const ReserveShape& shape) {
  return int64_t{MaxRows(config, shape)} * config.EngramColumns();
}

ScratchPlan Model::Impl::PlanScratch(const ModelConfig& config, const ScratchOptions& options,
                                     const ReserveShape& shape) {
  const auto of_threads = [&](const ScratchBytes& bytes) {
    return bytes.caller + (options.num_threads - 1) * bytes.worker;
  };
  ScratchPlan plan;
  plan.threads_bytes = of_threads(OpScratch(config, options, shape));
  plan.index_bytes = of_threads(IndexScratch(config, options, shape));
  VisitScratch(config, shape, [&]<typename Member>(Member Impl::*, int64_t count) {
    plan.rows_bytes += BytesOf(static_cast<const Member*>(nullptr), count);
  });
  plan.rows_bytes +=
      std::ssize(config.engram_layer_ids) * Scratch<int32_t>::BytesOf(MaxEngramRows(config, shape));
  if (options.expert_rounds) {
    plan.rows_bytes += ExpertRounds::MemoryFor(ExpertPlaces(config, shape));
  }
  return plan;
}

void Model::Impl::Reserve(const ReserveShape& shape) {
  VisitScratch(config_, shape, [&](auto member, int64_t count) { Take(this->*member, count); });
  const int64_t ids = MaxEngramRows(config_, shape);
  for (Scratch<int32_t>& table : engram_ids_) table.Reserve(ids);
  if (engram_source_ != nullptr) engram_source_->Reserve(ids);
  if (expert_rounds_) expert_rounds_->Reserve(ExpertPlaces(config_, shape));

  const bool alone = backend_.threads == nullptr;
  const ScratchBytes bytes = OpScratch(config_,
                                       {.variant = backend_.variant,
                                        .num_threads = alone ? 1 : backend_.threads->num_threads(),
                                        .index_scratch_bytes = index_scratch_bytes_},
                                       shape);
  if (backend_.threads != nullptr) {
    backend_.threads->OnEveryThread([&] { ThreadScratch::Mine().Reserve(bytes.worker); });
  }
  ThreadScratch::Mine().Reserve(bytes.caller);
}

}  // namespace deepinfer
