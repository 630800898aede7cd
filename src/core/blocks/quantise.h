// One block of each writable type from float32, by the rules of docs/blocks.md. Called by quantise_row(), which has
// checked that every value is finite and of at most kLargest in magnitude; a scale that overflows is found afterwards.
#pragma once

#include <cstdint>

namespace kz::blocks {

/// No block type can hold larger values (Q6_K reaches 2.7e8), and no sum below overflows with smaller ones.
inline constexpr float kLargest = 1e9f;

void quantise_q4_0(const float* x, uint8_t* out);
void quantise_q4_1(const float* x, uint8_t* out);
void quantise_q5_0(const float* x, uint8_t* out);
void quantise_q5_1(const float* x, uint8_t* out);
void quantise_q8_0(const float* x, uint8_t* out);
void quantise_iq4_nl(const float* x, uint8_t* out);

void quantise_q4_k(const float* x, uint8_t* out);
void quantise_q5_k(const float* x, uint8_t* out);
void quantise_q6_k(const float* x, uint8_t* out);

}  // namespace kz::blocks
