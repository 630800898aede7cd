// How keys lie in the cache. F32 and F16 keys lie there as they are. Q8_0 keys are kept centred and rotated
// (docs/decisions/q8-keys.md), because some models have a few key features that are a hundred times the others, and
// one such feature spoils the 31 that share its block:
//
//   stored = Q8_0(H (key - c)),  c = the key of the sequence's first position, per layer and head
//
// H is a normalised Hadamard matrix (its own inverse): it spreads what is left of an outlier over the features. Scores
// need q . key up to a constant per query, since softmax does not see it: (H q) . stored is that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"

namespace kz {

/// x <- H x, in place: a Hadamard transform over stretches of the largest power of two (at most 256) that divides n.
/// The order of the float additions is fixed, so the bits are the same everywhere.
void rotate_features(float* x, int64_t n);

/// Takes the centres from the first row of a span that begins its sequence. Call it before the rows are stored.
void take_key_centres(const Tensor& k, int64_t layer, const Span& span);

/// Writes one key of attention layer `layer`, KV head `head` of the state's sequence at `row`.
void store_key_row(const State& state, int64_t layer, int64_t head, const float* key, std::byte* row);

/// Reads it back as a key: rotated back, centre added.
void load_key_row(const State& state, int64_t layer, int64_t head, const std::byte* row, float* key);

}  // namespace kz
