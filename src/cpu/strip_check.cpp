#include "cpu/strip_check.h"

#include <cstring>
#include <random>
#include <vector>

#include "core/half.h"
#include "cpu/strip/strip.h"
#include "cpu/workspace.h"

namespace kz {

extern const StripKernels kStripsScalar;

namespace {

constexpr int64_t kCols = 768, kRows = 19;

/// One strip of random codes; fp16 values are finite.
std::vector<std::byte> random_strip(DType type, std::byte** strip) {
  const StripLayout layout = strip_layout(type, kCols);
  std::vector<std::byte> memory(static_cast<size_t>(layout.stride_bytes()) + 128);
  void* place = memory.data();
  size_t space = memory.size();
  *strip = static_cast<std::byte*>(std::align(128, memory.size() - 128, place, space));
  std::mt19937 random(7);
  for (std::byte& b : memory) b = static_cast<std::byte>(random());
  for (int64_t b = 0; b < layout.n_blocks; ++b) {
    std::byte* halves = *strip + (type == DType::q6_k ? layout.mins(b) : layout.scales(b));
    for (int64_t c = 0; c < kStripRows; ++c) {
      const uint16_t d = f32_to_f16(static_cast<float>(1 + random() % 99) / 100.0f);
      std::memcpy(halves + 2 * c, &d, 2);
    }
  }
  return memory;
}

std::vector<float> product(const StripKernels& kernels, DType type, const std::byte* strip, const Q8Rows& x) {
  std::vector<float> out(static_cast<size_t>(kRows * kStripRows));
  StripProductArgs args;
  args.gguf_type = static_cast<int32_t>(type);
  args.strips = strip;
  args.stride_bytes = strip_layout(type, kCols).stride_bytes();
  args.n_strips = 1;
  args.cols = kCols;
  args.x = &x;
  args.n_rows = kRows;
  args.out = out.data();
  args.out_stride = kStripRows;
  kernels.product(args);
  return out;
}

}  // namespace

bool equals_scalar(const StripKernels& kernels) {
  Scratch measure;
  const Q8Batch needed(measure, kCols, kRows);
  const Arena memory("self-test", measure.used_bytes());
  Scratch scratch(memory.data(), memory.size_bytes());
  const Q8Rows x = Q8Batch(scratch, kCols, kRows).group(0);
  std::mt19937 random(11);
  std::uniform_real_distribution<float> uniform(-2.0f, 2.0f);
  std::vector<float> row(static_cast<size_t>(kCols));
  for (int64_t r = 0; r < kRows; ++r) {
    for (float& v : row) v = uniform(random);
    kStripsScalar.quantise_row(row.data(), r, x);
  }
  for (const DType type : {DType::q4_0, DType::q6_k}) {
    std::byte* strip = nullptr;
    const std::vector<std::byte> strip_memory = random_strip(type, &strip);
    const std::vector<float> expected = product(kStripsScalar, type, strip, x),
                             found = product(kernels, type, strip, x);
    if (std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

}  // namespace kz
