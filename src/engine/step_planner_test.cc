#include "engine/step_planner.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

std::vector<std::vector<int32_t>> Plan(std::vector<SequenceView> views, int32_t max_rows) {
  std::vector<std::vector<int32_t>> rows;
  for (const PlannedRows& p : PlanStep(views, max_rows))
    rows.push_back({p.sequence, p.begin, p.end});
  return rows;
}

using Rows = std::vector<std::vector<int32_t>>;

TEST(StepPlanner, DecodingSequencesShareTheStepWithPrefillChunks) {
  EXPECT_EQ(Plan({{10, 0}, {8, 7}, {20, 5}, {3, 2}}, 16),
            (Rows{{0, 0, 10}, {1, 7, 8}, {2, 5, 9}, {3, 2, 3}}));
}

TEST(StepPlanner, DecodingRowsAreTakenBeforeEarlierPrompts) {
  EXPECT_EQ(Plan({{10, 0}, {8, 7}}, 2), (Rows{{0, 0, 1}, {1, 7, 8}}));
  EXPECT_EQ(Plan({{10, 0}, {10, 0}, {8, 7}}, 3), (Rows{{0, 0, 2}, {2, 7, 8}}));
}

TEST(StepPlanner, ALimitOfItsOwnLeavesRoomForOthers) {
  EXPECT_EQ(Plan({{.num_tokens = 10, .max_rows = 4}, {10, 0}}, 12), (Rows{{0, 0, 4}, {1, 0, 8}}));
}

TEST(StepPlanner, EveryStepMakesProgress) {
  for (int32_t max_rows = 3; max_rows < 9; ++max_rows) {
    std::vector<SequenceView> views = {{17, 0}, {5, 0}, {9, 8}};
    int steps = 0;
    while (views[0].num_computed < 17 || views[1].num_computed < 5) {
      int32_t rows = 0;
      std::vector<SequenceView> open;
      for (const SequenceView& v : views) {
        if (v.num_computed < v.num_tokens) open.push_back(v);
      }
      for (const PlannedRows& p : PlanStep(open, max_rows)) {
        rows += p.end - p.begin;
        for (SequenceView& v : views) {
          if (v.num_tokens == open[static_cast<size_t>(p.sequence)].num_tokens)
            v.num_computed = p.end;
        }
      }
      EXPECT_GT(rows, 0);
      EXPECT_LE(rows, max_rows);
      ASSERT_LT(++steps, 30);
    }
  }
}

}  // namespace
}  // namespace deepinfer
