#include "tokens/grammar_service.h"

#include <signal.h>

#include <future>

#include "base/disk.h"
#include "base/sanitizers.h"
#include "tokens/grammar_test_util.h"

namespace deepinfer {
namespace {

using Kind = StructuredOutput::Kind;
using Result = StatusOr<std::shared_ptr<const Grammar>>;

// With thousands of tokens, so that builds can be slow.
std::shared_ptr<const GrammarVocabulary> BundledVocabulary() {
  static const auto vocabulary = [] {
    const auto tokenizer =
        Tokenizer::Load(RealDisk(), DI_SOURCE_DIR "/models/nano/tokenizer.json").value();
    return GrammarVocabulary::Create(*tokenizer, tokenizer->vocab_size(), {1}).value();
  }();
  return vocabulary;
}

class GrammarServiceTest : public testing::Test {
 protected:
  void Start(GrammarServiceOptions options,
             std::shared_ptr<const GrammarVocabulary> vocabulary = SmallVocabulary()) {
    auto service = GrammarService::Start(std::move(vocabulary), options);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = std::move(service).value();
  }
  std::future<Result> Ask(Kind kind, std::string text) {
    auto promise = std::make_shared<std::promise<Result>>();
    service_->Get({.kind = kind, .text = std::move(text)},
                  [promise](Result result) { promise->set_value(std::move(result)); });
    return promise->get_future();
  }
  Result Get(Kind kind, std::string text) { return Ask(kind, std::move(text)).get(); }

  // With the bundled vocabulary takes many times the second that tests allow a build.
  static std::string Slow(int seed) {
    std::string text;
    for (int i = 0; i < 3; ++i) text += "([a-z]{0,120}[0-9]){1,128}";
    return StrCat(text, seed);
  }

  std::unique_ptr<GrammarService> service_;
};

// First, for memory that this process has free already does not count.
#if !DI_SANITIZED
TEST_F(GrammarServiceTest, ABuildPastItsMemoryFailsAloneAndTheNextOneSucceeds) {
  Start({.workers = 1, .limits = {.memory_bytes = 4096}});
  const Result large = Get(Kind::kRegex, Slow(2));
  EXPECT_EQ(large.status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(MessageOf(large.status()).find("the grammar is too large: building it takes "), 0u)
      << large.status();
  EXPECT_NE(MessageOf(large.status()).find("memory"), std::string::npos) << large.status();
  EXPECT_TRUE(Get(Kind::kRegex, "ab").ok());
}
#endif

TEST_F(GrammarServiceTest, BuildsOnceAndAnswersFromTheCacheInsideGet) {
  Start({.workers = 1});
  const Result first = Get(Kind::kJsonSchema, R"({"type": "boolean"})");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(Takes(*first, "true"));
  EXPECT_FALSE(Takes(*first, "null"));
  bool inside = false;
  service_->Get({.kind = Kind::kJsonSchema, .text = R"({"type": "boolean"})"},
                [&](Result result) { inside = result.ok() && *result == *first; });
  EXPECT_TRUE(inside);
  const GrammarServiceStats stats = service_->stats();
  EXPECT_EQ(stats.built, 1);
  EXPECT_EQ(stats.hits, 1);
  EXPECT_GT(stats.cached_bytes, 0);
}

TEST_F(GrammarServiceTest, RequestsForTheSameGrammarShareOneBuild) {
  Start({.workers = 1});
  std::vector<std::future<Result>> all;
  for (int i = 0; i < 5; ++i) all.push_back(Ask(Kind::kRegex, "a{1,20}b"));
  for (auto& one : all) EXPECT_TRUE(one.get().ok());
  EXPECT_EQ(service_->stats().built, 1);
  EXPECT_EQ(service_->stats().joined + service_->stats().hits, 4);
}

TEST_F(GrammarServiceTest, RefusalsTravelWithTheirCodeAndAreKept) {
  Start({.workers = 1});
  for (int i = 0; i < 2; ++i) {
    const Result refused = Get(Kind::kJsonSchema, R"({"contains": true})");
    EXPECT_EQ(refused.status().code(), StatusCode::kUnimplemented);
    EXPECT_EQ(MessageOf(refused.status()), "at /: keyword 'contains' is not supported");
  }
  EXPECT_EQ(Get(Kind::kRegex, "(").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(service_->stats().failed, 2);
  EXPECT_EQ(service_->stats().hits, 1);
}

TEST_F(GrammarServiceTest, ABuildPastItsTimeFailsAloneAndTheNextOneSucceeds) {
  Start({.workers = 1, .limits = {.cpu_s = 1, .wall_s = 1}}, BundledVocabulary());
  const Result slow = Get(Kind::kRegex, Slow(1));
  EXPECT_EQ(slow.status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(
      MessageOf(slow.status()).find("the grammar is too large: building it takes more than 1 s"),
      0u)
      << slow.status();
  EXPECT_TRUE(Get(Kind::kRegex, "ab").ok());
  EXPECT_EQ(service_->stats().restarts, 0);
}

TEST_F(GrammarServiceTest, AKilledBuilderIsReplaced) {
  Start({.workers = 1});
  ASSERT_TRUE(Get(Kind::kRegex, "a").ok());
  const int pid = service_->builder_pids()[0];
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  const Result next = Get(Kind::kRegex, "b");  // may still have met the dying one
  EXPECT_TRUE(next.ok() || next.status().code() == StatusCode::kInternal) << next.status();
  EXPECT_TRUE(Get(Kind::kRegex, "c").ok());
  EXPECT_NE(service_->builder_pids()[0], pid);
  EXPECT_EQ(service_->stats().restarts, 1);
}

TEST_F(GrammarServiceTest, TooManyWaitingBuildsAreRefusedAtOnce) {
  Start({.workers = 1, .limits = {.cpu_s = 1, .wall_s = 1}, .max_waiting = 2}, BundledVocabulary());
  std::vector<std::future<Result>> all;
  for (int i = 0; i < 5; ++i) all.push_back(Ask(Kind::kRegex, Slow(10 + i)));
  int rejected = 0;
  for (auto& one : all) rejected += one.get().status().code() == StatusCode::kResourceExhausted;
  EXPECT_GE(rejected, 2);
  EXPECT_EQ(service_->stats().rejected, rejected);
}

TEST_F(GrammarServiceTest, TheCacheKeepsToItsBytes) {
  Start({.workers = 1, .cache_bytes = 6000});
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Get(Kind::kRegex, StrCat("a", i)).ok());
  const GrammarServiceStats stats = service_->stats();
  EXPECT_GT(stats.evicted, 0);
  EXPECT_LE(stats.cached_bytes, 6000);
  ASSERT_TRUE(Get(Kind::kRegex, "a0").ok());  // gone, so built again
  EXPECT_EQ(service_->stats().built, 7);
}

TEST_F(GrammarServiceTest, StoppingAnswersWhoeverWaits) {
  Start({.workers = 1}, BundledVocabulary());
  auto running = Ask(Kind::kRegex, Slow(3)), waiting = Ask(Kind::kRegex, Slow(4));
  service_.reset();
  EXPECT_FALSE(running.get().ok());
  EXPECT_EQ(waiting.get().status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace deepinfer
