// tests/grammar/probe.cc: structured output behind a pipe, for comparison with PyPI jsonschema.
//
// usage: grammar_probe TOKENIZER.json < requests > answers, both one JSON object a line
// A request: {"kind": "json_schema", "regex", "grammar" or "json_object", "text": "...",
//   "texts": [...], "walks": N, "seed": S}: which of the texts may come out whole, and what N
//   random
// walks through the masks give, each steered to an end from its 60th token on.
// The answer: {"code", "message"} for what is refused, else {"compile_us", "memory_bytes",
//   "taken": [true, ...], "walks": [text or null for one that did not end, ...],
//   "mask_us": [processor time of each mask]}.

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "base/cpu_time.h"
#include "base/disk.h"
#include "base/rng.h"
#include "tokens/control_tokens.h"
#include "tokens/grammar.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

constexpr int kSteerFrom = 60, kMaxTokens = 400;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "grammar_probe: %s\n", what.c_str());
  std::exit(1);
}

JsonValue Number(double value) {
  JsonValue out;
  out.kind = JsonValue::Kind::kNumber;
  out.text = StrCat(value);
  return out;
}

JsonValue Bool(bool value) {
  JsonValue out;
  out.kind = JsonValue::Kind::kBool;
  out.boolean = value;
  return out;
}

JsonValue Array() {
  JsonValue out;
  out.kind = JsonValue::Kind::kArray;
  return out;
}

int64_t Integer(const JsonValue& request, std::string_view key) {
  const JsonValue* value = request.Find(key);
  return value == nullptr ? 0 : std::atoll(value->text.c_str());
}

class Prober {
 public:
  explicit Prober(const std::string& path) {
    auto tokenizer = Tokenizer::Load(RealDisk(), path);
    if (!tokenizer.ok()) Fail(MessageOf(tokenizer.status()));
    tokenizer_ = std::move(tokenizer).value();
    end_id_ = tokenizer_->IdOf(kEosToken).value_or(1);
    auto vocabulary = GrammarVocabulary::Create(*tokenizer_, tokenizer_->vocab_size(), {end_id_});
    if (!vocabulary.ok()) Fail(MessageOf(vocabulary.status()));
    vocabulary_ = std::move(vocabulary).value();
    for (const std::string_view text : {"\"", "}", "]", ",", ":"}) {
      closers_.push_back(tokenizer_->Encode(text)[0]);
    }
  }

  JsonValue Answer(const JsonValue& request);

 private:
  bool Takes(const std::shared_ptr<const Grammar>& grammar, const std::string& text) const;
  JsonValue Walk(const std::shared_ptr<const Grammar>& grammar, Rng& rng, JsonValue& times) const;
  int32_t Pick(const std::vector<uint32_t>& mask, bool all, bool steer, Rng& rng) const;

  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const GrammarVocabulary> vocabulary_;
  int32_t end_id_ = 1;
  std::vector<int32_t> closers_;
};

StructuredOutput::Kind KindOf(std::string_view name) {
  if (name == "json_schema") return StructuredOutput::Kind::kJsonSchema;
  if (name == "regex") return StructuredOutput::Kind::kRegex;
  if (name == "grammar") return StructuredOutput::Kind::kGrammar;
  return StructuredOutput::Kind::kJsonObject;
}

JsonValue Prober::Answer(const JsonValue& request) {
  JsonValue answer = JsonValue::Object();
  const StructuredOutput structured{.kind = KindOf(request.Find("kind")->text),
                                    .text = request.Find("text")->text};
  const double start = ThreadCpuSeconds();
  const auto grammar = Grammar::Compile(structured, vocabulary_);
  if (!grammar.ok()) {
    answer.Set("code", JsonValue::String(grammar.status().code() == StatusCode::kUnimplemented
                                             ? "unsupported"
                                             : "invalid"));
    answer.Set("message", JsonValue::String(MessageOf(grammar.status())));
    return answer;
  }
  answer.Set("compile_us", Number((ThreadCpuSeconds() - start) * 1e6));
  answer.Set("memory_bytes", Number(static_cast<double>((*grammar)->memory_bytes())));
  JsonValue taken = Array(), walks = Array(), times = Array();
  if (const JsonValue* texts = request.Find("texts")) {
    for (const JsonValue& text : texts->items) {
      taken.items.push_back(Bool(Takes(*grammar, text.text)));
    }
  }
  SeededRng rng(static_cast<uint64_t>(Integer(request, "seed")));
  for (int64_t i = 0; i < Integer(request, "walks"); ++i) {
    walks.items.push_back(Walk(*grammar, rng, times));
  }
  answer.Set("taken", std::move(taken));
  answer.Set("walks", std::move(walks));
  answer.Set("mask_us", std::move(times));
  return answer;
}

bool Prober::Takes(const std::shared_ptr<const Grammar>& grammar, const std::string& text) const {
  GrammarMatcher matcher(grammar);
  for (const int32_t id : tokenizer_->Encode(text, {.added_tokens = false})) {
    if (!matcher.Accept(id)) return false;
  }
  return matcher.Accept(end_id_);
}

int32_t Prober::Pick(const std::vector<uint32_t>& mask, bool all, bool steer, Rng& rng) const {
  const auto allowed = [&](int32_t id) {
    return all || (mask[static_cast<size_t>(id / 32)] >> (id % 32) & 1) != 0;
  };
  if (allowed(end_id_) && (steer || rng.Uniform(8) == 0)) return end_id_;
  for (const int32_t id : closers_) {
    if (steer && allowed(id)) return id;
  }
  int64_t count = 0;
  for (const uint32_t word : mask) count += __builtin_popcount(word);
  if (all || count == 0) return end_id_;
  auto left = static_cast<int64_t>(rng.Uniform(static_cast<uint64_t>(count)));
  for (size_t word = 0; word < mask.size(); ++word) {
    const int here = __builtin_popcount(mask[word]);
    if (left >= here) {
      left -= here;
      continue;
    }
    for (int bit = 0; bit < 32; ++bit) {
      if ((mask[word] >> bit & 1) != 0 && left-- == 0) {
        return static_cast<int32_t>(word) * 32 + bit;
      }
    }
  }
  return end_id_;
}

JsonValue Prober::Walk(const std::shared_ptr<const Grammar>& grammar, Rng& rng,
                       JsonValue& times) const {
  GrammarMatcher matcher(grammar);
  std::vector<uint32_t> mask(static_cast<size_t>(vocabulary_->mask_words()));
  std::string text;
  for (int i = 0; i < kMaxTokens; ++i) {
    const double start = ThreadCpuSeconds();
    const bool some = matcher.FillMask(mask);
    times.items.push_back(Number((ThreadCpuSeconds() - start) * 1e6));
    const int32_t id = Pick(mask, !some, i >= kSteerFrom, rng);
    if (!matcher.Accept(id)) Fail("the mask allowed a token that is not accepted");
    if (matcher.ended()) return JsonValue::String(text);
    text += tokenizer_->BytesOf(id);
  }
  return JsonValue();
}

int Main(int argc, char** argv) {
  if (argc != 2) Fail("usage: grammar_probe TOKENIZER.json");
  Prober prober(argv[1]);
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = ParseJson(line);
    if (!request.ok()) Fail(MessageOf(request.status()));
    std::cout << DumpJson(prober.Answer(*request)) << "\n" << std::flush;
  }
  return 0;
}

}  // namespace
}  // namespace deepinfer

int main(int argc, char** argv) { return deepinfer::Main(argc, argv); }
