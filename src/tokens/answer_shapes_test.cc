// Case 03: every shape in which models were seen to write tool calls, each with its expected
// result.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "tokens/answer_test_util.h"

namespace deepinfer {
namespace {

enum class Ending { kWhole, kNoBlockEnd, kNoCallEnd };

struct Shape {
  bool has_block;
  Ending ending;
  std::string_view block_name;
  int num_calls;
  bool before, between, after;  // text there
  bool self_closing;
};

struct Expected {
  std::string content;
  size_t num_calls;
  int num_malformed;
};

std::string TextOf(const Shape& shape) {
  std::string text;
  if (shape.before) text += "before";
  text += "\n\n";
  if (shape.has_block) text += Open(shape.block_name) + "\n";
  for (int i = 0; i < shape.num_calls; ++i) {
    if (i > 0 && shape.between) text += "between\n";
    const bool is_open = shape.ending == Ending::kNoCallEnd && i + 1 == shape.num_calls;
    if (shape.self_closing) {
      text += Open("invoke name=\"f\"/");
    } else {
      const std::string call = Invoke("f", TextParameter("k", "v"));
      text += is_open ? call.substr(0, call.rfind("</")) : call;
    }
    text += "\n";
  }
  if (shape.has_block && shape.ending == Ending::kWhole) text += Close(shape.block_name);
  if (shape.after) text += "\nafter";
  return text;
}

void Join(std::string& content, std::string_view text) {
  if (!content.empty()) content += "\n\n";
  content += text;
}

Expected ExpectedOf(const Shape& shape) {
  Expected expected{"", static_cast<size_t>(shape.num_calls), 0};
  const bool drops_last =
      shape.ending == Ending::kNoCallEnd && !shape.self_closing && shape.num_calls > 0;
  if (drops_last) {
    --expected.num_calls;
    ++expected.num_malformed;
  }
  if (shape.before) expected.content = "before";
  for (int i = 1; i < shape.num_calls && shape.between; ++i) Join(expected.content, "between");
  // Text after a call that does not end belongs to that call.
  if (shape.after && !drops_last) Join(expected.content, "after");
  // Without any tag there is no separator either.
  if (!shape.has_block && shape.num_calls == 0) {
    expected.content = shape.before ? "before\n\n" : "\n\n";
    if (shape.after) expected.content += "\nafter";
  }
  return expected;
}

std::vector<Shape> AllShapes() {
  std::vector<Shape> shapes;
  for (const bool has_block : {false, true})
    for (const Ending ending : {Ending::kWhole, Ending::kNoBlockEnd, Ending::kNoCallEnd})
      for (const std::string_view name : {"calls", "tool_calls", "function_calls"})
        for (int num_calls = 0; num_calls <= 3; ++num_calls)
          for (int prose = 0; prose < 8; ++prose)
            for (const bool self_closing : {false, true})
              shapes.push_back({has_block, ending, name, num_calls, (prose & 1) != 0,
                                (prose & 2) != 0, (prose & 4) != 0, self_closing});
  return shapes;
}

TEST(AnswerShapes, case_03_every_shape_gives_its_documented_result) {
  for (const Shape& shape : AllShapes()) {
    const std::string text = TextOf(shape);
    const Expected expected = ExpectedOf(shape);
    for (const bool in_thinking : {false, true}) {
      const std::string answered = (in_thinking ? "why</think>" : "") + text + kEos;
      const ParsedAnswer answer = ParseAllWays(answered, in_thinking);
      EXPECT_EQ(answer.reasoning, in_thinking ? "why" : "") << answered;
      EXPECT_EQ(answer.content, expected.content) << answered;
      EXPECT_EQ(answer.calls.size(), expected.num_calls) << answered;
      EXPECT_EQ(answer.num_malformed, expected.num_malformed) << answered;
      const std::string arguments = shape.self_closing ? "{}" : R"({"k": "v"})";
      for (const ParsedCall& call : answer.calls) {
        EXPECT_EQ(call, (ParsedCall{.name = "f", .arguments = arguments})) << answered;
      }
      ExpectNoLeak(answer, answered);
    }
  }
}

// Pieces of markup in any order: nothing leaks, and every way of cutting gives the same.
TEST(AnswerShapes, case_03_random_markup_never_leaks_and_cuts_do_not_matter) {
  const std::string pieces[] = {"text",
                                "\n",
                                "\n\n",
                                "<",
                                "</",
                                ">",
                                " ",
                                "\"",
                                "{}",
                                "/>",
                                "｜",
                                kM,
                                "<" + kM,
                                "</" + kM,
                                " calls>",
                                " invoke",
                                " name=\"f\">",
                                " parameter name=\"k\" string=\"true\">",
                                "</think>",
                                "<think>",
                                Open("calls"),
                                Close("calls"),
                                Open("invoke name=\"f\""),
                                Close("invoke"),
                                Open("invoke name=\"g\"/"),
                                Close("parameter"),
                                TextParameter("a", "1"),
                                JsonParameter("b", "[2]"),
                                Open("parameter name=\"c\" string=\"false\""),
                                kEos.substr(0, 10)};
  SeededRng rng(3);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (uint64_t i = rng.Uniform(24); i > 0; --i) text += pieces[rng.Uniform(std::size(pieces))];
    const bool in_thinking = rng.Uniform(2) == 1;
    const ParsedAnswer answer = ParseAllWays(text, in_thinking);
    ExpectNoLeak(answer, text);
    EXPECT_FALSE(HasMarkup(answer.reasoning)) << text;
  }
}

}  // namespace
}  // namespace deepinfer
