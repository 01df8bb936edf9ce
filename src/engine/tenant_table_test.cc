#include "engine/tenant_table.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(TenantTable, ANameKeepsItsNumberWhileItHasSequencesAndForAWhileAfter) {
  TenantTable table(1);
  const int32_t a = table.Take("a"), b = table.Take("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(table.Take("a"), a);
  EXPECT_EQ(table.GiveBack(a), -1);
  EXPECT_EQ(table.GiveBack(a), -1);
  EXPECT_EQ(table.Take("a"), a);  // was idle, is remembered
  EXPECT_EQ(table.GiveBack(a), -1);
  EXPECT_EQ(table.GiveBack(b), a);  // one idle tenant too many: the longest idle one goes
  EXPECT_EQ(table.Take("b"), b);
  EXPECT_EQ(table.Take("c"), a);
  EXPECT_NE(table.Take("a"), a);
}

TEST(TenantTable, AHundredThousandNamesTakeTheMemoryOfAFew) {
  TenantTable table(8);
  int32_t largest = 0;
  for (int32_t i = 0; i < 100'000; ++i) {
    const int32_t number = table.Take(std::to_string(i));
    largest = std::max(largest, number);
    table.GiveBack(number);
  }
  EXPECT_LE(largest, 8);
  EXPECT_EQ(table.size(), 8);
}

}  // namespace
}  // namespace deepinfer
