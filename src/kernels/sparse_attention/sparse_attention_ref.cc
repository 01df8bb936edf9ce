// Oracle of SparseAttentionOp: the official online softmax over blocks of 64 slots, head by head.
//
// F32 where the official code stores F32 (scores, probabilities, running maximum and sums); the
// sums inside one product are F64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/fault.h"
#include "kernels/sparse_attention/sparse_attention.h"

namespace deepinfer {
namespace {

using Row = std::vector<float>;  // one decoded KV row [head_dim]; empty = slot without an entry

Row DecodeSwa(const uint8_t* record, int32_t dim) {
  Row row(static_cast<size_t>(dim));
  for (int32_t i = 0; i < dim; ++i) {
    row[static_cast<size_t>(i)] = E4m3ToFloat(record[i]) * E8m0ToFloat(record[dim + i / 32]);
  }
  return row;
}

Row DecodeGlobal(const uint8_t* record, int32_t dim) {
  Row row(static_cast<size_t>(dim));
  for (int32_t i = 0; i < dim; ++i) {
    const int code = i % 2 == 0 ? record[i / 2] & 15 : record[i / 2] >> 4;
    row[static_cast<size_t>(i)] =
        E2m1ToFloat(static_cast<uint8_t>(code)) * E4m3ToFloat(record[dim / 2 + i / 16]);
  }
  return row;
}

Row SwaRow(const AttentionSegment& segment, int32_t position, int32_t dim) {
  const int32_t fresh = position - segment.first_position;
  const uint8_t* record =
      fresh >= 0 ? segment.fresh + int64_t{fresh} * SwaRecordBytes(dim)
                 : segment.ring + int64_t{position % segment.ring_rows} * SwaRecordBytes(dim);
  return DecodeSwa(record, dim);
}

// The slot list of row t, in order.
std::vector<Row> Slots(const SparseAttentionParams& params, const AttentionSegment& segment,
                       int32_t t) {
  const int32_t dim = params.head_dim;
  const int32_t window = params.window - (DI_FAULT("window_minus_one") ? 1 : 0);
  const int32_t end = segment.bidirectional ? segment.first_position
                                            : segment.first_position + (t - segment.row_begin) + 1;
  std::vector<Row> slots;
  for (int32_t p = std::max({params.window_begin[t], end - window, 0}); p < end; ++p) {
    slots.push_back(SwaRow(segment, p, dim));
  }
  slots.resize(static_cast<size_t>(params.window));
  if (segment.bidirectional) {
    for (int32_t r = 0; r < segment.row_end - segment.row_begin; ++r) {
      slots.push_back(SwaRow(segment, segment.first_position + r, dim));
    }
  }
  for (int32_t k = 0; params.selection != nullptr && k < params.topk; ++k) {
    const int32_t entry = params.selection[int64_t{t} * params.topk + k];
    slots.push_back(entry < 0 ? Row() : DecodeGlobal(segment.global.GlobalRecord(entry, dim), dim));
  }
  return slots;
}

// What the online softmax of one head carries from block to block.
struct HeadState {
  float max = -1e30f;
  float denominator = 0;
  std::vector<float> sum;  // [head_dim]
};

float Score(const bf16* q, const Row& kv, float scale) {
  double dot = 0;
  for (size_t i = 0; i < kv.size(); ++i) dot += static_cast<double>(ToFloat(q[i])) * kv[i];
  return static_cast<float>(dot) * scale;
}

// One block: slots [begin, end) of the list.
void AddBlock(const bf16* q, const std::vector<Row>& slots, size_t begin, size_t end, float scale,
              HeadState& state) {
  std::vector<float> scores;
  float max = state.max;
  for (size_t s = begin; s < end; ++s) {
    scores.push_back(slots[s].empty() ? -std::numeric_limits<float>::infinity()
                                      : Score(q, slots[s], scale));
    max = std::max(max, scores.back());
  }
  const float correction = std::exp(state.max - max);
  std::vector<double> products(state.sum.size(), 0.0);
  double block_denominator = 0;
  for (size_t s = begin; s < end; ++s) {
    if (slots[s].empty()) continue;
    const float p = std::exp(scores[s - begin] - max);
    block_denominator += p;
    const double rounded = ToFloat(ToBf16(p));
    for (size_t i = 0; i < products.size(); ++i) products[i] += rounded * slots[s][i];
  }
  state.max = max;
  state.denominator = state.denominator * correction + static_cast<float>(block_denominator);
  for (size_t i = 0; i < products.size(); ++i) {
    state.sum[i] = state.sum[i] * correction + static_cast<float>(products[i]);
  }
}

void AttendHead(const bf16* q, const std::vector<Row>& slots, const SparseAttentionParams& params,
                float sink, bf16* out) {
  HeadState state;
  state.sum.assign(static_cast<size_t>(params.head_dim), 0.0f);
  for (size_t begin = 0; begin < slots.size(); begin += kAttentionBlock) {
    AddBlock(q, slots, begin, std::min(slots.size(), begin + kAttentionBlock), params.scale, state);
  }
  if (!DI_FAULT("no_sink")) state.denominator += std::exp(sink - state.max);
  for (size_t i = 0; i < state.sum.size(); ++i) out[i] = ToBf16(state.sum[i] / state.denominator);
}

}  // namespace

void SparseAttentionRef(const Backend&, const SparseAttentionParams& params) {
  for (int32_t s = 0; s < params.num_segments; ++s) {
    const AttentionSegment& segment = params.segments[s];
    for (int32_t t = segment.row_begin; t < segment.row_end; ++t) {
      const std::vector<Row> slots = Slots(params, segment, t);
      for (int32_t h = 0; h < params.num_heads; ++h) {
        const int64_t row = (int64_t{t} * params.num_heads + h) * params.head_dim;
        AttendHead(params.q + row, slots, params, params.sink[h], params.out + row);
      }
    }
  }
}

}  // namespace deepinfer
