// One row of each readable type to float32; n is a multiple of the block. Called by dequantise_row().
#pragma once

#include <cstdint>

namespace kz::blocks {

void dequantise_f16(const uint8_t* in, float* out, int64_t n);
void dequantise_bf16(const uint8_t* in, float* out, int64_t n);
void dequantise_q4_0(const uint8_t* in, float* out, int64_t n);
void dequantise_q4_1(const uint8_t* in, float* out, int64_t n);
void dequantise_q5_0(const uint8_t* in, float* out, int64_t n);
void dequantise_q5_1(const uint8_t* in, float* out, int64_t n);
void dequantise_q8_0(const uint8_t* in, float* out, int64_t n);
void dequantise_iq4_nl(const uint8_t* in, float* out, int64_t n);
void dequantise_mxfp4(const uint8_t* in, float* out, int64_t n);

void dequantise_q2_k(const uint8_t* in, float* out, int64_t n);
void dequantise_q3_k(const uint8_t* in, float* out, int64_t n);
void dequantise_q4_k(const uint8_t* in, float* out, int64_t n);
void dequantise_q5_k(const uint8_t* in, float* out, int64_t n);
void dequantise_q6_k(const uint8_t* in, float* out, int64_t n);
void dequantise_iq4_xs(const uint8_t* in, float* out, int64_t n);

}  // namespace kz::blocks
