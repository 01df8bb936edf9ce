#include "apps/routing_load.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

RowSet Rows(int32_t count) {
  RowSet rows;
  for (int32_t p = 0; p < count; ++p) rows.positions.push_back(p);
  return rows;
}

TEST(RoutingLoad, CountsTheRowsThatAreAskedFor) {
  ModelConfig config;
  config.num_hidden_layers = 2;
  config.n_routed_experts = 4;
  config.num_experts_per_tok = 2;
  RoutingLoad load(config);
  // Row 2 of this pass is nobody's token.
  const int32_t first[] = {0, 1, 0, 2, 2, 3}, second[] = {1, 3, 1, 3, 0, 2};
  load.Routes(0, Rows(3), first, nullptr);
  load.Routes(1, Rows(3), second, nullptr);
  load.Count(0, 2);
  const int32_t third[] = {0, 3}, fourth[] = {0, 1};
  load.Routes(0, Rows(1), third, nullptr);
  load.Routes(1, Rows(1), fourth, nullptr);
  load.Count(0, 1);

  EXPECT_EQ(load.num_tokens(), 3);
  const double shares[2][4] = {{3, 1, 1, 1}, {1, 3, 0, 2}};
  for (int32_t layer = 0; layer < 2; ++layer) {
    for (int32_t expert = 0; expert < 4; ++expert) {
      EXPECT_DOUBLE_EQ(load.Share(layer, expert), shares[layer][expert] / 6) << layer << expert;
    }
    EXPECT_DOUBLE_EQ(load.MaxOverMean(layer), 2);
  }
}

}  // namespace
}  // namespace deepinfer
