#include "tokens/bpe.h"

#include <queue>

#include "base/check.h"
#include "tokens/byte_alphabet.h"

namespace deepinfer {
namespace {

// C0, C1 and F5..FF are in no UTF-8 text.
bool OccursInUtf8(int byte) { return byte != 0xC0 && byte != 0xC1 && byte < 0xF5; }

// A piece as a doubly linked list of tokens. Merging two lets the left one grow over the right one.
struct Symbol {
  int32_t id;  // kGone once merged into its left neighbour
  int32_t previous, next;
};
constexpr int32_t kGone = -1, kEnd = -1;

// A merge that was possible when it was written down. Stale once either side has changed.
struct Candidate {
  int32_t rank, at;  // `at`: index of the left symbol
  int32_t left, right, merged;
  // Lowest rank first, then leftmost.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

Status NotInVocabulary(size_t rank, std::string_view what, std::string_view spelling) {
  return InvalidArgument("merge ", rank, " ", what, " \"", spelling,
                         "\", which is not in the vocabulary");
}

}  // namespace

StatusOr<Bpe> Bpe::Create(const TokenizerFile& file, const TokenMap& vocab) {
  std::unordered_set<int32_t> added;
  for (const AddedToken& token : file.added_tokens) added.insert(token.id);
  Bpe bpe;
  DI_RETURN_IF_ERROR(bpe.AddBytes(vocab, added));
  DI_RETURN_IF_ERROR(bpe.AddMerges(file, vocab, added));
  if (!file.ignore_merges) return bpe;
  for (const auto& [spelling, id] : vocab) {
    std::optional<std::string> bytes = BytesOfSpelling(spelling);
    if (bytes && !added.contains(id)) bpe.whole_pieces_.emplace(*std::move(bytes), id);
  }
  return bpe;
}

Status Bpe::AddBytes(const TokenMap& vocab, const std::unordered_set<int32_t>& added) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    const auto it = vocab.find(SpellBytes(bytes));
    byte_ids_[static_cast<size_t>(byte)] = it == vocab.end() ? -1 : it->second;
    if (it == vocab.end() && OccursInUtf8(byte)) {
      return InvalidArgument("byte ", byte,
                             " has no token: a byte-level vocabulary has all of them");
    }
    if (it != vocab.end() && added.contains(it->second)) {
      return Unimplemented("added token ", it->second, " is also the token of byte ", byte,
                           ": it would come out of plain text");
    }
  }
  return OkStatus();
}

Status Bpe::AddMerges(const TokenizerFile& file, const TokenMap& vocab,
                      const std::unordered_set<int32_t>& added) {
  merges_.reserve(file.merges.size());
  for (size_t rank = 0; rank < file.merges.size(); ++rank) {
    const auto& [left, right] = file.merges[rank];
    const auto left_it = vocab.find(left), right_it = vocab.find(right);
    if (left_it == vocab.end()) return NotInVocabulary(rank, "uses", left);
    if (right_it == vocab.end()) return NotInVocabulary(rank, "uses", right);
    const auto merged_it = vocab.find(left + right);
    if (merged_it == vocab.end()) return NotInVocabulary(rank, "makes", left + right);
    if (added.contains(merged_it->second)) {
      return Unimplemented("merge ", rank, " makes added token ", merged_it->second,
                           ": it would come out of plain text");
    }
    // Of two rules for a pair the later one counts, as in the library that writes these files.
    merges_.insert_or_assign(PairKey(left_it->second, right_it->second),
                             Merge{static_cast<int32_t>(rank), merged_it->second});
  }
  return OkStatus();
}

void Bpe::Encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (!whole_pieces_.empty()) {
    const auto it = whole_pieces_.find(piece);
    if (it != whole_pieces_.end()) return ids.push_back(it->second);
  }
  const auto size = static_cast<int32_t>(piece.size());
  std::vector<Symbol> symbols(piece.size());
  for (int32_t i = 0; i < size; ++i) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(piece[static_cast<size_t>(i)])];
    CHECK_GE(id, 0);
    symbols[static_cast<size_t>(i)] = {id, i - 1, i + 1 < size ? i + 1 : kEnd};
  }

  std::priority_queue<Candidate> queue;
  const auto consider = [&](int32_t at) {
    if (at == kEnd || symbols[static_cast<size_t>(at)].next == kEnd) return;
    const Symbol& left = symbols[static_cast<size_t>(at)];
    const Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (const Merge* merge = FindMerge(left.id, right.id)) {
      queue.push({merge->rank, at, left.id, right.id, merge->id});
    }
  };
  for (int32_t i = 0; i < size; ++i) consider(i);

  while (!queue.empty()) {
    const Candidate candidate = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<size_t>(candidate.at)];
    if (left.id != candidate.left || left.next == kEnd) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != candidate.right) continue;
    left.id = candidate.merged;
    left.next = right.next;
    right.id = kGone;
    if (left.next != kEnd) symbols[static_cast<size_t>(left.next)].previous = candidate.at;
    consider(left.previous);
    consider(candidate.at);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.id != kGone) ids.push_back(symbol.id);
  }
}

void CachedBpe::Append(std::string_view piece) {
  if (piece.size() > kMaxPieceBytes) return bpe_.Encode(piece, ids_);
  if (const auto it = seen_.find(piece); it != seen_.end()) {
    const auto [begin, count] = it->second;
    for (size_t i = begin; i < begin + count; ++i) ids_.push_back(int32_t{ids_[i]});
    return;
  }
  const size_t begin = ids_.size();
  bpe_.Encode(piece, ids_);
  if (seen_.size() < kMaxEntries) seen_.emplace(piece, Place{begin, ids_.size() - begin});
}

}  // namespace deepinfer
