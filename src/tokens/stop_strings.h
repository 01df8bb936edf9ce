// tokens/stop_strings.h: finds stop strings in streamed text, also across the pieces' borders.
//
// The match is the occurrence that is complete first; of those ending at the same byte, the
// longest. So the result does not depend on how the text is cut. Held back is exactly what may
// still become the beginning of a match. A matcher compares bytes and takes linear time in the
// text. With min_tokens, the caller feeds only the text that comes after those tokens. Threads: one
// at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokens/byte_trie.h"

namespace deepinfer {

class StopMatcher {
 public:
  struct Result {
    std::string text;       // may be shown to the user now
    int32_t stop_idx = -1;  // index into `stops` once one is found, else -1
  };

  // include_stop: the text of a found stop string is given out too.
  // Errors: kInvalidArgument for an empty stop string.
  static StatusOr<StopMatcher> Create(const std::vector<std::string>& stops,
                                      bool include_stop = false);

  // Requires: not stopped. After a match the rest of `piece` is dropped.
  Result Add(std::string_view piece);
  // The end without a match: what was held back.
  std::string Finish();
  bool stopped() const { return stopped_; }
  int64_t held_bytes() const { return static_cast<int64_t>(held_.size()); }

 private:
  StopMatcher() = default;
  void LinkFailures();
  int32_t Step(int32_t node, uint8_t byte) const;

  ByteTrie trie_;
  std::vector<int32_t> depth_;    // per node: bytes from the root
  std::vector<int32_t> failure_;  // per node: node of its longest proper suffix in the trie
  std::vector<int32_t> match_;    // per node: longest stop that ends here, or -1
  std::vector<int32_t> lengths_;  // per stop, bytes
  bool include_stop_ = false;
  bool stopped_ = false;
  int32_t node_ = 0;
  std::string held_;  // the last depth_[node_] bytes of the text
};

}  // namespace deepinfer
