// Finds the tokens that are cut out of a text before anything else happens to it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kz::text {

/// A string to look for. `always` strings are found in any text, the others only when special tokens are parsed.
struct SpecialToken {
  std::string_view text;
  int32_t id = -1;
  bool always = false;
};

struct SpecialMatch {
  size_t begin = 0, end = 0;
  int32_t id = -1;
};

/// All strings at once, byte by byte (they need not be UTF-8): an Aho-Corasick automaton whose edges lie sorted in one
/// array. Longer strings win over shorter ones wherever they stand, equally long ones by the lower id; among matches
/// of one string the leftmost wins. This is what cutting out one string after the other, longest first, gives.
class SpecialTokens {
 public:
  SpecialTokens() = default;
  explicit SpecialTokens(std::vector<SpecialToken> tokens);

  /// Matches that do not overlap, in the order of the text. Memory grows with the text, not with the number of strings
  /// that end at one place; time is linear in the text for strings that do not nest.
  std::vector<SpecialMatch> find(std::string_view text, bool parse_special) const;

  int64_t size_bytes() const;

 private:
  struct Node {
    uint32_t first_edge = 0, n_edges = 0;
    uint32_t fail = 0;     // node of the longest proper suffix
    uint32_t shorter = 0;  // nearest node on the fail path that ends a string, 0 for none
    int32_t token = -1;    // index into ranks_, if a string ends here
    uint32_t depth = 0;
  };
  struct Token {
    int32_t id;
    bool always;
  };
  uint32_t edge(uint32_t node, unsigned char byte) const;  // 0: none
  void build_trie(const std::vector<SpecialToken>& tokens);
  void link_suffixes();
  uint32_t next(uint32_t node, unsigned char byte) const;
  /// The node itself or the nearest one on its way to the root that ends a wanted string; 0: none.
  uint32_t longest_from(uint32_t node, bool parse_special) const;

  std::vector<Node> nodes_;           // breadth first, node 0 is the root
  std::vector<unsigned char> bytes_;  // edge i leads to node i + 1 by this byte
  std::vector<Token> tokens_;
  std::array<uint32_t, 256> root_{};
};

}  // namespace kz::text
