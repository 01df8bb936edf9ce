// model/memory.cc: engram: n-gram rows looked up by token ids and mixed into the streams. Source:
// model.md 3.9.
#include "kernels/engram/engram.h"
#include "kernels/quantise/quantise.h"
#include "model/model_impl.h"

namespace deepinfer {

void Model::Impl::AnnounceEngramRows(const RowSet& all, const RowSet& kept) {
  const int32_t columns = config_.EngramColumns();
  announced_.clear();
  for (size_t table = 0; table < engram_ids_.size(); ++table) {
    const bool decoder = config_.engram_layer_ids[table] >= config_.FirstDecoderLayer();
    const RowSet& rows = decoder ? kept : all;
    const int64_t count = int64_t{rows.num_rows()} * columns;
    int32_t* const ids = engram_ids_[table].Get(count);
    HashRows(static_cast<int32_t>(table), rows, ids);
    announced_.emplace_back(ids, static_cast<size_t>(count));
  }
  if (engram_source_ != nullptr) engram_source_->Announce(announced_);
}

void Model::Impl::HashRows(int32_t table, const RowSet& rows, int32_t* ids) {
  history_.resize(static_cast<size_t>(engram_hash_->max_ngram()));
  for (const RowSet::Segment& segment : rows.segments) {
    const ForwardSegment& source = *segment.source;
    for (int32_t row = segment.row_begin; row < segment.row_end; ++row) {
      const int32_t position = segment.first_position + row - segment.row_begin;
      for (int32_t back = 0; back < std::ssize(history_); ++back) {
        const int32_t p = position - back;
        const bool dead = p < 0 || (source.image_mask != nullptr && source.image_mask[p] != 0);
        history_[static_cast<size_t>(back)] =
            dead ? -1 : token_classes_[static_cast<size_t>(source.tokens[p])];
      }
      engram_hash_->Rows(table, history_, ids + int64_t{row} * config_.EngramColumns());
    }
  }
}

StatusOr<EngramRows> Model::Impl::RowsOfTable(int32_t table) {
  if (engram_source_ != nullptr) return engram_source_->Rows(table);
  const auto at = static_cast<size_t>(table);
  const auto layer = static_cast<size_t>(config_.engram_layer_ids[at]);
  return EngramRows{weights_.layers[layer].engram.table, engram_ids_[at].data()};
}

Status Model::Impl::EngramLayer(int32_t table, const RowSet& rows) {
  const auto layer = static_cast<size_t>(config_.engram_layer_ids[static_cast<size_t>(table)]);
  const EngramWeights& engram = weights_.layers[layer].engram;
  const int32_t count = rows.num_rows(), columns = config_.EngramColumns();
  observer_->EngramRows(table, rows, engram_ids_[static_cast<size_t>(table)].data());
  DI_ASSIGN_OR_RETURN(const EngramRows source, RowsOfTable(table));
  const int32_t width = columns * config_.engram_head_dim;
  bf16* const x = engram_x_.Get(int64_t{count} * width);
  EngramGather(backend_, {.num_tokens = count,
                          .columns = columns,
                          .table = source.table,
                          .rows = source.ids,
                          .out = x});
  Quantise(backend_, {.num_tokens = count, .dim = width, .x = x, .out = x});
  bf16* const kv = engram_kv_.Get(int64_t{count} * engram.wkv.rows);
  Project(engram.wkv, x, count, kv);
  live_.clear();
  for (const uint8_t image : rows.is_image) live_.push_back(image == 0 ? 1 : 0);
  EngramMix(backend_, {.num_tokens = count,
                       .num_streams = config_.hc_mult,
                       .dim = config_.hidden_size,
                       .eps = eps(),
                       .kv = kv,
                       .q_weight = engram.q_weight,
                       .k_weight = engram.k_weight,
                       .live = live_.data(),
                       .streams = streams_.data()});
  return OkStatus();
}

}  // namespace deepinfer
