#include "apps/serve_prompts.h"

#include <algorithm>
#include <cmath>

#include "apps/answer_collector.h"
#include "base/rng.h"

namespace deepinfer {
namespace {

constexpr int32_t kFirstId = 100;
constexpr std::string_view kWords[] = {
    "the",   "of",    "and",   "to",   "in",   "is",    "you",    "that", "it",    "he",
    "was",   "for",   "on",    "are",  "as",   "with",  "his",    "they", "at",    "be",
    "this",  "have",  "from",  "or",   "one",  "had",   "by",     "word", "but",   "not",
    "what",  "all",   "were",  "we",   "when", "your",  "can",    "said", "there", "use",
    "an",    "each",  "which", "she",  "do",   "how",   "their",  "if",   "will",  "up",
    "other", "about", "out",   "many", "then", "them",  "these",  "so",   "some",  "her",
    "would", "make",  "like",  "him",  "into", "time",  "has",    "look", "two",   "more",
    "write", "go",    "see",   "no",   "way",  "could", "people", "my",   "than",  "first",
    "water", "been",  "call",  "who",  "oil",  "its",   "now",    "find", "long",  "down",
    "day",   "did",   "get",   "come", "made", "may"};

// Of a part: the same for the same seed and id.
SeededRng PartRng(uint64_t seed, const PromptPart& part) {
  return SeededRng(seed * 0x9e3779b97f4a7c15u + part.id);
}

std::string_view DrawWord(Rng& rng) { return kWords[rng.Uniform(std::size(kWords))]; }

// "[101, 7, ...]", written out: a prompt may have a hundred thousand of them.
std::string IdPrompt(const PlannedRequest& request, const ServeBodyOptions& options) {
  const auto span = static_cast<uint64_t>(std::max(1, options.vocab_size - kFirstId));
  std::string text = "[";
  for (const PromptPart& part : request.prompt) {
    SeededRng rng = PartRng(options.seed, part);
    for (int32_t i = 0; i < part.num_tokens; ++i) {
      if (text.size() > 1) text += ',';
      AppendText(text, kFirstId + rng.Uniform(span));
    }
  }
  return text + "]";
}

// Words up to each part's end in tokens, so that equal beginnings stay equal texts. The overhead
// comes off the last part.
std::string WordPrompt(const PlannedRequest& request, const ServeBodyOptions& options) {
  std::string text;
  double num_tokens = 0, num_words = 0;
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    const PromptPart& part = request.prompt[i];
    SeededRng rng = PartRng(options.seed, part);
    num_tokens += part.num_tokens;
    if (i + 1 == request.prompt.size()) num_tokens -= options.words.overhead;
    for (; num_words < std::round(num_tokens / options.words.per_word); ++num_words) {
      if (!text.empty()) text += ' ';
      text += DrawWord(rng);
    }
  }
  return text.empty() ? std::string(kWords[0]) : text;
}

JsonValue Array(JsonValue item) {
  return {.kind = JsonValue::Kind::kArray, .items = {std::move(item)}};
}

JsonValue Bool(bool value) { return {.kind = JsonValue::Kind::kBool, .boolean = value}; }

JsonValue UserMessages(std::string text) {
  JsonValue message = JsonValue::Object();
  message.Set("role", JsonValue::String("user"));
  message.Set("content", JsonValue::String(std::move(text)));
  return Array(std::move(message));
}

}  // namespace

std::string ServeBody(const PlannedRequest& request, const ServeBodyOptions& options) {
  JsonValue body = JsonValue::Object();
  body.Set("model", JsonValue::String(options.model));
  if (options.api == ServeApi::kChat)
    body.Set("messages", UserMessages(WordPrompt(request, options)));
  body.Set("max_tokens", JsonNumber(int64_t{request.output_tokens}));
  body.Set("temperature", JsonNumber(options.temperature));
  if (options.ignore_eos) body.Set("ignore_eos", Bool(true));
  if (options.streams) {
    body.Set("stream", Bool(true));
    JsonValue stream_options = JsonValue::Object();
    stream_options.Set("include_usage", Bool(true));
    body.Set("stream_options", std::move(stream_options));
  }
  for (const JsonMember& member : options.extra.members) body.Set(member.key, member.value);
  std::string text = DumpJson(body);
  if (options.api == ServeApi::kCompletions && body.Find("prompt") == nullptr) {
    text.insert(1, StrCat("\"prompt\": ", IdPrompt(request, options), ", "));
  }
  return text;
}

std::string ProbeBody(int32_t num_words, const ServeBodyOptions& options) {
  SeededRng rng(options.seed);
  std::string text(DrawWord(rng));
  for (int32_t i = 1; i < num_words; ++i) text.append(" ").append(DrawWord(rng));
  JsonValue body = JsonValue::Object();
  body.Set("model", JsonValue::String(options.model));
  body.Set("messages", UserMessages(std::move(text)));
  body.Set("max_tokens", JsonNumber(int64_t{1}));
  return DumpJson(body);
}

}  // namespace deepinfer
