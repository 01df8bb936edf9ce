#include "apps/request_json.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "tokens/conversation_json.h"
#include "tokens/json_fields.h"

namespace deepinfer {
namespace {

// Keys read elsewhere: by ReadConversation, or that only say how an API answers.
constexpr std::array kOtherKeys = std::to_array<std::string_view>(
    {"add_generation_prompt", "best_of", "chat_template_kwargs", "continue_final_message",
     "custom_id", "id", "messages", "model", "prompt", "prompt_token_ids", "reasoning_effort",
     "response_format", "stream", "stream_options", "thinking", "tools", "user"});

template <typename T>
bool ParseNumber(const JsonValue& value, T& out) {
  if (value.kind != JsonValue::Kind::kNumber) return false;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, out);
  return error == std::errc() && stop == end;
}

// Reads members of one object; remembers the first mistake and which keys were asked for.
class Reader {
 public:
  explicit Reader(const JsonValue& root) : root_(root) {}

  const Status& status() const { return status_; }

  template <typename T>
  bool Number(std::string_view key, T& out) {
    const JsonValue* value = Find(key);
    if (value == nullptr) return false;
    const bool whole = std::is_integral_v<T>;
    if (!ParseNumber(*value, out)) Complain(key, whole ? "a whole number" : "a number");
    return true;
  }
  template <typename T>
  void Number(std::string_view key, std::optional<T>& out) {
    T value{};
    if (Number(key, value)) out = value;
  }
  void Switch(std::string_view key, bool& out) {
    const JsonValue* value = Find(key);
    if (value == nullptr) return;
    if (value->kind != JsonValue::Kind::kBool) return Complain(key, "true or false");
    out = value->boolean;
  }
  void Text(std::string_view key, std::string& out) {
    const JsonValue* value = Find(key);
    if (value == nullptr) return;
    if (!value->IsString()) return Complain(key, "a string");
    out = value->text;
  }
  void Ids(std::string_view key, std::vector<int32_t>& out) {
    const JsonValue* value = Find(key);
    if (value == nullptr) return;
    out.clear();
    bool good = value->IsArray();
    for (const JsonValue& item : value->items) good &= ParseNumber(item, out.emplace_back());
    if (!good) Complain(key, "an array of token ids");
  }
  void Texts(std::string_view key, std::vector<std::string>& out) {
    const JsonValue* value = Find(key);
    if (value == nullptr) return;
    out.clear();
    if (value->IsString()) return out.push_back(value->text);
    bool good = value->IsArray();
    for (const JsonValue& item : value->items) {
      good &= item.IsString();
      out.push_back(item.text);
    }
    if (!good) Complain(key, "a string or an array of strings");
  }
  void Bias(std::string_view key, std::vector<std::pair<int32_t, double>>& out) {
    const JsonValue* value = Find(key);
    if (value == nullptr) return;
    out.clear();
    bool good = value->IsObject();
    for (const JsonMember& member : value->members) {
      auto& [id, bias] = out.emplace_back();
      good &= ParseNumber({.kind = JsonValue::Kind::kNumber, .text = member.key}, id);
      good &= ParseNumber(member.value, bias);
    }
    if (!good) Complain(key, "an object of token id: bias");
  }
  // A number of alternatives (completions), or true with top_logprobs (chat).
  void Logprobs(std::optional<int32_t>& out) {
    int32_t top = 0;
    Number("top_logprobs", top);
    const JsonValue* value = Find("logprobs");
    if (value != nullptr && value->kind == JsonValue::Kind::kBool) {
      out = value->boolean ? std::optional(top) : std::nullopt;
    } else {
      Number("logprobs", out);
    }
  }

  std::vector<std::string> KeysNobodyRead() const {
    std::vector<std::string> keys;
    for (const JsonMember& member : root_.members) {
      const auto is = [&](std::string_view known) { return known == member.key; };
      if (std::none_of(kOtherKeys.begin(), kOtherKeys.end(), is) &&
          std::none_of(read_.begin(), read_.end(), is)) {
        keys.push_back(member.key);
      }
    }
    return keys;
  }

 private:
  const JsonValue* Find(std::string_view key) {
    read_.push_back(key);
    const JsonValue* value = root_.Find(key);
    return value == nullptr || value->IsNull() ? nullptr : value;
  }
  void Complain(std::string_view key, std::string_view expected) {
    if (!status_.ok()) return;
    status_ = JsonField(root_.Find(key), std::string(key)).Unexpected(expected);
  }

  const JsonValue& root_;
  std::vector<std::string_view> read_;
  Status status_;
};

Status ReadSampling(Reader& reader, Request& request) {
  SamplingParams& s = request.sampling;
  reader.Number("max_tokens", request.max_tokens);
  reader.Number("max_completion_tokens", request.max_tokens);
  reader.Number("temperature", s.temperature);
  reader.Number("top_p", s.top_p);
  reader.Number("top_k", s.top_k);
  reader.Number("min_p", s.min_p);
  reader.Number("repetition_penalty", s.repetition_penalty);
  reader.Number("presence_penalty", s.presence_penalty);
  reader.Number("frequency_penalty", s.frequency_penalty);
  reader.Bias("logit_bias", s.logit_bias);
  reader.Number("seed", request.seed);
  reader.Number("n", request.num_choices);
  reader.Texts("stop", request.stop);
  reader.Ids("stop_token_ids", s.stop_token_ids);
  reader.Switch("include_stop_str_in_output", request.include_stop);
  reader.Switch("skip_special_tokens", request.skip_special_tokens);
  reader.Number("min_tokens", s.min_tokens);
  reader.Switch("ignore_eos", s.ignore_eos);
  reader.Ids("banned_token_ids", s.banned_token_ids);
  reader.Ids("forced_token_ids", s.forced_token_ids);
  reader.Logprobs(s.logprobs);
  reader.Number("prompt_logprobs", request.prompt_logprobs);
  reader.Text("tenant", request.tenant);
  reader.Text("cache_salt", request.cache_salt);
  reader.Number("priority", request.priority);
  reader.Number("start_deadline_ms", request.start_deadline_ms);
  int32_t best_of = 1;
  if (reader.Number("best_of", best_of) && best_of != 1) {
    return InvalidArgument("best_of: found ", best_of, ", only 1 is supported");
  }
  return reader.status();
}

Status ReadPrompt(const JsonValue& root, const Thinking& thinking, const LoadedEngine& engine,
                  Reader& reader, ParsedRequest& out) {
  const auto has = [&](std::string_view key) {
    const JsonValue* value = root.Find(key);
    return value != nullptr && !value->IsNull();
  };
  if (has("prompt") + has("prompt_token_ids") + has("messages") != 1) {
    return InvalidArgument("expected exactly one of prompt, prompt_token_ids and messages");
  }
  if (has("prompt_token_ids")) {
    reader.Ids("prompt_token_ids", out.request.prompt_ids);
    return reader.status();
  }
  if (has("prompt")) {
    DI_ASSIGN_OR_RETURN(const std::string text,
                        JsonField(root.Find("prompt"), "prompt").AsString());
    DI_ASSIGN_OR_RETURN(out.request.prompt_ids, engine.EncodeText(text));
    return OkStatus();
  }
  DI_ASSIGN_OR_RETURN(const Conversation conversation, ReadConversation(root, thinking));
  DI_ASSIGN_OR_RETURN(EncodedChat chat, engine.EncodeChat(conversation));
  out.request.prompt_ids = std::move(chat.ids);
  out.is_chat = true;
  out.in_thinking = chat.in_thinking;
  return OkStatus();
}

}  // namespace

StatusOr<ParsedRequest> ReadRequest(const JsonValue& root, const Request& defaults,
                                    const Thinking& thinking, const LoadedEngine& engine) {
  if (!root.IsObject()) {
    return InvalidArgument("expected an object, found ", KindName(root.kind));
  }
  ParsedRequest result{.request = defaults};
  Reader reader(root);
  DI_RETURN_IF_ERROR(ReadSampling(reader, result.request));
  DI_RETURN_IF_ERROR(ReadPrompt(root, thinking, engine, reader, result));
  result.ignored_keys = reader.KeysNobodyRead();
  return result;
}

}  // namespace deepinfer
