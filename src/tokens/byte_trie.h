// tokens/byte_trie.h: a trie over byte strings, each of which carries a value.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace deepinfer {

class ByteTrie {
 public:
  static constexpr int32_t kRoot = 0, kNone = -1;

  // The latest value of a word counts. Requires: value >= 0.
  void Add(std::string_view word, int32_t value);
  // The node one byte further, or kNone.
  int32_t Child(int32_t node, uint8_t byte) const {
    const auto it = children_.find(Key(node, byte));
    return it == children_.end() ? kNone : it->second;
  }
  // The value of the word that ends at a node, or kNone.
  int32_t value(int32_t node) const { return values_[static_cast<size_t>(node)]; }
  // Nodes are numbered so that a parent comes before its children.
  int32_t num_nodes() const { return static_cast<int32_t>(values_.size()); }
  bool empty() const { return values_.size() == 1; }

  // Calls visit(parent, byte, child) for every edge, in no particular order.
  template <typename Visit>
  void ForEachEdge(Visit visit) const {
    for (const auto& [key, child] : children_) {
      visit(static_cast<int32_t>(key >> 8), static_cast<uint8_t>(key & 0xFF), child);
    }
  }

 private:
  static uint64_t Key(int32_t node, uint8_t byte) {
    return static_cast<uint64_t>(node) << 8 | byte;
  }

  std::unordered_map<uint64_t, int32_t> children_;
  std::vector<int32_t> values_ = {kNone};
};

}  // namespace deepinfer
