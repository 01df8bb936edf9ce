// model/memory.cc: engram: n-gram rows looked up by token ids and mixed into the streams. Source:
// model.md 3.9.
#include "kernels/engram/engram.h"
#include "kernels/quantise/quantise.h"
#include "model/model_impl.h"

namespace deepinfer {

Status Model::Impl::EngramLayer(int32_t table, const RowSet& rows) {
  const auto layer = static_cast<size_t>(config_.engram_layer_ids[static_cast<size_t>(table)]);
  const EngramWeights& engram = weights_.layers[layer].engram;
  const int32_t count = rows.num_rows(), columns = config_.EngramColumns();
  const int32_t depth = engram_hash_->max_ngram();
  int32_t* const ids = engram_rows_.Get(int64_t{count} * columns);
  std::vector<int32_t> history(static_cast<size_t>(depth));
  for (const RowSet::Segment& segment : rows.segments) {
    const ForwardSegment& source = *segment.source;
    for (int32_t row = segment.row_begin; row < segment.row_end; ++row) {
      const int32_t position = segment.first_position + row - segment.row_begin;
      for (int32_t back = 0; back < depth; ++back) {
        const int32_t p = position - back;
        const bool dead = p < 0 || (source.image_mask != nullptr && source.image_mask[p] != 0);
        history[static_cast<size_t>(back)] =
            dead ? -1 : token_classes_[static_cast<size_t>(source.tokens[p])];
      }
      engram_hash_->Rows(table, history, ids + int64_t{row} * columns);
    }
  }
  observer_->EngramRows(table, rows, ids);

  const int32_t width = columns * config_.engram_head_dim;
  bf16* const x = engram_x_.Get(int64_t{count} * width);
  EngramGather(
      backend_,
      {.num_tokens = count, .columns = columns, .table = engram.table, .rows = ids, .out = x});
  Quantise(backend_, {.num_tokens = count, .dim = width, .x = x, .out = x});
  bf16* const kv = engram_kv_.Get(int64_t{count} * engram.wkv.rows);
  Project(engram.wkv, x, count, kv);
  std::vector<uint8_t> live;
  for (const uint8_t image : rows.is_image) live.push_back(image == 0 ? 1 : 0);
  EngramMix(backend_, {.num_tokens = count,
                       .num_streams = config_.hc_mult,
                       .dim = config_.hidden_size,
                       .eps = eps(),
                       .kv = kv,
                       .q_weight = engram.q_weight,
                       .k_weight = engram.k_weight,
                       .live = live.data(),
                       .streams = streams_.data()});
  return OkStatus();
}

}  // namespace deepinfer
