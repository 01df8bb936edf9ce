#include "tokens/grammar.h"

#include <dlpack/dlpack.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/check.h"
#include "tokens/control_tokens.h"
#include "tokens/grammar_text.h"

namespace deepinfer {
namespace {

// Stands in the library's vocabulary for the marker of calls. No text reaches it, for no character
// has this byte: only a grammar that names the id.
constexpr char kUnreachable[] = "\xff";

std::string LibraryText(const Tokenizer& tokenizer, int32_t id, int32_t dsml_id) {
  if (id == dsml_id) return kUnreachable;
  if (!tokenizer.HasId(id) || tokenizer.IsAdded(id)) return "";  // "": never allowed
  return std::string(tokenizer.BytesOf(id));
}

// "[12:00:01] /a/b.cc:12: text" -> "text", the library's way of saying what is wrong.
std::string LibraryMessage(const std::exception& error) {
  std::string text = error.what();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (!text.starts_with("[")) return text;
  const size_t place = text.find(".cc:");
  const size_t end = place == std::string::npos ? place : text.find(": ", place);
  return end == std::string::npos ? text : text.substr(end + 2);
}

}  // namespace

struct GrammarVocabulary::Parts {
  xgrammar::TokenizerInfo info;
};

GrammarVocabulary::GrammarVocabulary() = default;
GrammarVocabulary::~GrammarVocabulary() = default;

StatusOr<std::shared_ptr<const GrammarVocabulary>> GrammarVocabulary::Create(
    const Tokenizer& tokenizer, int32_t vocab_size, std::vector<int32_t> end_ids) {
  if (vocab_size < tokenizer.vocab_size()) {
    return InvalidArgument("grammar vocabulary: ", vocab_size, " logits, expected at least the ",
                           tokenizer.vocab_size(), " of the tokenizer");
  }
  for (const int32_t id : end_ids) {
    if (id < 0 || id >= vocab_size) {
      return InvalidArgument("grammar vocabulary: end id ", id, ", expected 0..", vocab_size - 1);
    }
  }
  std::shared_ptr<GrammarVocabulary> vocabulary(new GrammarVocabulary);
  vocabulary->vocab_size_ = vocab_size;
  const auto dsml_id = tokenizer.IdOf(kDsmlToken);
  if (dsml_id && tokenizer.IsAdded(*dsml_id)) vocabulary->dsml_id_ = *dsml_id;
  std::vector<std::string> texts;
  for (int32_t id = 0; id < vocab_size; ++id) {
    texts.push_back(LibraryText(tokenizer, id, vocabulary->dsml_id_));
    vocabulary->usable_.push_back(!texts.back().empty());
  }
  for (const int32_t id : end_ids) vocabulary->usable_[static_cast<size_t>(id)] = true;
  vocabulary->end_ids_ = end_ids;
  vocabulary->parts_ = std::make_unique<Parts>(Parts{
      xgrammar::TokenizerInfo(texts, xgrammar::VocabType::RAW, vocab_size, std::move(end_ids))});
  return std::shared_ptr<const GrammarVocabulary>(std::move(vocabulary));
}

struct Grammar::Parts {
  xgrammar::CompiledGrammar compiled;
};

Grammar::Grammar(std::shared_ptr<const GrammarVocabulary> vocabulary, std::unique_ptr<Parts> parts)
    : vocabulary_(std::move(vocabulary)), parts_(std::move(parts)) {}
Grammar::~Grammar() = default;

StatusOr<std::shared_ptr<const Grammar>> Grammar::Compile(
    const StructuredOutput& structured, std::shared_ptr<const GrammarVocabulary> vocabulary) {
  DI_ASSIGN_OR_RETURN(const std::string text, GrammarTextOf(structured, vocabulary->dsml_id()));
  try {
    // One thread and no cache: this process serves one build.
    xgrammar::GrammarCompiler compiler(vocabulary->parts_->info, /*max_threads=*/1,
                                       /*cache_enabled=*/false);
    auto parts =
        std::make_unique<Parts>(Parts{compiler.CompileGrammar(xgrammar::Grammar::FromEBNF(text))});
    return std::shared_ptr<const Grammar>(new Grammar(std::move(vocabulary), std::move(parts)));
  } catch (const std::bad_alloc&) {
    return Unimplemented("the grammar is too large: building it takes too much memory");
  } catch (const std::exception& error) {
    return InvalidArgument("the grammar cannot be built: ", LibraryMessage(error));
  }
}

StatusOr<std::string> Grammar::Serialize() const {
  try {
    return parts_->compiled.SerializeJSON();
  } catch (const std::exception& error) {
    return DataLoss("the grammar cannot be written: ", LibraryMessage(error));
  }
}

StatusOr<std::shared_ptr<const Grammar>> Grammar::Deserialize(
    const std::string& text, std::shared_ptr<const GrammarVocabulary> vocabulary) {
  try {
    auto read = xgrammar::CompiledGrammar::DeserializeJSON(text, vocabulary->parts_->info);
    if (auto* compiled = std::get_if<xgrammar::CompiledGrammar>(&read)) {
      auto parts = std::make_unique<Parts>(Parts{std::move(*compiled)});
      return std::shared_ptr<const Grammar>(new Grammar(std::move(vocabulary), std::move(parts)));
    }
    const auto& error = std::get<xgrammar::SerializationError>(read);
    return std::visit(
        [](const auto& e) -> Status {
          return DataLoss("the grammar cannot be read: ", LibraryMessage(e));
        },
        error);
  } catch (const std::exception& error) {
    return DataLoss("the grammar cannot be read: ", LibraryMessage(error));
  }
}

int64_t Grammar::memory_bytes() const {
  return static_cast<int64_t>(parts_->compiled.MemorySizeBytes());
}

Status CheckStructuredOutput(const StructuredOutput& structured) {
  // Which id the marker has changes nothing about the text.
  return GrammarTextOf(structured, /*dsml_id=*/0).status();
}

struct GrammarMatcher::Parts {
  xgrammar::GrammarMatcher matcher;
};

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)),
      parts_(std::make_unique<Parts>(Parts{xgrammar::GrammarMatcher(grammar_->parts_->compiled)})) {
}
GrammarMatcher::~GrammarMatcher() = default;

bool GrammarMatcher::FillMask(std::span<uint32_t> mask) {
  CHECK_EQ(std::ssize(mask), grammar_->vocabulary().mask_words());
  CHECK(!ended());
  int64_t shape = std::ssize(mask);
  DLTensor tensor{};
  tensor.data = mask.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 1;
  tensor.dtype = xgrammar::GetBitmaskDLType();
  tensor.shape = &shape;
  return parts_->matcher.FillNextTokenBitmask(&tensor);
}

bool GrammarMatcher::Accept(int32_t id) {
  const GrammarVocabulary& vocabulary = grammar_->vocabulary();
  // The library prints a line for ids that it never takes; it is not asked.
  if (ended() || id < 0 || id >= vocabulary.vocab_size()) return false;
  if (!vocabulary.usable_[static_cast<size_t>(id)]) return false;
  return parts_->matcher.AcceptToken(id);
}

void GrammarMatcher::Rollback(int32_t count) {
  if (count > 0) parts_->matcher.Rollback(count);
}

bool GrammarMatcher::ended() const { return parts_->matcher.IsTerminated(); }

}  // namespace deepinfer
