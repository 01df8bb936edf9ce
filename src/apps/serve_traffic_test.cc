#include "apps/serve_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "apps/serve_prompts.h"
#include "base/simulated_disk.h"

namespace deepinfer {
namespace {

std::vector<PlannedRequest> All(ServeTraffic& traffic) {
  std::vector<PlannedRequest> requests;
  while (auto request = traffic.Next()) requests.push_back(*std::move(request));
  return requests;
}

// ---- made-up traffic

TEST(RandomTraffic, IsTheSameForTheSameSeed) {
  RandomTrafficOptions options{.num_requests = 50,
                               .requests_per_s = 10,
                               .prompt = {.typical = 100, .spread = 0.5},
                               .output = {.typical = 20, .spread = 0.5},
                               .prefix_tokens = 30,
                               .num_prefixes = 3,
                               .seed = 7};
  const auto first = All(*MakeRandomTraffic(options)), again = All(*MakeRandomTraffic(options));
  options.seed = 8;
  const auto other = All(*MakeRandomTraffic(options));
  ASSERT_EQ(first.size(), 50u);
  bool differs = false;
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].due_s, again[i].due_s);
    EXPECT_EQ(first[i].prompt, again[i].prompt);
    EXPECT_EQ(first[i].output_tokens, again[i].output_tokens);
    differs = differs || first[i].due_s != other[i].due_s;
  }
  EXPECT_TRUE(differs);
}

TEST(RandomTraffic, UniformLengthsFillTheirRange) {
  const auto requests = All(*MakeRandomTraffic({.num_requests = 2000,
                                                .prompt = {.typical = 10, .spread = 0.2},
                                                .output = {.typical = 1, .spread = 0.9}}));
  std::set<int64_t> lengths, outputs;
  for (const PlannedRequest& request : requests) {
    lengths.insert(request.PromptTokens());
    outputs.insert(request.output_tokens);
    EXPECT_EQ(request.due_s, 0);
  }
  EXPECT_EQ(lengths, (std::set<int64_t>{8, 9, 10, 11, 12}));
  EXPECT_EQ(outputs, (std::set<int64_t>{1}));
}

TEST(RandomTraffic, LogNormalLengthsHaveTheirMedianAndTail) {
  const auto requests = All(*MakeRandomTraffic(
      {.num_requests = 20'000,
       .prompt = {.typical = 1000, .spread = 1, .shape = LengthDraw::Shape::kLogNormal},
       .output = {.typical = 5}}));
  std::vector<int64_t> lengths;
  for (const PlannedRequest& request : requests) lengths.push_back(request.PromptTokens());
  std::sort(lengths.begin(), lengths.end());
  EXPECT_NEAR(static_cast<double>(lengths[10'000]), 1000, 40);
  // One deviation above the median: 84.13 % are shorter.
  EXPECT_NEAR(static_cast<double>(lengths[16'827]), 1000 * std::exp(1.0), 120);
}

TEST(RandomTraffic, ArrivesAtItsRate) {
  const auto poisson = All(*MakeRandomTraffic({.num_requests = 20'000, .requests_per_s = 50}));
  double longer_than_mean = 0, last = 0;
  for (const PlannedRequest& request : poisson) {
    ASSERT_GE(request.due_s, last);
    longer_than_mean += request.due_s - last > 1.0 / 50 ? 1 : 0;
    last = request.due_s;
  }
  EXPECT_NEAR(last, 400, 12);
  EXPECT_NEAR(longer_than_mean / 20'000, std::exp(-1), 0.015);

  const auto constant =
      All(*MakeRandomTraffic({.num_requests = 5, .requests_per_s = 4, .constant_gaps = true}));
  for (size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(constant[i].due_s, 0.25 * static_cast<double>(i), 1e-9);
}

TEST(RandomTraffic, PromptsShareTheirPrefixAndNothingElse) {
  const auto requests = All(*MakeRandomTraffic({.num_requests = 100,
                                                .prompt = {.typical = 8},
                                                .output = {.typical = 1},
                                                .prefix_tokens = 64,
                                                .num_prefixes = 4}));
  std::set<uint64_t> prefixes, rests;
  for (const PlannedRequest& request : requests) {
    ASSERT_EQ(request.prompt.size(), 2u);
    prefixes.insert(request.prompt[0].id);
    rests.insert(request.prompt[1].id);
    EXPECT_EQ(request.PromptTokens(), 72);
  }
  EXPECT_EQ(prefixes.size(), 4u);
  EXPECT_EQ(rests.size(), 100u);
}

TEST(RandomTraffic, GoesOnWithoutEnd) {
  const auto traffic = MakeRandomTraffic({.prompt = {.typical = 3}});
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(traffic->Next());
}

// ---- traces

class Traces : public ::testing::Test {
 protected:
  StatusOr<std::vector<PlannedRequest>> Read(const std::string& text,
                                             const TraceOptions& options = {}) {
    EXPECT_TRUE(disk_.WriteText("trace", text).ok());
    DI_ASSIGN_OR_RETURN(const auto traffic, ReadTrace(disk_, "trace", options));
    return All(*traffic);
  }
  std::string Mistake(const std::string& text, const TraceOptions& options = {}) {
    return MessageOf(Read(text, options).status());
  }

  SimulatedDisk disk_;
};

constexpr char kMooncake[] =
    "{\"timestamp\": 1000, \"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [0, 1, 2]}\n"
    "{\"timestamp\": 3000, \"input_length\": 600, \"output_length\": 0, \"hash_ids\": [0, 9]}\n"
    "{\"timestamp\": 2500, \"input_length\": 40, \"output_length\": 8}\r\n";

TEST_F(Traces, ReadsMooncake) {
  const auto requests = Read(kMooncake);
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 3u);
  EXPECT_EQ((*requests)[0].due_s, 0);
  EXPECT_EQ((*requests)[0].prompt, (std::vector<PromptPart>{{0, 512}, {1, 512}, {2, 76}}));
  EXPECT_EQ((*requests)[1].due_s, 1.5) << "in the order of the times";
  EXPECT_EQ((*requests)[1].PromptTokens(), 40);
  EXPECT_EQ((*requests)[2].due_s, 2);
  EXPECT_EQ((*requests)[2].prompt, (std::vector<PromptPart>{{0, 512}, {9, 88}}));
  EXPECT_EQ((*requests)[2].output_tokens, 1);
}

TEST_F(Traces, ScalesTimesAndLengths) {
  const auto requests = Read(kMooncake, {.num_requests = 2, .speed = 2, .length_scale = 0.125});
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].prompt, (std::vector<PromptPart>{{0, 64}, {1, 64}, {2, 10}}));
  EXPECT_EQ((*requests)[0].output_tokens, 1);
  EXPECT_EQ((*requests)[1].due_s, 0.75);
}

TEST_F(Traces, ReadsAzure) {
  const auto requests = Read(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 23:59:59.5000000,374,44\r\n"
      "2023-11-17 00:00:01.2500000,10,109\r\n");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].PromptTokens(), 374);
  EXPECT_EQ((*requests)[0].output_tokens, 44);
  EXPECT_NEAR((*requests)[1].due_s, 1.75, 1e-6);
  EXPECT_NE((*requests)[0].prompt[0].id, (*requests)[1].prompt[0].id);
}

TEST_F(Traces, NamesTheLineOfAMistake) {
  const std::string good = R"({"timestamp": 0, "input_length": 5, "output_length": 5})";
  EXPECT_NE(Mistake(good + "\n{\"timestamp\": 0}").find("trace, line 2: expected \"input_length\""),
            std::string::npos);
  EXPECT_NE(Mistake(good + "\nnot json").find("trace, line 2: "), std::string::npos);
  EXPECT_NE(Mistake(R"({"timestamp": -1, "input_length": 5, "output_length": 5})").find("line 1"),
            std::string::npos);
  EXPECT_NE(Mistake("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2").find("line 2"),
            std::string::npos);
  EXPECT_NE(
      Mistake("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:17:03.9,1,2").find("line 2"),
      std::string::npos);
  EXPECT_NE(
      Mistake("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9,-1,2").find("line 2"),
      std::string::npos);
  EXPECT_NE(Mistake("").find("found no requests"), std::string::npos);
  EXPECT_NE(Mistake(kMooncake, {.block_tokens = 256}).find("does --trace-block-tokens fit?"),
            std::string::npos);
}

// The recorded traces themselves, where they lie beside the repository.
TEST(RealTraces, AreRead) {
  const std::string folder = DI_SOURCE_DIR "/../shared/data/traces/";
  if (!RealDisk().IsDirectory(folder)) GTEST_SKIP() << "no " << folder;
  struct Trace {
    const char* name;
    size_t num_requests;
  };
  for (const Trace& trace : {Trace{"mooncake_conversation_trace.jsonl", 12'031},
                             Trace{"mooncake_synthetic_trace.jsonl", 3'993},
                             Trace{"AzureLLMInferenceTrace_code.csv", 8'819},
                             Trace{"AzureLLMInferenceTrace_conv.csv", 19'366}}) {
    const auto traffic = ReadTrace(RealDisk(), folder + trace.name, {});
    ASSERT_TRUE(traffic.ok()) << traffic.status();
    const auto requests = All(**traffic);
    EXPECT_EQ(requests.size(), trace.num_requests) << trace.name;
    EXPECT_GT(requests.back().due_s, 600) << trace.name;
  }
}

// ---- bodies

JsonValue Body(const PlannedRequest& request, const ServeBodyOptions& options) {
  auto body = ParseJson(ServeBody(request, options));
  EXPECT_TRUE(body.ok()) << body.status();
  return *std::move(body);
}

std::vector<std::string> Ids(const JsonValue& body) {
  std::vector<std::string> ids;
  for (const JsonValue& id : body.Find("prompt")->items) ids.push_back(id.text);
  return ids;
}

TEST(ServeBody, EqualPartsAreEqualTokens) {
  const ServeBodyOptions options{.model = "m"};
  const auto first = Ids(Body({.prompt = {{5, 64}, {6, 10}}}, options));
  const auto second = Ids(Body({.prompt = {{5, 64}, {7, 10}}}, options));
  const auto shorter = Ids(Body({.prompt = {{5, 20}}}, options));
  ASSERT_EQ(first.size(), 74u);
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 64, second.begin()));
  EXPECT_FALSE(std::equal(first.begin() + 64, first.end(), second.begin() + 64));
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), first.begin()));
  ServeBodyOptions other = options;
  other.seed = 2;
  EXPECT_NE(Ids(Body({.prompt = {{5, 20}}}, other)), shorter);
  for (const std::string& id : first) {
    EXPECT_GE(std::stoi(id), 100);
    EXPECT_LT(std::stoi(id), options.vocab_size);
  }
}

size_t CountWords(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
}

std::string Content(const JsonValue& body) {
  return body.Find("messages")->items[0].Find("content")->text;
}

TEST(ServeBody, AChatHasAsManyWordsAsBringItsTokens) {
  const ServeBodyOptions options{
      .api = ServeApi::kChat, .model = "m", .words = {.overhead = 6, .per_word = 1.5}};
  EXPECT_EQ(CountWords(Content(Body({.prompt = {{1, 96}}}, options))), 60u);
  const std::string first = Content(Body({.prompt = {{1, 60}, {2, 36}}}, options));
  const std::string second = Content(Body({.prompt = {{1, 60}, {3, 36}}}, options));
  EXPECT_EQ(CountWords(first), 60u);
  size_t common = 0;
  while (first[common] == second[common]) ++common;
  EXPECT_GE(CountWords(first.substr(0, common)), 40u);
  EXPECT_LE(CountWords(first.substr(0, common)), 44u);
  EXPECT_EQ(CountWords(Content(Body({.prompt = {{1, 2}}}, options))), 1u) << "never empty";
}

TEST(ServeBody, SaysWhatIsAsked) {
  ServeBodyOptions options{.model = "m \"q\"", .temperature = 0.5};
  const PlannedRequest request{.prompt = {{1, 2}}, .output_tokens = 9};
  JsonValue body = Body(request, options);
  EXPECT_EQ(body.Find("model")->text, "m \"q\"");
  EXPECT_EQ(body.Find("max_tokens")->text, "9");
  EXPECT_EQ(body.Find("temperature")->text, "0.5");
  EXPECT_TRUE(body.Find("ignore_eos")->boolean);
  EXPECT_TRUE(body.Find("stream_options")->Find("include_usage")->boolean);

  options.streams = options.ignore_eos = false;
  options.extra = *ParseJson(R"({"max_tokens": 3, "user": "u", "prompt": "text"})");
  body = Body(request, options);
  EXPECT_EQ(body.Find("stream"), nullptr);
  EXPECT_EQ(body.Find("ignore_eos"), nullptr);
  EXPECT_EQ(body.Find("max_tokens")->text, "3");
  EXPECT_EQ(body.Find("user")->text, "u");
  EXPECT_EQ(body.Find("prompt")->text, "text");
}

}  // namespace
}  // namespace deepinfer
