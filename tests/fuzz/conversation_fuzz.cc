// The input is a conversation in OpenAI's JSON, on its way to token ids.
#include <algorithm>

#include "fuzz.h"
#include "tokens/answer_parser.h"
#include "tokens/control_tokens.h"
#include "tokens/conversation_json.h"
#include "tokens/prompt_encoder.h"

namespace deepinfer::fuzz {
namespace {

using Kind = PromptSegment::Kind;

const PromptTexts& TinyTexts() {
  static const auto* const texts = new PromptTexts(
      *ParsePromptTextsJson(RepositoryFile("tools/tiny/prompt_texts.json"), "prompt_texts.json"));
  return *texts;
}

int64_t Count(const RenderedPrompt& prompt, Kind kind) {
  return std::count_if(prompt.segments.begin(), prompt.segments.end(),
                       [kind](const PromptSegment& segment) { return segment.kind == kind; });
}

void CheckSegments(const RenderedPrompt& prompt) {
  CHECK(!prompt.segments.empty() && prompt.segments[0].text == kBosToken);
  for (size_t i = 0; i < prompt.segments.size(); ++i) {
    const PromptSegment& segment = prompt.segments[i];
    CHECK(!segment.text.empty() && IsUtf8(segment.text));
    if (i > 0 && segment.kind == Kind::kText) CHECK(prompt.segments[i - 1].kind != Kind::kText);
  }
  CHECK_EQ(Count(prompt, Kind::kImage), static_cast<int64_t>(prompt.image_urls.size()));
}

// Control tokens come from control segments alone, whatever the texts spell.
void CheckIds(const RenderedPrompt& prompt) {
  const Tokenizer& tokenizer = TinyTokenizer();
  const auto encoded = EncodePrompt(prompt, tokenizer);
  if (!encoded.ok()) return CheckRefusal(encoded.status());
  CHECK_EQ(tokenizer.Decode(encoded->ids), prompt.Text());
  CHECK_EQ(std::count_if(encoded->ids.begin(), encoded->ids.end(),
                         [&](int32_t id) { return tokenizer.IsAdded(id); }),
           Count(prompt, Kind::kControl) + Count(prompt, Kind::kImage));
  CHECK_EQ(encoded->image_idxs.size(), prompt.image_urls.size());
  for (const int64_t idx : encoded->image_idxs) {
    CHECK(tokenizer.TokenText(encoded->ids[static_cast<size_t>(idx)]) == kImageToken);
  }
}

// The rendered calls of a message, read as an answer. Requires: RenderPrompt accepts the message.
ParsedAnswer ReadBack(const Message& assistant) {
  Conversation conversation;
  conversation.messages = {Message{.content = {ContentPart::Text("?")}}, assistant};
  conversation.thinking.enabled = false;
  const auto prompt = RenderPrompt(conversation, TinyTexts());
  CHECK(prompt.ok());
  const AnswerTokens ids;
  std::vector<AnswerToken> answer;
  for (const PromptSegment& segment : prompt->segments) {
    if (segment.text == kThinkEndToken && segment.kind == Kind::kControl) answer.clear();
    const bool is_text = segment.kind == Kind::kText;
    const int32_t id = is_text ? 500 : segment.text == kDsmlToken ? ids.dsml : ids.eos;
    answer.push_back({id, segment.text});
  }
  answer.erase(answer.begin());  // the end of the thinking
  return ParseAnswer(answer, ids, /*in_thinking=*/false);
}

bool IsPlain(std::string_view name) { return name.find_first_of("\">") == name.npos; }

bool IsPlain(const ToolCall& call) {
  const auto& members = call.arguments.members;
  return call.arguments.IsObject() && IsPlain(call.name) && IsPlain(call.name_space) &&
         std::all_of(members.begin(), members.end(),
                     [](const JsonMember& member) { return IsPlain(member.key); });
}

// What the prompt encoder writes for calls is what the answer parser reads.
void CheckCalls(Message assistant) {
  const auto& calls = assistant.tool_calls;
  const auto is_plain = [](const ToolCall& call) { return IsPlain(call); };
  if (!std::all_of(calls.begin(), calls.end(), is_plain)) return;
  assistant.content = {ContentPart::Text("")};
  const ParsedAnswer answer = ReadBack(assistant);
  CHECK_EQ(answer.num_malformed, 0);
  CHECK_EQ(answer.calls.size(), calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    CHECK_EQ(answer.calls[i].name_space, calls[i].name_space);
    CHECK_EQ(answer.calls[i].name, calls[i].name);
    CHECK_EQ(answer.calls[i].arguments, DumpJson(calls[i].arguments));
  }
}

}  // namespace
}  // namespace deepinfer::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  const auto conversation = ParseMessages(fuzz::AsText(data, size));
  if (!conversation.ok()) {
    fuzz::CheckRefusal(conversation.status());
    return 0;
  }
  CHECK(!conversation->messages.empty());
  const auto prompt = RenderPrompt(*conversation, fuzz::TinyTexts());
  if (!prompt.ok()) {
    fuzz::CheckRefusal(prompt.status());
    return 0;
  }
  fuzz::CheckSegments(*prompt);
  fuzz::CheckIds(*prompt);
  for (const Message& message : conversation->messages) {
    if (!message.tool_calls.empty()) fuzz::CheckCalls(message);
  }
  return 0;
}
