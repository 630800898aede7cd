#include "text/spm.h"

#include <algorithm>

#include "text/unicode.h"

namespace kz::text {

SpmEncoder::SpmEncoder(const SpmVocabulary& vocabulary) : vocabulary_(vocabulary) {
  for (int32_t id = 0; id < vocabulary_.tokens.size(); ++id) {
    if (vocabulary_.mergeable[static_cast<size_t>(id)]) longest_ = std::max(longest_, vocabulary_.tokens[id].size());
  }
}

int32_t SpmEncoder::find(std::string_view text) const {
  if (text.size() > longest_) return -1;
  const int32_t id = vocabulary_.tokens.find(text);
  return id >= 0 && vocabulary_.mergeable[static_cast<size_t>(id)] ? id : -1;
}

void SpmEncoder::encode(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const {
  MergeHeap<Order>& heap = scratch.heap;
  heap.clear();
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Step step = read_utf8(text, pos);
    const uint32_t length = step.kind == Utf8::valid ? step.length : 1;
    heap.add(find(text.substr(pos, length)), static_cast<uint32_t>(pos), static_cast<uint32_t>(pos + length));
    pos += length;
  }
  using Symbol = MergeHeap<Order>::Symbol;
  heap.merge([&](const Symbol& left, const Symbol& right, Proposal<Order>& proposal) {
    proposal.merged_id = find(text.substr(left.begin, right.end - left.begin));
    if (proposal.merged_id < 0) return false;
    proposal.order.score = vocabulary_.scores[static_cast<size_t>(proposal.merged_id)];
    return true;
  });
  heap.each([&](const Symbol& s) {
    if (s.id >= 0) {
      ids.push_back(s.id);
    } else {
      encode_bytes(text.substr(s.begin, s.end - s.begin), ids);
    }
  });
}

void SpmEncoder::encode_bytes(std::string_view symbol, std::vector<int32_t>& ids) const {
  const auto token = [&](char c) { return vocabulary_.byte_tokens[static_cast<unsigned char>(c)]; };
  if (std::all_of(symbol.begin(), symbol.end(), [&](char c) { return token(c) >= 0; })) {
    for (const char c : symbol) ids.push_back(token(c));
  } else if (vocabulary_.unknown >= 0) {
    ids.push_back(vocabulary_.unknown);
  }
}

}  // namespace kz::text
