// eval/dialogue_test_util.h: drawing exercises in tests, and checks that know nothing of how they
// were made.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/strings.h"
#include "eval/exercise.h"
#include "eval/json_equality.h"
#include "tokens/small_tokenizer_for_tests.h"

namespace deepinfer {

using Draw = StatusOr<Exercise> (*)(DrawContext&);

inline std::vector<Exercise> Drawn(Draw draw, Split split, uint64_t seed, int count,
                                   const Material* material = nullptr) {
  static const auto* const kTokenizer = Tokenizer::Parse(SmallTokenizerJson(), "small")->release();
  SeededRng rng(seed);
  DrawContext context{rng, split, 2048, *kTokenizer, material};
  std::vector<Exercise> exercises;
  for (int i = 0; i < count; ++i) {
    StatusOr<Exercise> exercise = draw(context);
    CHECK(exercise.ok());
    exercises.push_back(*std::move(exercise));
  }
  return exercises;
}

inline std::string TextOf(const Message& message) {
  std::string text;
  for (const ContentPart& part : message.content) text += part.text;
  return text;
}

inline std::string AnswerOf(const Exercise& exercise) { return TextOf(exercise.answer()); }

// What the answer answers: the last message of the user.
inline std::string AskOf(const Exercise& exercise) {
  const std::vector<Message>& messages = exercise.conversation.messages;
  for (size_t i = messages.size(); i-- > 0;) {
    if (messages[i].role == Role::kUser) return TextOf(messages[i]);
  }
  return "";
}

// Everything that the model may read before its last answer.
inline std::string PromptOf(const Exercise& exercise) {
  const Conversation& conversation = exercise.conversation;
  std::string text;
  for (const ToolDefinition& tool : conversation.tools) text += DumpJson(tool.function) + "\n";
  if (conversation.response_schema) text += DumpJson(*conversation.response_schema) + "\n";
  for (size_t i = 0; i + 1 < conversation.messages.size(); ++i) {
    text += TextOf(conversation.messages[i]) + "\n";
  }
  return text;
}

// The same draws twice, keys in the split asked for, no held-out key in training.
inline void CheckSplits(Draw draw, std::string_view task, int count) {
  const std::vector<Exercise> training = Drawn(draw, Split::kTraining, 3, count);
  const std::vector<Exercise> held_out = Drawn(draw, Split::kHeldOut, 4, count / 4);
  for (const Exercise& exercise : training) {
    ASSERT_EQ(exercise.task, task);
    ASSERT_EQ(SplitOf(task, exercise.key), Split::kTraining) << exercise.key;
    for (const std::string& key : exercise.earlier_keys) {
      ASSERT_EQ(SplitOf(task, key), Split::kTraining) << key;
    }
  }
  for (const Exercise& exercise : held_out) {
    ASSERT_EQ(SplitOf(task, exercise.key), Split::kHeldOut) << exercise.key;
    ASSERT_TRUE(exercise.earlier_keys.empty());
  }
  const std::vector<Exercise> again = Drawn(draw, Split::kTraining, 3, 50);
  for (size_t i = 0; i < again.size(); ++i) {
    ASSERT_EQ(again[i].key, training[i].key);
    ASSERT_EQ(PromptOf(again[i]), PromptOf(training[i]));
    ASSERT_EQ(AnswerOf(again[i]), AnswerOf(training[i]));
  }
}

// Whether the value is what the schema says: type, enum, properties, required, items.
inline bool Satisfies(const JsonValue& value, const JsonValue& schema) {
  const std::string& type = schema.Find("type")->text;
  if (type == "string" && !value.IsString()) return false;
  if (type == "boolean" && value.kind != JsonValue::Kind::kBool) return false;
  const bool is_number = value.kind == JsonValue::Kind::kNumber;
  if (type == "number" && !is_number) return false;
  if (type == "integer" && (!is_number || value.text.find('.') != std::string::npos)) return false;
  if (type == "array" && !value.IsArray()) return false;
  if (type == "object" && !value.IsObject()) return false;
  for (const JsonValue& item : value.items) {
    if (!Satisfies(item, *schema.Find("items"))) return false;
  }
  for (const JsonMember& member : value.members) {
    const JsonValue* const property = schema.Find("properties")->Find(member.key);
    if (property == nullptr || !Satisfies(member.value, *property)) return false;
  }
  if (const JsonValue* const required = schema.Find("required"); required != nullptr) {
    for (const JsonValue& key : required->items) {
      if (value.Find(key.text) == nullptr) return false;
    }
  }
  const JsonValue* const options = schema.Find("enum");
  if (options == nullptr) return true;
  for (const JsonValue& option : options->items) {
    if (SameJson(option, value)) return true;
  }
  return false;
}

// Every string and number in the value stands in the text; of what else there is, nothing is asked.
inline bool IsSpelledIn(const JsonValue& value, const std::string& text) {
  for (const JsonValue& item : value.items) {
    if (!IsSpelledIn(item, text)) return false;
  }
  for (const JsonMember& member : value.members) {
    if (!IsSpelledIn(member.value, text)) return false;
  }
  return value.text.empty() || text.find(value.text) != std::string::npos;
}

}  // namespace deepinfer
