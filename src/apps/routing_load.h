// apps/routing_load.h: which routed experts the tokens of forward passes went to, by layer.
//
// Given to Model::Forward as its observer; a pass without one does nothing of this. Draft blocks
// are not seen.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/forward_batch.h"

namespace deepinfer {

class RoutingLoad : public ForwardObserver {
 public:
  explicit RoutingLoad(const ModelConfig& config);

  void Routes(int32_t layer, const RowSet& rows, const int32_t* experts, const float* gap) override;
  // Counts rows [begin, end) of the last pass: a verification's rejected rows are nobody's tokens.
  // Requires: all its rows ran every layer.
  void Count(int32_t begin, int32_t end);

  int32_t num_layers() const { return static_cast<int32_t>(counts_.size()); }
  int32_t num_experts() const { return num_experts_; }
  int64_t num_tokens() const { return num_tokens_; }
  // Share of a layer's routes, 0..1; the shares of a layer add up to 1. Requires: num_tokens() > 0.
  double Share(int32_t layer, int32_t expert) const;
  // Load of a layer's busiest expert beside an even one: 1 at best, experts / top-k at worst.
  double MaxOverMean(int32_t layer) const;

 private:
  const int32_t num_experts_, topk_;
  int64_t num_tokens_ = 0;
  std::vector<std::vector<int32_t>> pass_;    // [layers] [rows of the last pass, top-k]
  std::vector<std::vector<int64_t>> counts_;  // [layers] [experts]
};

}  // namespace deepinfer
