// model/attention.cc: the attention sub-layer: window, compressed global KV, index selection,
// output projection.
//
// Source: model.md 3.4 to 3.6.
#include <algorithm>

#include "kernels/compressor/compressor.h"
#include "kernels/fault.h"
#include "kernels/formats/panels.h"
#include "kernels/hyper_connection/hyper_connection.h"
#include "kernels/kv_records/kv_records.h"
#include "kernels/linear/linear.h"
#include "kernels/quantise/quantise.h"
#include "kernels/rope/rope.h"
#include "model/model_impl.h"

namespace deepinfer {

void Model::Impl::SublayerInput(const HyperWeights& hyper, const bf16* norm, int32_t num_rows,
                                bool mix) {
  const int32_t hc = config_.hc_mult, dim = config_.hidden_size;
  if (mix) {
    HyperMix(backend_, {.num_tokens = num_rows,
                        .num_streams = hc,
                        .dim = dim,
                        .sinkhorn_iterations = config_.hc_sinkhorn_iters,
                        .norm_eps = eps(),
                        .hc_eps = static_cast<float>(config_.hc_eps),
                        .streams = streams_.data(),
                        .fn = hyper.fn,
                        .base = hyper.base,
                        .scale = hyper.scale,
                        .pre_next = pre_next_.Get(int64_t{num_rows} * hc),
                        .post = post_.Get(int64_t{num_rows} * hc),
                        .comb = comb_.Get(int64_t{num_rows} * hc * hc)});
  }
  const float* const pre = mix && DI_FAULT("v4_own_pre") ? pre_next_.data() : pre_.data();
  bf16* const collapsed = collapsed_.Get(int64_t{num_rows} * dim);
  HyperCollapse(backend_, {.num_tokens = num_rows,
                           .num_streams = hc,
                           .dim = dim,
                           .streams = streams_.data(),
                           .pre = pre,
                           .out = collapsed});
  Normalise(collapsed, norm, dim, num_rows, x_.Get(int64_t{num_rows} * dim));
}

// The last rope dims of x [num_rows, num_heads, head_dim], in place.
void Model::Impl::Rotate(bf16* x, int32_t num_rows, int32_t num_heads, int32_t head_dim,
                         const RopeRows& rope, bool inverse) const {
  Rope(backend_, {.num_tokens = num_rows,
                  .num_heads = num_heads,
                  .head_dim = head_dim,
                  .rope_dim = config_.qk_rope_head_dim,
                  .cos = rope.cos,
                  .sin = rope.sin,
                  .inverse = inverse,
                  .x = x});
}

void Model::Impl::FinishSublayer(int32_t num_rows, const bf16* y) {
  HyperUpdate(backend_, {.num_tokens = num_rows,
                         .num_streams = config_.hc_mult,
                         .dim = config_.hidden_size,
                         .y = y,
                         .post = post_.data(),
                         .comb = comb_.data(),
                         .streams = streams_.data()});
  std::memcpy(pre_.data(), pre_next_.data(),
              static_cast<size_t>(num_rows) * static_cast<size_t>(config_.hc_mult) * sizeof(float));
}

// x_ [T, D] -> xq_ (x on the FP8 grid) and qrq_ (the query's low-rank row, normalised, on the FP8
// grid).
void Model::Impl::QueryInput(const BlockWeights& block, int32_t count) {
  bf16* const xq = xq_.Get(int64_t{count} * config_.hidden_size);
  Quantise(backend_, {.num_tokens = count, .dim = config_.hidden_size, .x = x_.data(), .out = xq});

  const int32_t rank = config_.q_lora_rank;
  bf16* const qr = qr_.Get(int64_t{count} * rank);
  Project(block.wq_a, xq, count, qr);
  Normalise(qr, block.q_norm, rank, count, qr);
  bf16* const qrq = qrq_.Get(int64_t{count} * rank);
  Quantise(backend_, {.num_tokens = count, .dim = rank, .x = qr, .out = qrq});
}

void Model::Impl::AttentionSublayer(int32_t layer, const RowSet& rows) {
  const BlockWeights& block = weights_.layers[static_cast<size_t>(layer)];
  const int32_t count = rows.num_rows();
  SublayerInput(block.hc_attn, block.attn_norm, count, /*mix=*/true);
  // The first decoder layer's global KV was made in EnterDecoder, from all rows.
  if (config_.IsKvSource(layer) && layer != config_.FirstDecoderLayer()) {
    ProduceGlobalKv(layer, rows);
  }
  QueryInput(block, count);
  if (config_.IsIndexSource(layer)) SelectEntries(layer, rows);
  const bool global = config_.ratio(layer) > 0;
  Attend(block, layer, rows, global ? compress_rope_ : plain_rope_,
         global ? selection_.data() : nullptr,
         global ? std::optional(KvSourceIndex(config_, config_.KvSource(layer))) : std::nullopt,
         /*draft=*/false);
  FinishSublayer(count, y_.data());
}

// Entries completed by these rows: latent -> index key, then global record. Reads x_, keeps the
// open group.
void Model::Impl::ProduceGlobalKv(int32_t layer, const RowSet& rows) {
  const BlockWeights& block = weights_.layers[static_cast<size_t>(layer)];
  const int32_t source = KvSourceIndex(config_, layer);
  const int32_t ratio = config_.ratio(layer), dim = config_.head_dim, count = rows.num_rows();
  if (ratio > 1) {
    float* const ab = ab_.Get(int64_t{count} * 2 * dim);
    for (int32_t half = 0; half < 2; ++half) {
      Linear(backend_, {.num_tokens = count,
                        .weight = half == 0 ? block.compressor_wkv : block.compressor_wgate,
                        .x = x_.data(),
                        .x_stride = config_.hidden_size,
                        .out_f32 = ab + half * dim,
                        .out_stride = 2 * dim});
    }
  }
  ListEntries(source, rows);
  const auto num_entries = static_cast<int32_t>(entries_.size());
  bf16* const latent =
      latent_.Get(std::max<int64_t>(int64_t{num_entries} * dim, int64_t{count} * dim));
  if (ratio > 1) {
    Compress(backend_, {.num_entries = num_entries,
                        .ratio = ratio,
                        .dim = dim,
                        .rows = group_rows_.data(),
                        .out = latent});
  } else {
    // Every row is an entry; rows whose entry is kept are projected and dropped.
    Project(block.compressor_wkv, x_.data(), count, latent);
    int32_t out = 0;
    for (const RowSet::Segment& segment : rows.segments) {
      for (int32_t row = segment.row_begin; row < segment.row_end; ++row) {
        const int32_t position = segment.first_position + row - segment.row_begin;
        if (position + 1 <= segment.source->keep_entries_below) continue;
        std::memmove(latent + int64_t{out++} * dim, latent + int64_t{row} * dim,
                     static_cast<size_t>(dim) * sizeof(bf16));
      }
    }
  }
  Normalise(latent, block.compressor_norm, dim, num_entries, latent);
  PlaceEntries(source);
  const RopeRows rope = MakeRopeRows(compress_freqs_, entry_positions_, entry_cos_, entry_sin_);

  bf16* const key = index_key_.Get(int64_t{num_entries} * config_.index_head_dim);
  Project(block.indexer_wk, latent, num_entries, key);
  Normalise(key, block.indexer_k_norm, config_.index_head_dim, num_entries, key);
  Rotate(key, num_entries, 1, config_.index_head_dim, rope);
  WriteIndexKey(backend_, {.num_rows = num_entries,
                           .dim = config_.index_head_dim,
                           .x = key,
                           .keys = entry_keys_.data(),
                           .scales = entry_scales_.data()});
  Rotate(latent, num_entries, 1, dim, rope);
  WriteGlobal(backend_,
              {.num_rows = num_entries, .dim = dim, .x = latent, .records = entry_records_.data()});
  if (ratio > 1) KeepOpenGroup(source, rows);
}

// entries_, and for ratio > 1 the (a, b) rows they are made of.
void Model::Impl::ListEntries(int32_t source, const RowSet& rows) {
  const int32_t ratio = shape_.layout.sections[static_cast<size_t>(source)].ratio;
  const int32_t dim = config_.head_dim;
  entries_.clear();
  group_rows_.clear();
  for (const RowSet::Segment& segment : rows.segments) {
    const ForwardSegment& from = *segment.source;
    const int32_t first = segment.first_position;
    const int32_t end = first + segment.row_end - segment.row_begin;
    for (int32_t idx = first / ratio; (idx + 1) * ratio <= end; ++idx) {
      if ((idx + 1) * ratio <= from.keep_entries_below) continue;
      entries_.push_back({from.kv, idx});
      for (int32_t p = idx * ratio; ratio > 1 && p < (idx + 1) * ratio; ++p) {
        group_rows_.push_back(p >= first
                                  ? ab_.data() + int64_t{segment.row_begin + p - first} * 2 * dim
                                  : from.kv->TailRow(source, p));
      }
    }
  }
}

// Positions of entries_, and where their bytes go.
void Model::Impl::PlaceEntries(int32_t source) {
  const int32_t ratio = shape_.layout.sections[static_cast<size_t>(source)].ratio;
  entry_positions_.clear();
  entry_records_.clear();
  entry_keys_.clear();
  entry_scales_.clear();
  for (const Entry& entry : entries_) {
    const PagedSource pages = entry.kv->Source(source);
    const int32_t last = DI_FAULT("compressed_position_last_token") ? ratio - 1 : 0;
    entry_positions_.push_back(entry.idx * ratio + last);
    entry_records_.push_back(pages.GlobalRecord(entry.idx, config_.head_dim));
    entry_keys_.push_back(pages.IndexKey(entry.idx, config_.index_head_dim));
    entry_scales_.push_back(pages.IndexScale(entry.idx, config_.index_head_dim));
  }
}

void Model::Impl::KeepOpenGroup(int32_t source, const RowSet& rows) {
  const int64_t floats = int64_t{2} * config_.head_dim;
  for (const RowSet::Segment& segment : rows.segments) {
    const int32_t tail = std::min(shape_.TailRows(source), segment.row_end - segment.row_begin);
    for (int32_t row = segment.row_end - tail; row < segment.row_end; ++row) {
      const int32_t position = segment.first_position + row - segment.row_begin;
      std::memcpy(segment.source->kv->TailRow(source, position), ab_.data() + row * floats,
                  static_cast<size_t>(floats) * sizeof(float));
    }
  }
}

// selection_ [T, topk] for this index source and the layers after it.
void Model::Impl::SelectEntries(int32_t layer, const RowSet& rows) {
  const BlockWeights& block = weights_.layers[static_cast<size_t>(layer)];
  const int32_t count = rows.num_rows(), heads = config_.index_n_heads,
                dim = config_.index_head_dim;
  bf16* const q = index_q_.Get(int64_t{count} * heads * dim);
  Project(block.indexer_wq_b, qrq_.data(), count, q);
  Rotate(q, count, heads, dim, compress_rope_);
  QuantiseIndexQuery(backend_, {.num_rows = count * heads, .dim = dim, .x = q});
  bf16* const w = index_w_.Get(int64_t{count} * heads);
  Project(block.indexer_weights_proj, x_.data(), count, w);
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)) /
                                         std::sqrt(static_cast<double>(heads)));

  const int32_t source = KvSourceIndex(config_, config_.KvSource(layer));
  const int32_t ratio = config_.ratio(layer);
  pages_.clear();
  pages_.reserve(rows.segments.size());  // row_sources_ points into it
  row_sources_.clear();
  num_visible_.clear();
  for (const RowSet::Segment& segment : rows.segments) {
    pages_.push_back(segment.source->kv->Source(source));
    for (int32_t row = segment.row_begin; row < segment.row_end; ++row) {
      row_sources_.push_back(&pages_.back());
      num_visible_.push_back((rows.positions[static_cast<size_t>(row)] + 1) / ratio);
    }
  }
  const bool makes_blocks = config_.candidate_source_layer_id == layer;
  const bool inside_blocks =
      config_.candidate_source_layer_id.has_value() && layer > *config_.candidate_source_layer_id;
  int32_t* const blocks = blocks_.Get(int64_t{count} * config_.candidate_topk_blocks);
  int32_t* const selection = selection_.Get(int64_t{count} * config_.index_topk);
  float* const scores = observer_->wants_details()
                            ? index_scores_scratch_.Get(int64_t{count} * config_.index_topk)
                            : nullptr;
  IndexSelect(backend_, {.num_tokens = count,
                         .num_heads = heads,
                         .dim = dim,
                         .topk = config_.index_topk,
                         .scores = index_scores_,
                         .q = q,
                         .head_weights = w,
                         .head_scale = scale,
                         .sources = row_sources_.data(),
                         .num_visible = num_visible_.data(),
                         .selection = selection,
                         .selected_scores = scores,
                         .block_size = config_.candidate_block_size,
                         .topk_blocks = config_.candidate_topk_blocks,
                         .blocks_out = makes_blocks ? blocks : nullptr,
                         .blocks_in = inside_blocks ? blocks : nullptr,
                         .scratch_bytes = index_scratch_bytes_});
  if (makes_blocks) observer_->CandidateBlocks(layer, rows, blocks);
  observer_->Selection(layer, rows, selection, scores);
}

void Model::Impl::MakeSwaRecords(const BlockWeights& block, const bf16* xq, int32_t num_rows,
                                 const RopeRows& rope, uint8_t* fresh) {
  const int32_t dim = config_.head_dim;
  bf16* const kv = kv_.Get(int64_t{num_rows} * dim);
  Project(block.wkv, xq, num_rows, kv);
  Normalise(kv, block.kv_norm, dim, num_rows, kv);
  Rotate(kv, num_rows, 1, dim, rope);
  WriteSwa(backend_, {.num_rows = num_rows, .dim = dim, .x = kv, .records = fresh});
}

// A ring keeps the newest ring_rows positions; of a longer segment only those are stored.
void Model::Impl::StoreRing(int32_t ring, const RowSet& rows, const uint8_t* fresh) {
  const int64_t record = SwaRecordBytes(config_.head_dim);
  for (const RowSet::Segment& segment : rows.segments) {
    const uint8_t* const own = fresh + segment.row_begin * record;
    TakeSnapshot(ring, segment, own);  // before older rows are overwritten
    uint8_t* const memory = segment.source->kv->Ring(ring);
    const int32_t end = segment.first_position + segment.row_end - segment.row_begin;
    for (int32_t p = std::max(FirstStored(ring, segment), end - shape_.ring_rows); p < end; ++p) {
      std::memcpy(memory + (p % shape_.ring_rows) * record,
                  own + (p - segment.first_position) * record, static_cast<size_t>(record));
    }
  }
}

// The first position whose own row goes into the ring.
int32_t Model::Impl::FirstStored(int32_t ring, const RowSet::Segment& segment) const {
  const bool encoder = ring < config_.FirstDecoderLayer();
  return std::max(segment.first_position, encoder ? segment.source->keep_rings_below : 0);
}

// fresh: the segment's own records of this ring.
void Model::Impl::TakeSnapshot(int32_t ring, const RowSet::Segment& segment,
                               const uint8_t* fresh) const {
  const SnapshotTarget& snapshot = segment.source->snapshot;
  if (snapshot.rows == nullptr || ring >= snapshot.num_rings) return;
  const int64_t record = SwaRecordBytes(config_.head_dim);
  const uint8_t* const old = segment.source->kv->Ring(ring);
  const int32_t stored = FirstStored(ring, segment), begin = snapshot.end - shape_.ring_rows;
  uint8_t* const to = snapshot.rows + ring * shape_.RingBytes();
  for (int32_t p = std::max(begin, 0); p < snapshot.end; ++p) {
    std::memcpy(to + (p - begin) * record,
                p >= stored ? fresh + (p - segment.first_position) * record
                            : old + (p % shape_.ring_rows) * record,
                static_cast<size_t>(record));
  }
}

void Model::Impl::Attend(const BlockWeights& block, int32_t ring, const RowSet& rows,
                         const RopeRows& rope, const int32_t* selection,
                         const std::optional<int32_t>& kv_source, bool draft) {
  const int32_t count = rows.num_rows(), heads = config_.num_attention_heads,
                dim = config_.head_dim;
  bf16* const q = q_.Get(int64_t{count} * heads * dim);
  Project(block.wq_b, qrq_.data(), count, q);
  Rotate(q, count, heads, dim, rope);
  const int64_t record = SwaRecordBytes(dim);
  uint8_t* const fresh = fresh_.Get(count * record);
  MakeSwaRecords(block, xq_.data(), count, rope, fresh);

  std::vector<AttentionSegment>& segments = attention_segments_;
  segments.clear();
  for (const RowSet::Segment& segment : rows.segments) {
    SequenceKv* const kv = segment.source->kv;
    segments.push_back({.row_begin = segment.row_begin,
                        .row_end = segment.row_end,
                        .first_position = segment.first_position,
                        .ring = kv->Ring(ring),
                        .ring_rows = shape_.ring_rows,
                        .fresh = fresh + segment.row_begin * record,
                        .global = kv_source ? kv->Source(*kv_source) : PagedSource{},
                        .bidirectional = draft});
  }
  bf16* const o = o_.Get(int64_t{count} * heads * dim);
  SparseAttention(backend_, {.num_tokens = count,
                             .num_heads = heads,
                             .head_dim = dim,
                             .window = config_.sliding_window,
                             .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim))),
                             .q = q,
                             .sink = block.attn_sink,
                             .window_begin = rows.window_begin.data(),
                             .selection = selection,
                             .topk = selection != nullptr ? config_.index_topk : 0,
                             .segments = segments.data(),
                             .num_segments = static_cast<int32_t>(segments.size()),
                             .out = o});
  if (!draft) StoreRing(ring, rows, fresh);  // a draft's own rows are guesses: not kept
  OutputProjection(block, o, count, rope);
}

// Inverse rotation, grouped low-rank projection (BF16 activations), then wo_b on the FP8 grid: y_
// [T, D].
void Model::Impl::OutputProjection(const BlockWeights& block, bf16* o, int32_t num_rows,
                                   const RopeRows& rope) {
  const int32_t heads = config_.num_attention_heads, dim = config_.head_dim;
  if (!DI_FAULT("no_inverse_rope")) {
    Rotate(o, num_rows, heads, dim, rope, /*inverse=*/true);
  }
  if (DI_FAULT("wo_a_fp8_activation")) {
    Quantise(backend_, {.num_tokens = num_rows, .dim = heads * dim, .x = o, .out = o});
  }
  const int32_t groups = config_.o_groups, rank = config_.o_lora_rank;
  const int64_t width = int64_t{groups} * rank;
  bf16* const z = z_.Get(num_rows * width);
  products_.clear();
  for (int32_t group = 0; group < groups; ++group) {
    const Matrix part = RowSlice(block.wo_a, group * rank, rank);
    products_.push_back({.num_tokens = num_rows,
                         .weight = part,
                         .x = o + int64_t{group} * part.cols,
                         .x_stride = int64_t{heads} * dim,
                         .out = z + int64_t{group} * rank,
                         .out_stride = width});
  }
  Linears(backend_, products_);
  Quantise(backend_,
           {.num_tokens = num_rows, .dim = static_cast<int32_t>(width), .x = z, .out = z});
  bf16* const y = y_.Get(int64_t{num_rows} * config_.hidden_size);
  Project(block.wo_b, z, num_rows, y);
}

}  // namespace deepinfer
