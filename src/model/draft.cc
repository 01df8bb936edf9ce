// model/draft.cc: the DSpark draft: its KV rows from the text model's features, and its proposals.
//
// Source: model.md 3.11. The block is bidirectional: every row sees the committed window and all
// block rows.
#include <algorithm>

#include "kernels/embedding/embedding.h"
#include "kernels/hyper_connection/hyper_connection.h"
#include "kernels/quantise/quantise.h"
#include "model/model_impl.h"

namespace deepinfer {

void Model::Impl::WriteDraftRows(const RowSet& rows, const bf16* main_hidden) {
  const int32_t count = rows.num_rows(), dim = config_.hidden_size;
  const int32_t width = weights_.main_proj.cols;
  bf16* const hidden = draft_x_.Get(int64_t{count} * width);
  Quantise(backend_, {.num_tokens = count, .dim = width, .x = main_hidden, .out = hidden});
  bf16* const x = x_.Get(int64_t{count} * dim);
  Project(weights_.main_proj, hidden, count, x);
  Normalise(x, weights_.main_norm, dim, count, x);
  bf16* const xq = xq_.Get(int64_t{count} * dim);
  Quantise(backend_, {.num_tokens = count, .dim = dim, .x = x, .out = xq});
  const RopeRows rope = MakeRopeRows(plain_freqs_, rows.positions, plain_cos_, plain_sin_);
  uint8_t* const fresh = fresh_.Get(int64_t{count} * SwaRecordBytes(config_.head_dim));
  for (int32_t i = 0; i < config_.num_nextn_predict_layers; ++i) {
    MakeSwaRecords(weights_.mtp[static_cast<size_t>(i)], xq, count, rope, fresh);
    StoreRing(config_.num_hidden_layers + i, rows, fresh);
  }
}

Status Model::Impl::Propose(std::span<const DraftRequest> requests, DraftChooser choose,
                            std::span<Draft> drafts) {
  CHECK_EQ(requests.size(), drafts.size());
  ForwardObserver quiet;
  observer_ = &quiet;
  MakeDraftRows(requests);
  const RowSet& rows = draft_rows_;
  const int32_t count = rows.num_rows(), dim = config_.hidden_size;
  Embed(rows);
  SetRopeRows(rows);
  for (int32_t i = 0; i < config_.num_nextn_predict_layers; ++i) {
    const BlockWeights& block = weights_.mtp[static_cast<size_t>(i)];
    SublayerInput(block.hc_attn, block.attn_norm, count, /*mix=*/true);
    QueryInput(block, count);
    Attend(block, config_.num_hidden_layers + i, rows, plain_rope_, nullptr, std::nullopt,
           /*draft=*/true);
    FinishSublayer(count, y_.data());
    DI_RETURN_IF_ERROR(FeedForwardSublayer(config_.num_hidden_layers + i, rows));
  }

  bf16* const h = collapsed_.Get(int64_t{count} * dim);
  HyperCollapse(backend_, {.num_tokens = count,
                           .num_streams = config_.hc_mult,
                           .dim = dim,
                           .streams = streams_.data(),
                           .pre = pre_.data(),
                           .out = h});
  bf16* const x = head_x_.Get(int64_t{count} * dim);
  Normalise(h, weights_.mtp_norm, dim, count, x);
  float* const logits = draft_logits_.Get(count * int64_t{config_.vocab_size});
  ProjectF32(weights_.head, x, count, logits);
  ChooseTokens(requests, h, logits, choose, drafts);
  return OkStatus();
}

// draft_rows_: a block of rows a request, the anchor first.
void Model::Impl::MakeDraftRows(std::span<const DraftRequest> requests) {
  const int32_t block_rows = config_.dspark_block_size;
  draft_segments_.clear();
  draft_segments_.reserve(requests.size());  // rows point into it
  RowSet& rows = draft_rows_;
  rows.Clear();
  for (const DraftRequest& request : requests) {
    const int32_t row = rows.num_rows();
    draft_segments_.push_back(
        {.kv = request.kv, .begin = request.position, .end = request.position + block_rows});
    rows.segments.push_back({&draft_segments_.back(), row, row + block_rows, request.position});
    for (int32_t k = 0; k < block_rows; ++k) {
      rows.positions.push_back(request.position + k);
      rows.tokens.push_back(k == 0 ? request.anchor : config_.dspark_noise_token_id);
      rows.window_begin.push_back(0);
      rows.is_image.push_back(0);
    }
  }
}

// The Markov correction is sequential in k: each guess biases the next.
// hidden [requests, g, D]; logits [requests, g, V], which are corrected in place.
void Model::Impl::ChooseTokens(std::span<const DraftRequest> requests, const bf16* hidden,
                               float* logits, DraftChooser choose, std::span<Draft> drafts) {
  const int32_t block_rows = config_.dspark_block_size, dim = config_.hidden_size;
  const int32_t rank = config_.dspark_markov_rank;
  const int64_t vocab = config_.vocab_size;
  const auto num_requests = static_cast<int32_t>(requests.size());
  previous_.clear();
  for (const DraftRequest& request : requests) previous_.push_back(request.anchor);
  for (Draft& draft : drafts) {
    draft.tokens.clear();
    draft.confidences.clear();
  }
  bf16* const pair = confidence_x_.Get(int64_t{num_requests} * (dim + rank));
  bf16* const bigram = bigram_.Get(int64_t{num_requests} * rank);
  float* const correction = markov_logits_.Get(num_requests * vocab);
  float* const confidence = confidence_.Get(num_requests);
  const std::vector<double>& temperatures = config_.dspark_confidence_temperatures;
  for (int32_t k = 0; k < block_rows; ++k) {
    const double temperature = temperatures.empty() ? 1 : temperatures[static_cast<size_t>(k)];
    for (int32_t r = 0; r < num_requests; ++r) {
      const bf16* const e =
          weights_.markov_embed.bf16_data() + int64_t{previous_[static_cast<size_t>(r)]} * rank;
      std::copy_n(e, rank, bigram + int64_t{r} * rank);
      bf16* const row = pair + int64_t{r} * (dim + rank);
      std::copy_n(hidden + int64_t{r * block_rows + k} * dim, dim, row);
      std::copy_n(e, rank, row + dim);
    }
    ProjectF32(weights_.markov_head, bigram, num_requests, correction);
    ProjectF32(weights_.confidence_proj, pair, num_requests, confidence);
    for (int32_t r = 0; r < num_requests; ++r) {
      float* const row = logits + (int64_t{r} * block_rows + k) * vocab;
      for (int64_t v = 0; v < vocab; ++v) row[v] += correction[r * vocab + v];
      const int32_t token = choose(r, k, {row, static_cast<size_t>(vocab)});
      Draft& draft = drafts[static_cast<size_t>(r)];
      draft.tokens.push_back(token);
      draft.confidences.push_back(static_cast<float>(confidence[r] / temperature));
      previous_[static_cast<size_t>(r)] = token;
    }
  }
}

}  // namespace deepinfer
