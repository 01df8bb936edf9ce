#include "tokens/stop_strings.h"

#include "base/check.h"

namespace deepinfer {
namespace {

size_t Index(int32_t i) { return static_cast<size_t>(i); }

}  // namespace

StatusOr<StopMatcher> StopMatcher::Create(const std::vector<std::string>& stops,
                                          bool include_stop) {
  StopMatcher matcher;
  matcher.include_stop_ = include_stop;
  for (size_t i = stops.size(); i-- > 0;) {  // of equal stops the first counts
    if (stops[i].empty()) {
      return InvalidArgument("stop string ", i, " is empty, at least one byte was expected");
    }
    matcher.trie_.Add(stops[i], static_cast<int32_t>(i));
  }
  for (const std::string& stop : stops) {
    matcher.lengths_.push_back(static_cast<int32_t>(stop.size()));
  }
  matcher.LinkFailures();
  return matcher;
}

// Aho and Corasick's failure links, level by level.
void StopMatcher::LinkFailures() {
  struct Edge {
    int32_t parent;
    uint8_t byte;
    int32_t child;
  };
  const size_t num_nodes = Index(trie_.num_nodes());
  std::vector<Edge> edges;
  trie_.ForEachEdge([&](int32_t parent, uint8_t byte, int32_t child) {
    edges.push_back({parent, byte, child});
  });
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.child < b.child; });
  depth_.assign(num_nodes, 0);
  for (const Edge& edge : edges) depth_[Index(edge.child)] = depth_[Index(edge.parent)] + 1;
  std::stable_sort(edges.begin(), edges.end(), [&](const Edge& a, const Edge& b) {
    return depth_[Index(a.child)] < depth_[Index(b.child)];
  });

  failure_.assign(num_nodes, ByteTrie::kRoot);
  match_.assign(num_nodes, ByteTrie::kNone);
  for (const auto& [parent, byte, child] : edges) {
    if (parent != ByteTrie::kRoot) failure_[Index(child)] = Step(failure_[Index(parent)], byte);
    const int32_t own = trie_.value(child);  // the longest that ends here, if any
    match_[Index(child)] = own != ByteTrie::kNone ? own : match_[Index(failure_[Index(child)])];
  }
}

// The node of the longest suffix of (node's string + byte) in the trie.
int32_t StopMatcher::Step(int32_t node, uint8_t byte) const {
  for (;;) {
    const int32_t child = trie_.Child(node, byte);
    if (child != ByteTrie::kNone) return child;
    if (node == ByteTrie::kRoot) return node;
    node = failure_[Index(node)];
  }
}

StopMatcher::Result StopMatcher::Add(std::string_view piece) {
  CHECK(!stopped_);
  Result result{std::move(held_)};
  held_.clear();
  for (const char c : piece) {
    result.text.push_back(c);
    node_ = Step(node_, static_cast<uint8_t>(c));
    const int32_t stop = match_[Index(node_)];
    if (stop == ByteTrie::kNone) continue;
    stopped_ = true;
    result.stop_idx = stop;
    if (!include_stop_) result.text.resize(result.text.size() - Index(lengths_[Index(stop)]));
    return result;
  }
  const size_t shown = result.text.size() - Index(depth_[Index(node_)]);
  held_ = result.text.substr(shown);
  result.text.resize(shown);
  return result;
}

std::string StopMatcher::Finish() {
  node_ = ByteTrie::kRoot;
  return std::exchange(held_, {});
}

}  // namespace deepinfer
