#include "tokens/tokenizer.h"

#include <algorithm>

#include "base/check.h"
#include "base/sha256.h"
#include "tokens/added_tokens.h"
#include "tokens/bpe.h"
#include "tokens/byte_alphabet.h"
#include "tokens/pre_tokenizer.h"
#include "tokens/tokenizer_file.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

struct TokenInfo {
  std::string spelling;  // empty: the id has no token
  std::string bytes;
  bool added = false, special = false;
};

int32_t HighestId(const TokenizerFile& file) {
  int32_t highest = -1;
  for (const VocabEntry& entry : file.vocab) highest = std::max(highest, entry.id);
  for (const AddedToken& token : file.added_tokens) highest = std::max(highest, token.id);
  return highest;
}

}  // namespace

struct Tokenizer::Parts {
  std::string sha256;
  std::vector<TokenInfo> tokens;  // by id
  TokenMap ids;                   // by spelling, which `tokens` owns
  Bpe bpe;
  AddedTokens added;
  PreTokenizer pre_tokenizer;

  const TokenInfo* Find(int32_t id) const {
    const bool known = id >= 0 && static_cast<size_t>(id) < tokens.size();
    return known && !tokens[static_cast<size_t>(id)].spelling.empty()
               ? &tokens[static_cast<size_t>(id)]
               : nullptr;
  }
};

namespace {

// Fills the tables id -> token and spelling -> id. An added token may also stand in the vocabulary,
// under the same id. Errors: two tokens with one id, one spelling with two ids.
Status FillTables(const TokenizerFile& file, std::vector<TokenInfo>& tokens, TokenMap& ids) {
  tokens.resize(static_cast<size_t>(HighestId(file)) + 1);
  ids.reserve(file.vocab.size() + file.added_tokens.size());
  const auto add = [&](const std::string& spelling, int32_t id) {
    std::string& place = tokens[static_cast<size_t>(id)].spelling;
    if (!place.empty() && place != spelling) {
      return InvalidArgument("id ", id, " is given to \"", place, "\" and to \"", spelling, "\"");
    }
    if (place.empty()) place = spelling;
    const auto [it, is_new] = ids.try_emplace(place, id);
    if (is_new || it->second == id) return OkStatus();
    return InvalidArgument("token \"", spelling, "\" has two ids, ", it->second, " and ", id);
  };
  for (const VocabEntry& entry : file.vocab) {
    DI_RETURN_IF_ERROR(add(entry.spelling, entry.id));
    // An entry that is not in the byte alphabet stands for itself.
    tokens[static_cast<size_t>(entry.id)].bytes =
        BytesOfSpelling(entry.spelling).value_or(entry.spelling);
  }
  for (const AddedToken& token : file.added_tokens) {
    DI_RETURN_IF_ERROR(add(token.content, token.id));
    TokenInfo& info = tokens[static_cast<size_t>(token.id)];
    if (info.added) return InvalidArgument("added token ", token.id, " is listed twice");
    info.bytes = token.content;
    info.added = true;
    info.special = token.special;
  }
  return OkStatus();
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(Disk& disk, const std::string& path) {
  DI_ASSIGN_OR_RETURN(const std::string json, disk.ReadText(path));
  return Parse(json, path);
}

StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Parse(std::string_view json,
                                                      std::string_view where) {
  DI_ASSIGN_OR_RETURN(TokenizerFile file, ParseTokenizerFile(json, where));
  std::vector<TokenInfo> tokens;
  TokenMap ids;
  if (Status s = FillTables(file, tokens, ids); !s.ok()) return Annotate(s, where);
  StatusOr<Bpe> bpe = Bpe::Create(file, ids);
  if (!bpe.ok()) return Annotate(bpe.status(), where);
  StatusOr<PreTokenizer> pre_tokenizer = PreTokenizer::Create(file.split_patterns);
  if (!pre_tokenizer.ok()) return Annotate(pre_tokenizer.status(), where);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::make_unique<Parts>(
      Parts{ToHex(Sha256Of(json)), std::move(tokens), std::move(ids), std::move(bpe).value(),
            AddedTokens(std::move(file.added_tokens)), std::move(pre_tokenizer).value()})));
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(parts_->tokens.size()); }
const std::string& Tokenizer::sha256() const { return parts_->sha256; }

std::vector<int32_t> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  CHECK_LE(static_cast<int64_t>(text.size()), kMaxTextBytes);
  std::string repaired;
  text = RepairUtf8(text, repaired);
  std::vector<AddedTokens::Part> parts;
  if (options.added_tokens) {
    parts = parts_->added.Split(text, options.plain_ids);
  } else if (!text.empty()) {
    parts.push_back({{0, text.size()}, AddedTokens::kText});
  }

  std::vector<int32_t> ids;
  CachedBpe bpe(parts_->bpe, ids);
  for (const auto& [span, id] : parts) {
    if (id != AddedTokens::kText) {
      ids.push_back(id);
      continue;
    }
    const std::string_view inside = text.substr(span.begin, span.end - span.begin);
    for (const TextSpan& piece : parts_->pre_tokenizer.Split(inside)) {
      bpe.Append(inside.substr(piece.begin, piece.end - piece.begin));
    }
  }
  return ids;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes, repaired;
  for (const int32_t id : ids) {
    if (!skip_special || !IsSpecial(id)) bytes += BytesOf(id);
  }
  return std::string(RepairUtf8(bytes, repaired));
}

std::optional<int32_t> Tokenizer::IdOf(std::string_view token) const {
  const auto it = parts_->ids.find(token);
  if (it == parts_->ids.end()) return std::nullopt;
  return it->second;
}

std::string_view Tokenizer::TokenText(int32_t id) const {
  const TokenInfo* info = parts_->Find(id);
  return info == nullptr ? std::string_view() : info->spelling;
}

std::string_view Tokenizer::BytesOf(int32_t id) const {
  const TokenInfo* info = parts_->Find(id);
  return info == nullptr ? std::string_view() : info->bytes;
}

bool Tokenizer::HasId(int32_t id) const { return parts_->Find(id) != nullptr; }

bool Tokenizer::IsAdded(int32_t id) const {
  const TokenInfo* info = parts_->Find(id);
  return info != nullptr && info->added;
}

bool Tokenizer::IsSpecial(int32_t id) const {
  const TokenInfo* info = parts_->Find(id);
  return info != nullptr && info->special;
}

}  // namespace deepinfer
