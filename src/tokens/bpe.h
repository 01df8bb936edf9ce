// tokens/bpe.h: byte-pair merges: the bytes of one piece to vocabulary ids.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "tokens/tokenizer_file.h"

namespace deepinfer {

// Spelling -> id; the keys are views of text that someone else owns.
using TokenMap = absl::flat_hash_map<std::string_view, int32_t, std::hash<std::string_view>>;

// Threads: immutable; any thread.
class Bpe {
 public:
  // `vocab` is used during the call only. Errors: kInvalidArgument if a byte that text can hold has
  // no token, or a merge names or makes something that is not in the vocabulary; kUnimplemented if
  // a merge or a byte makes an added token, because control tokens could then come out of plain
  // text.
  static StatusOr<Bpe> Create(const TokenizerFile& file, const TokenMap& vocab);

  // Appends the ids of one piece. Time n log n in its bytes.
  void Encode(std::string_view piece, std::vector<int32_t>& ids) const;

 private:
  struct Merge {
    int32_t rank, id;
  };
  struct TextHash {  // looks texts up without making a std::string
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  Status AddBytes(const TokenMap& vocab, const std::unordered_set<int32_t>& added);
  Status AddMerges(const TokenizerFile& file, const TokenMap& vocab,
                   const std::unordered_set<int32_t>& added);
  static uint64_t PairKey(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }
  const Merge* FindMerge(int32_t left, int32_t right) const {
    const auto it = merges_.find(PairKey(left, right));
    return it == merges_.end() ? nullptr : &it->second;
  }

  std::array<int32_t, 256>
      byte_ids_{};  // -1 for bytes that UTF-8 never holds and the vocabulary lacks
  absl::flat_hash_map<uint64_t, Merge> merges_;
  // By bytes; filled only with ignore_merges.
  std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> whole_pieces_;
};

// Encodes the pieces of one text; pieces that come again are copied from where they first came out.
class CachedBpe {
 public:
  // `ids` receives everything. Both must outlive this object; ids may be appended to in between.
  CachedBpe(const Bpe& bpe, std::vector<int32_t>& ids) : bpe_(bpe), ids_(ids) {}

  // `piece` must stay where it is in memory as long as this object lives.
  void Append(std::string_view piece);

 private:
  static constexpr size_t kMaxPieceBytes = 64, kMaxEntries = 1 << 16;
  struct Place {
    size_t begin, count;  // in ids_
  };
  const Bpe& bpe_;
  std::vector<int32_t>& ids_;
  std::unordered_map<std::string_view, Place> seen_;
};

}  // namespace deepinfer
