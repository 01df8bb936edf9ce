#include "base/simulated_transport.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

using std::chrono::milliseconds;

class SimulatedTransportTest : public ::testing::Test {
 protected:
  // Answers with the request's type plus one and notes what came.
  void Serve(const std::string& address) {
    ASSERT_TRUE(net_.Listen(address,
                            [this](Frame request, Duration budget, Answer answer) {
                              arrived_.push_back(request.type);
                              budgets_.push_back(budget);
                              ++request.type;
                              answer(std::move(request));
                            })
                    .ok());
  }
  void Call(const std::string& address, uint8_t type, Duration budget = milliseconds(10)) {
    net_.Call(address, {.type = type}, clock_.Now() + budget,
              [this](StatusOr<Frame> result) { results_.push_back(std::move(result)); });
  }
  void Run(Duration d) { net_.RunUntil(clock_.Now() + d); }

  SimulatedClock clock_;
  SeededRng rng_{7};
  SimulatedTransport net_{clock_, rng_};
  std::vector<int> arrived_;
  std::vector<Duration> budgets_;
  std::vector<StatusOr<Frame>> results_;
};

TEST_F(SimulatedTransportTest, CallIsAnsweredOnceAndNotInsideCall) {
  Serve("a");
  Call("a", 5);
  EXPECT_TRUE(results_.empty());
  Run(milliseconds(100));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0]->type, 6);
  EXPECT_LT(budgets_[0], milliseconds(10));
  EXPECT_EQ(clock_.Now().ns, Duration(milliseconds(100)).count());
}

TEST_F(SimulatedTransportTest, NobodyThereIsUnavailable) {
  Call("a", 5);
  Run(milliseconds(100));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status().code(), StatusCode::kUnavailable);
}

TEST_F(SimulatedTransportTest, CutLinkEndsAtTheDeadlineAndMends) {
  Serve("a");
  net_.Cut("a");
  Call("a", 5);
  Run(milliseconds(10) - Duration(1));
  EXPECT_TRUE(results_.empty());
  Run(Duration(1));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(arrived_.empty());
  net_.Mend("a");
  Call("a", 6);
  Run(milliseconds(100));
  EXPECT_EQ(arrived_, std::vector<int>{6});
  EXPECT_TRUE(results_[1].ok());
}

TEST_F(SimulatedTransportTest, AnswerAfterTheDeadlineIsDropped) {
  Answer held;
  ASSERT_TRUE(net_.Listen("a", [&](Frame, Duration, Answer answer) { held = answer; }).ok());
  Call("a", 5);
  Run(milliseconds(100));
  held(Frame{});
  Run(milliseconds(100));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(SimulatedTransportTest, OneLaneKeepsItsOrder) {
  Serve("a");
  std::vector<int> sent;
  for (int i = 0; i < 100; ++i) {
    sent.push_back(i);
    Call("a", static_cast<uint8_t>(i));
  }
  Run(milliseconds(100));
  EXPECT_EQ(arrived_, sent);
}

TEST_F(SimulatedTransportTest, AddressIsTakenOnce) {
  Serve("a");
  EXPECT_EQ(net_.Listen("a", nullptr).code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace deepinfer
