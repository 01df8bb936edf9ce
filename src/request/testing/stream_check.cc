#include "request/testing/stream_check.h"

#include <gtest/gtest.h>

#include <set>

#include "request/testing/api_fixture.h"

namespace deepinfer::testing {
namespace {

void AppendEntries(const JsonValue* list, std::string& out) {
  if (list == nullptr) return;
  for (const JsonValue& entry : list->items) out += DumpJson(entry) + "\n";
}

void AppendIds(const JsonValue* list, std::string& out) {
  if (list == nullptr) return;
  for (const JsonValue& id : list->items) out += id.text + " ";
}

void ReadLogprobs(const JsonValue& choice, AssembledChoice& out) {
  AppendEntries(At(choice, "logprobs.content"), out.content_logprobs);
  AppendEntries(At(choice, "logprobs.reasoning_content"), out.reasoning_logprobs);
  AppendIds(At(choice, "token_ids"), out.token_ids);
}

class StreamReader {
 public:
  explicit StreamReader(bool include_usage) : include_usage_(include_usage) {}

  AssembledChat Read(std::string_view body) {
    const std::vector<std::string> events = DataOf(body);
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      const JsonValue chunk = Json(events[i]);
      ReadHead(chunk, i == 0);
      const JsonValue* choices = At(chunk, "choices");
      if (choices == nullptr) {
        ADD_FAILURE() << "no choices in " << events[i];
        continue;
      }
      const bool is_last = i + 2 == events.size();
      if (choices->items.empty()) {
        EXPECT_TRUE(include_usage_ && is_last) << events[i];
        chat_.usage = TextAt(chunk, "usage");
        EXPECT_TRUE(At(chunk, "usage") != nullptr && At(chunk, "usage")->IsObject());
      } else {
        EXPECT_EQ(TextAt(chunk, "usage"), include_usage_ ? "null" : "<absent>") << events[i];
      }
      for (const JsonValue& choice : choices->items) ReadChoice(choice);
      if (const JsonValue* seed = chunk.Find("seed")) chat_.seed = seed->text;
    }
    for (const auto& [index, choice] : chat_.choices) {
      EXPECT_NE(choice.finish_reason, "") << "choice " << index << " has no finish_reason";
    }
    EXPECT_EQ(chat_.usage.empty(), !include_usage_);
    return std::move(chat_);
  }

 private:
  void ReadHead(const JsonValue& chunk, bool first) {
    EXPECT_EQ(TextAt(chunk, "object"), "chat.completion.chunk");
    if (first) {
      chat_.id = TextAt(chunk, "id");
      chat_.model = TextAt(chunk, "model");
      chat_.created = TextAt(chunk, "created");
      chat_.fingerprint = TextAt(chunk, "system_fingerprint");
      AppendIds(At(chunk, "prompt_token_ids"), chat_.prompt_token_ids);
      AppendEntries(At(chunk, "prompt_logprobs"), chat_.prompt_logprobs);
    }
    EXPECT_EQ(TextAt(chunk, "id"), chat_.id);
    EXPECT_EQ(TextAt(chunk, "model"), chat_.model);
    EXPECT_EQ(TextAt(chunk, "created"), chat_.created);
    EXPECT_EQ(TextAt(chunk, "system_fingerprint"), chat_.fingerprint);
  }

  void ReadChoice(const JsonValue& choice) {
    const int index = std::stoi(TextAt(choice, "index"));
    const bool first = chat_.choices.count(index) == 0;
    AssembledChoice& out = chat_.choices[index];
    EXPECT_EQ(out.finish_reason, "") << "a chunk behind the finish of choice " << index;
    const JsonValue* delta = At(choice, "delta");
    ASSERT_NE(delta, nullptr);
    ASSERT_TRUE(delta->IsObject());
    if (first) {
      EXPECT_EQ(TextAt(*delta, "role"), "assistant");
      EXPECT_EQ(TextAt(*delta, "content"), "");
      EXPECT_EQ(delta->members.size(), 2u);
    } else {
      ReadDelta(*delta, out);
    }
    ReadLogprobs(choice, out);
    ASSERT_NE(At(choice, "finish_reason"), nullptr);
    ASSERT_NE(At(choice, "logprobs"), nullptr);
    if (!At(choice, "finish_reason")->IsNull()) {
      out.finish_reason = TextAt(choice, "finish_reason");
      EXPECT_TRUE(delta->members.empty());
      const std::set<std::string> known = {"stop", "length", "tool_calls"};
      EXPECT_EQ(known.count(out.finish_reason), 1u) << out.finish_reason;
    } else {
      EXPECT_FALSE(delta->members.empty()) << "an empty delta before the finish";
    }
  }

  static void ReadDelta(const JsonValue& delta, AssembledChoice& out) {
    if (delta.members.empty()) return;
    ASSERT_EQ(delta.members.size(), 1u) << DumpJson(delta);
    const auto& [key, value] = delta.members.front();
    if (key == "tool_calls") {
      ASSERT_FALSE(value.items.empty());
      for (const JsonValue& call : value.items) ReadCall(call, out);
      return;
    }
    EXPECT_TRUE(value.IsString() && !value.text.empty()) << DumpJson(delta);
    ASSERT_TRUE(key == "content" || key == "reasoning_content") << key;
    (key == "content" ? out.content : out.reasoning) += value.text;
  }

  static void ReadCall(const JsonValue& call, AssembledChoice& out) {
    const size_t index = std::stoul(TextAt(call, "index"));
    if (index == out.calls.size()) {
      EXPECT_EQ(TextAt(call, "type"), "function");
      EXPECT_EQ(TextAt(call, "function.arguments"), "");
      EXPECT_NE(TextAt(call, "id"), "<absent>");
      EXPECT_NE(TextAt(call, "function.name"), "<absent>");
      out.calls.push_back({TextAt(call, "id"), TextAt(call, "function.name"), ""});
      return;
    }
    ASSERT_EQ(index + 1, out.calls.size()) << "calls come one after the other";
    EXPECT_EQ(call.members.size(), 2u) << DumpJson(call);
    EXPECT_EQ(At(call, "function")->members.size(), 1u) << DumpJson(call);
    out.calls.back().arguments += TextAt(call, "function.arguments");
  }

  const bool include_usage_;
  AssembledChat chat_;
};

}  // namespace

std::vector<std::string> DataOf(std::string_view body) {
  std::vector<std::string> events;
  while (!body.empty()) {
    const size_t end = body.find("\n\n");
    EXPECT_NE(end, body.npos) << "an event without its blank line: " << body;
    if (end == body.npos) break;
    const std::string_view event = body.substr(0, end);
    body.remove_prefix(end + 2);
    if (event.starts_with(": ")) continue;
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    EXPECT_EQ(event.find('\n'), event.npos) << event;
    EXPECT_TRUE(events.empty() || events.back() != "[DONE]") << "an event behind [DONE]";
    events.emplace_back(event.substr(6));
  }
  EXPECT_TRUE(!events.empty() && events.back() == "[DONE]");
  return events;
}

AssembledChat ReadChatStream(std::string_view body, bool include_usage) {
  return StreamReader(include_usage).Read(body);
}

AssembledChat ReadWholeChat(std::string_view body) {
  const JsonValue value = Json(body);
  AssembledChat chat;
  EXPECT_EQ(TextAt(value, "object"), "chat.completion");
  chat.id = TextAt(value, "id");
  chat.model = TextAt(value, "model");
  chat.created = TextAt(value, "created");
  chat.fingerprint = TextAt(value, "system_fingerprint");
  chat.seed = TextAt(value, "seed");
  chat.usage = TextAt(value, "usage");
  AppendIds(At(value, "prompt_token_ids"), chat.prompt_token_ids);
  AppendEntries(At(value, "prompt_logprobs"), chat.prompt_logprobs);
  const JsonValue* choices = At(value, "choices");
  if (choices == nullptr) {
    ADD_FAILURE() << "no choices in " << body;
    return chat;
  }
  for (const JsonValue& choice : choices->items) {
    AssembledChoice& out = chat.choices[std::stoi(TextAt(choice, "index"))];
    const JsonValue* content = At(choice, "message.content");
    EXPECT_NE(content, nullptr) << "content must always be there";
    if (content != nullptr && content->IsString()) out.content = content->text;
    if (const JsonValue* reasoning = At(choice, "message.reasoning_content")) {
      out.reasoning = reasoning->text;
    }
    if (const JsonValue* calls = At(choice, "message.tool_calls")) {
      for (const JsonValue& call : calls->items) {
        EXPECT_EQ(TextAt(call, "type"), "function");
        out.calls.push_back({TextAt(call, "id"), TextAt(call, "function.name"),
                             TextAt(call, "function.arguments")});
      }
    }
    ReadLogprobs(choice, out);
    out.finish_reason = TextAt(choice, "finish_reason");
  }
  return chat;
}

AssembledChat Comparable(AssembledChat chat) {
  chat.id.clear();
  chat.created.clear();
  for (auto& [index, choice] : chat.choices) {
    for (AssembledCall& call : choice.calls) call.id.clear();
  }
  return chat;
}

}  // namespace deepinfer::testing
