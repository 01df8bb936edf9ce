#include "tokens/byte_trie.h"

#include "base/check.h"

namespace deepinfer {

void ByteTrie::Add(std::string_view word, int32_t value) {
  CHECK_GE(value, 0);
  int32_t node = kRoot;
  for (const char c : word) {
    const auto [it, added] = children_.try_emplace(Key(node, static_cast<uint8_t>(c)), num_nodes());
    if (added) values_.push_back(kNone);
    node = it->second;
  }
  values_[static_cast<size_t>(node)] = value;
}

}  // namespace deepinfer
