// Merging neighbours by priority: the part that byte-level BPE and SentencePiece BPE share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace kz::text {

/// A possible merge of two neighbours: the smallest (order, left) comes first.
template <class Order>
struct Proposal {
  Order order;
  int32_t merged_id;  ///< what they become
  uint32_t left;      ///< index of the left symbol
  uint32_t end;       ///< where the right one ended when this was proposed
};

/// Symbols in a doubly linked list, merged pair by pair with a heap whose entries are dropped when a neighbour has
/// changed since. n log n for n symbols; all memory is kept for the next word.
template <class Order>
class MergeHeap {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  struct Symbol {
    int32_t id;
    uint32_t previous, next;
    uint32_t begin, end;  ///< bytes of the word
  };

  void clear() { symbols_.clear(); }
  void add(int32_t id, uint32_t begin, uint32_t end) {
    const auto i = static_cast<uint32_t>(symbols_.size());
    if (i > 0) symbols_.back().next = i;
    symbols_.push_back({id, i == 0 ? kNone : i - 1, kNone, begin, end});
  }

  /// Merges until nothing is left to merge. propose(left symbol, right symbol, proposal) sets order and merged_id and
  /// returns true when the two may become one.
  template <class Propose>
  void merge(Propose&& propose) {
    heap_.clear();
    for (uint32_t i = 0; i + 1 < symbols_.size(); ++i) push(i, propose, false);
    std::make_heap(heap_.begin(), heap_.end(), later);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const Proposal<Order> best = heap_.back();
      heap_.pop_back();
      Symbol& left = symbols_[best.left];
      // Both only ever grow to the right, so the end tells whether they are still the same two.
      if (left.id == kGone || left.next == kNone || symbols_[left.next].end != best.end) continue;
      join(left, best);
      if (left.previous != kNone) push(left.previous, propose, true);
      push(best.left, propose, true);
    }
  }

  /// The symbols that are left, in order.
  template <class Visit>
  void each(Visit&& visit) const {
    for (uint32_t i = symbols_.empty() ? kNone : 0; i != kNone; i = symbols_[i].next) visit(symbols_[i]);
  }

 private:
  static constexpr int32_t kGone = std::numeric_limits<int32_t>::min();  // the id of no symbol

  static bool later(const Proposal<Order>& a, const Proposal<Order>& b) {
    return b.order < a.order || (!(a.order < b.order) && b.left < a.left);
  }

  void join(Symbol& left, const Proposal<Order>& best) {
    Symbol& right = symbols_[left.next];
    left.id = best.merged_id;
    left.end = right.end;
    left.next = right.next;
    if (right.next != kNone) symbols_[right.next].previous = best.left;
    right.id = kGone;
  }

  template <class Propose>
  void push(uint32_t left, Propose&& propose, bool sift) {
    const Symbol& a = symbols_[left];
    if (a.next == kNone) return;
    const Symbol& b = symbols_[a.next];
    Proposal<Order> proposal{{}, -1, left, b.end};
    if (!propose(a, b, proposal)) return;
    heap_.push_back(proposal);
    if (sift) std::push_heap(heap_.begin(), heap_.end(), later);
  }

  std::vector<Symbol> symbols_;
  std::vector<Proposal<Order>> heap_;
};

}  // namespace kz::text
