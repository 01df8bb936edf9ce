#include "request/answer_json.h"

#include <algorithm>
#include <optional>

#include "tokens/utf8.h"

namespace deepinfer {
namespace {

void WriteBytes(std::string_view bytes, JsonWriter& out) {
  out.Array();
  for (const char c : bytes) out.Int(int{static_cast<uint8_t>(c)});
  out.EndArray();
}

// The members of an object that the caller has opened.
void WriteToken(const TokenLogprob& token, const Tokenizer& tokenizer, JsonWriter& out) {
  out.Key("token").String(tokenizer.Decode(std::vector<int32_t>{token.id})).Key("logprob");
  WriteLogprob(token.logprob, out);
  out.Key("bytes");
  WriteBytes(tokenizer.BytesOf(token.id), out);
}

void WriteRanked(const TokenLogprob& token, std::optional<size_t> rank, const Tokenizer* tokenizer,
                 JsonWriter& out) {
  out.Key(StrCat(token.id)).Object().Key("logprob");
  WriteLogprob(token.logprob, out);
  out.Key("rank");
  if (rank) {
    out.Int(*rank);
  } else {
    out.Null();
  }
  out.Key("decoded_token");
  if (tokenizer != nullptr) {
    out.String(tokenizer->Decode(std::vector<int32_t>{token.id}));
  } else {
    out.Null();
  }
  out.EndObject();
}

std::optional<size_t> RankOf(int32_t id, const std::vector<TokenLogprob>& top) {
  for (size_t i = 0; i < top.size(); ++i) {
    if (top[i].id == id) return i + 1;
  }
  return std::nullopt;
}

}  // namespace

void WriteHead(const AnswerHead& head, JsonWriter& out) {
  out.Object().Key("id").String(head.id).Key("object").String(head.object);
  out.Key("created").Int(head.created).Key("model").String(head.model);
  out.Key("system_fingerprint").String(head.fingerprint);
}

void WriteUsage(const Usage& usage, JsonWriter& out) {
  out.Object().Key("prompt_tokens").Int(usage.prompt_tokens);
  out.Key("completion_tokens").Int(usage.output_tokens);
  out.Key("total_tokens").Int(usage.prompt_tokens + usage.output_tokens);
  out.Key("prompt_cache_hit_tokens").Int(usage.cached_tokens);
  out.Key("prompt_cache_miss_tokens").Int(usage.prompt_tokens - usage.cached_tokens);
  out.Key("prompt_tokens_details").Object().Key("cached_tokens").Int(usage.cached_tokens);
  out.EndObject();
  out.Key("completion_tokens_details").Object();
  out.Key("reasoning_tokens").Int(usage.reasoning_tokens).EndObject().EndObject();
}

void WriteIds(const std::vector<int32_t>& ids, JsonWriter& out) {
  out.Array();
  for (const int32_t id : ids) out.Int(id);
  out.EndArray();
}

std::string TokenLabel(int32_t id, const Tokenizer& tokenizer) {
  const std::string_view bytes = tokenizer.BytesOf(id);
  std::string repaired;
  RepairUtf8(bytes, repaired);
  if (repaired.empty()) return std::string(bytes);
  constexpr char kHex[] = "0123456789abcdef";
  std::string label = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    label += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
  return label;
}

void WriteLogprob(double logprob, JsonWriter& out) { out.Number(std::max(logprob, kLeastLogprob)); }

void WriteChatLogprobs(const std::vector<PositionLogprobs>& positions, const Tokenizer& tokenizer,
                       JsonWriter& out) {
  out.Array();
  for (const PositionLogprobs& position : positions) {
    out.Object();
    WriteToken(position.token, tokenizer, out);
    out.Key("top_logprobs").Array();
    for (const TokenLogprob& token : position.top) {
      out.Object();
      WriteToken(token, tokenizer, out);
      out.EndObject();
    }
    out.EndArray().EndObject();
  }
  out.EndArray();
}

void WritePromptLogprobs(const std::vector<PositionLogprobs>& positions, const Tokenizer* tokenizer,
                         JsonWriter& out) {
  out.Array().Null();
  for (const PositionLogprobs& position : positions) {
    out.Object();
    WriteRanked(position.token, RankOf(position.token.id, position.top), tokenizer, out);
    for (size_t i = 0; i < position.top.size(); ++i) {
      if (position.top[i].id == position.token.id) continue;
      WriteRanked(position.top[i], i + 1, tokenizer, out);
    }
    out.EndObject();
  }
  out.EndArray();
}

void WriteStopReason(const FinishEvent& finish, int32_t eos, JsonWriter& out) {
  if (!finish.matched_stop.empty()) {
    out.Key("stop_reason").String(finish.matched_stop);
  } else if (finish.matched_token_id && *finish.matched_token_id != eos) {
    out.Key("stop_reason").Int(*finish.matched_token_id);
  }
}

}  // namespace deepinfer
