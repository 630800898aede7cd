#include "text/special_tokens.h"

#include <algorithm>
#include <cstddef>

namespace kz::text {
namespace {

/// An occurrence of a string in the text; shorter ones may end at the same place.
struct Candidate {
  size_t end;
  uint32_t length;
  int32_t id;
  uint32_t node;
};

/// Longest first, then the lower id, then from left to right.
bool cut_before(const Candidate& a, const Candidate& b) {
  if (a.length != b.length) return a.length > b.length;
  if (a.id != b.id) return a.id < b.id;
  return a.end < b.end;
}

bool cut_after(const Candidate& a, const Candidate& b) { return cut_before(b, a); }

}  // namespace

SpecialTokens::SpecialTokens(std::vector<SpecialToken> tokens) {
  std::erase_if(tokens, [](const SpecialToken& t) { return t.text.empty() || t.text.size() > UINT32_MAX / 2; });
  if (tokens.empty()) return;
  std::sort(tokens.begin(), tokens.end(), [](const SpecialToken& a, const SpecialToken& b) {
    return a.text != b.text ? a.text < b.text : a.id < b.id;
  });
  const auto same = [](const SpecialToken& a, const SpecialToken& b) { return a.text == b.text; };
  tokens.erase(std::unique(tokens.begin(), tokens.end(), same), tokens.end());
  for (const SpecialToken& t : tokens) tokens_.push_back({t.id, t.always});
  build_trie(tokens);
  link_suffixes();
}

/// Nodes in breadth-first order: a node's children follow each other, so that the edge to node i is edge i - 1.
void SpecialTokens::build_trie(const std::vector<SpecialToken>& tokens) {
  struct Range {
    size_t first, last;  // the sorted strings that pass through a node
  };
  nodes_.push_back({});
  std::vector<Range> ranges{{0, tokens.size()}};
  for (size_t node = 0; node < nodes_.size(); ++node) {
    auto [first, last] = ranges[node];
    const uint32_t depth = nodes_[node].depth;
    if (tokens[first].text.size() == depth) nodes_[node].token = static_cast<int32_t>(first++);
    nodes_[node].first_edge = static_cast<uint32_t>(bytes_.size());
    while (first < last) {
      const char byte = tokens[first].text[depth];
      size_t end = first;
      while (end < last && tokens[end].text[depth] == byte) ++end;
      bytes_.push_back(static_cast<unsigned char>(byte));
      nodes_.push_back({.depth = depth + 1});
      ranges.push_back({first, end});
      first = end;
    }
    nodes_[node].n_edges = static_cast<uint32_t>(bytes_.size()) - nodes_[node].first_edge;
  }
  for (uint32_t i = 0; i < nodes_[0].n_edges; ++i) root_[bytes_[i]] = i + 1;
}

void SpecialTokens::link_suffixes() {
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    const Node& from = nodes_[node];
    for (uint32_t i = from.first_edge; i < from.first_edge + from.n_edges; ++i) {
      Node& child = nodes_[i + 1];
      child.fail = node == 0 ? 0 : next(from.fail, bytes_[i]);
      const Node& suffix = nodes_[child.fail];
      child.shorter = suffix.token >= 0 ? child.fail : suffix.shorter;
    }
  }
}

uint32_t SpecialTokens::edge(uint32_t node, unsigned char byte) const {
  if (node == 0) return root_[byte];
  const Node& n = nodes_[node];
  const auto first = bytes_.begin() + n.first_edge;
  const auto last = first + n.n_edges;
  const auto found = std::lower_bound(first, last, byte);
  return found != last && *found == byte ? static_cast<uint32_t>(found - bytes_.begin()) + 1 : 0;
}

uint32_t SpecialTokens::next(uint32_t node, unsigned char byte) const {
  for (;;) {
    if (const uint32_t to = edge(node, byte)) return to;
    if (node == 0) return 0;
    node = nodes_[node].fail;
  }
}

uint32_t SpecialTokens::longest_from(uint32_t node, bool parse_special) const {
  const auto wanted = [&](const Node& n) {
    return n.token >= 0 && (parse_special || tokens_[static_cast<size_t>(n.token)].always);
  };
  while (node != 0 && !wanted(nodes_[node])) node = nodes_[node].shorter;
  return node;
}

std::vector<SpecialMatch> SpecialTokens::find(std::string_view text, bool parse_special) const {
  if (nodes_.empty()) return {};
  const auto candidate = [&](size_t end, uint32_t node) {
    return Candidate{end, nodes_[node].depth, tokens_[static_cast<size_t>(nodes_[node].token)].id, node};
  };
  // One candidate for each place where a string ends: the longest that is still possible there.
  std::vector<Candidate> heap;
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    node = next(node, static_cast<unsigned char>(text[i]));
    if (const uint32_t match = longest_from(node, parse_special)) heap.push_back(candidate(i + 1, match));
  }
  if (heap.empty()) return {};
  std::make_heap(heap.begin(), heap.end(), cut_after);
  std::vector<bool> cut(text.size());
  std::vector<SpecialMatch> matches;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), cut_after);
    const Candidate best = heap.back();
    heap.pop_back();
    // What was cut before is at least as long, so it covers an end of this one if it overlaps it at all.
    const size_t begin = best.end - best.length;
    if (cut[best.end - 1]) continue;
    if (cut[begin]) {
      if (const uint32_t shorter = longest_from(nodes_[best.node].shorter, parse_special)) {
        heap.push_back(candidate(best.end, shorter));
        std::push_heap(heap.begin(), heap.end(), cut_after);
      }
      continue;
    }
    std::fill_n(cut.begin() + static_cast<std::ptrdiff_t>(begin), best.length, true);
    matches.push_back({begin, best.end, best.id});
  }
  std::sort(matches.begin(), matches.end(),
            [](const SpecialMatch& a, const SpecialMatch& b) { return a.begin < b.begin; });
  return matches;
}

int64_t SpecialTokens::size_bytes() const {
  return static_cast<int64_t>(nodes_.capacity() * sizeof(Node) + bytes_.capacity() +
                              tokens_.capacity() * sizeof(Token) + sizeof(root_));
}

}  // namespace kz::text
