#include "apps/routing_load.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {

RoutingLoad::RoutingLoad(const ModelConfig& config)
    : num_experts_(config.n_routed_experts),
      topk_(config.num_experts_per_tok),
      pass_(static_cast<size_t>(config.num_hidden_layers)),
      counts_(pass_.size(), std::vector<int64_t>(static_cast<size_t>(num_experts_))) {}

void RoutingLoad::Routes(int32_t layer, const RowSet& rows, const int32_t* experts, const float*) {
  pass_[static_cast<size_t>(layer)].assign(experts, experts + int64_t{rows.num_rows()} * topk_);
}

void RoutingLoad::Count(int32_t begin, int32_t end) {
  CHECK(begin <= end);
  num_tokens_ += end - begin;
  const auto first = static_cast<size_t>(int64_t{begin} * topk_);
  const auto last = static_cast<size_t>(int64_t{end} * topk_);
  for (size_t layer = 0; layer < pass_.size(); ++layer) {
    CHECK(last <= pass_[layer].size());
    for (size_t i = first; i < last; ++i) {
      ++counts_[layer][static_cast<size_t>(pass_[layer][i])];
    }
  }
}

double RoutingLoad::Share(int32_t layer, int32_t expert) const {
  const int64_t count = counts_[static_cast<size_t>(layer)][static_cast<size_t>(expert)];
  return static_cast<double>(count) / static_cast<double>(num_tokens_ * topk_);
}

double RoutingLoad::MaxOverMean(int32_t layer) const {
  const std::vector<int64_t>& counts = counts_[static_cast<size_t>(layer)];
  const auto most = std::max_element(counts.begin(), counts.end()) - counts.begin();
  return Share(layer, static_cast<int32_t>(most)) * num_experts_;
}

}  // namespace deepinfer
