// One row of activations times a strip (decode): all 32 columns at once, so that the strip is read in one sweep. Part
// of the strip kernels of ARM; bound by memory, so nothing moves between lanes and loads are announced ahead.
#pragma once

#include "cpu/arm/strips_neon.h"

namespace kz {
namespace {

template <class Type>
class StripRow {
 public:
  explicit StripRow(const StripProductArgs& args) : x_(*args.x), row_(args.first_row) {
    for (int g = 0; g < Neon::kGroups; ++g) sum_[g] = Neon::floats(0.0f);
  }

  /// Tile j (32 inputs) of a block; n counts tiles of 32 inputs over the whole row.
  KZ_INLINE void tile(const StripBlock& b, int j, int64_t n) {
    const int64_t at = n * x_.n_rows + row_;
    const int8_t* codes = x_.codes + 32 * at;
    const int32_t* sums = x_.sums + 2 * at;
    const float dx = x_.scales[at];
    Neon::Ints first[Neon::kGroups];
    if constexpr (Type::kFamily == Family::k6) {
      Neon::Ints second[Neon::kGroups];
      start(sums[0], first);
      add_lines<0, 2>(b, j, codes, first);
      start(sums[1], second);
      add_lines<2, 4>(b, j, codes, second);
      step_k6(b, j, dx, first, second);
    } else {
      start(sums[0] + sums[1], first);
      add_lines<0, 4>(b, j, codes, first);
      if constexpr (Type::kFamily == Family::simple)
        step_simple(b, dx, x_.scaled_sums[at], first);
      else
        step_k45(b, j, dx, x_.scaled_sums[at], first);
    }
  }

  KZ_INLINE void store(float* out) const {
    for (int g = 0; g < Neon::kGroups; ++g) Neon::store(out + 4 * g, sum_[g]);
  }

 private:
  KZ_INLINE static void start(int32_t code_sum, Neon::Ints (&sum)[Neon::kGroups]) {
    constexpr int32_t kZero = Type::kSigned ? 0 : Type::kZero;
    const Neon::Ints zero = Neon::ints(-kZero * (kZero == 0 ? 0 : code_sum));
    for (int g = 0; g < Neon::kGroups; ++g) sum[g] = zero;
  }

  /// Sixteen codes of x serve two lines: lane 2 (c mod 2) the low, the next lane the high half of line c.
  template <int kFirst, int kLast>
  KZ_INLINE static void add_lines(const StripBlock& b, int tile, const int8_t* codes,
                                  Neon::Ints (&sum)[Neon::kGroups]) {
    for_constants<kFirst, kLast>([&](auto constant) {
      constexpr int c = decltype(constant)::value;
      const int8x16_t x = vld1q_s8(codes + 16 * (c / 2));
      for (int g = 0; g < Neon::kGroups; ++g) {
        Neon::Bytes lo, hi;
        Type::template line<Neon, c>(b, tile, 16 * g, lo, hi);
        sum[g] = vdotq_laneq_s32(sum[g], vreinterpretq_s8_u8(lo), x, 2 * (c % 2));
        sum[g] = vdotq_laneq_s32(sum[g], vreinterpretq_s8_u8(hi), x, 2 * (c % 2) + 1);
      }
    });
  }

  KZ_INLINE void step_simple(const StripBlock& b, float dx, float scaled_sum, const Neon::Ints (&sum)[Neon::kGroups]) {
    for (int g = 0; g < Neon::kGroups; ++g) {
      const Neon::Floats step = vmulq_n_f32(Neon::half(b.scales + 8 * g), dx);
      sum_[g] = Neon::fma(Neon::convert(sum[g]), step, sum_[g]);
      if constexpr (Type::kMin) {
        sum_[g] = Neon::fma(Neon::half(b.mins + 8 * g), Neon::floats(scaled_sum), sum_[g]);
      }
    }
  }

  KZ_INLINE void step_k45(const StripBlock& b, int j, float dx, float scaled_sum,
                          const Neon::Ints (&sum)[Neon::kGroups]) {
    const uint8_t* low = b.scales + 32 * (j & 3);
    const uint8_t* high = b.scales + 256 + 32 * (j >> 2);
    for (int half = 0; half < 2; ++half) {  // sixteen columns: their scales and mins fill one vector each
      const Neon::Six scale = Neon::six16(low + 16 * half, high + 16 * half, j);
      const Neon::Six min = Neon::six16(low + 128 + 16 * half, high + 64 + 16 * half, j);
      for (int q = 0; q < 4; ++q) {
        const int g = 4 * half + q;
        const Neon::Floats d = Neon::mul(Neon::half(b.mins + 8 * g), scale.of[q]);
        const Neon::Floats dmin = Neon::mul(Neon::half(b.mins + 64 + 8 * g), min.of[q]);
        sum_[g] = Neon::fma(Neon::convert(sum[g]), vmulq_n_f32(d, dx), sum_[g]);
        sum_[g] = Neon::fma(dmin, Neon::floats(-scaled_sum), sum_[g]);
      }
    }
  }

  KZ_INLINE void step_k6(const StripBlock& b, int j, float dx, const Neon::Ints (&first)[Neon::kGroups],
                         const Neon::Ints (&second)[Neon::kGroups]) {
    for (int g = 0; g < Neon::kGroups; ++g) {
      const Neon::Floats s0 = Neon::int8(b.scales + 64 * j + 4 * g);
      const Neon::Floats s1 = Neon::int8(b.scales + 64 * j + 32 + 4 * g);
      const Neon::Floats whole =
          Neon::add(Neon::mul(Neon::convert(first[g]), s0), Neon::mul(Neon::convert(second[g]), s1));
      sum_[g] = Neon::fma(whole, vmulq_n_f32(Neon::half(b.mins + 8 * g), dx), sum_[g]);
    }
  }

  const Q8Rows& x_;
  int64_t row_;
  Neon::Floats sum_[Neon::kGroups];
};

/// Announces the bytes of one tile of 32 inputs, kAheadTiles further on.
template <class Type>
KZ_INLINE void prefetch_tile(const std::byte* tile) {
  constexpr int64_t kAheadTiles = 6;
  constexpr int64_t kBytes = Type::kFamily == Family::simple ? Type::kBlockBytes : Type::kBlockBytes / 8;
  for (int64_t at = 0; at < kBytes; at += 64) __builtin_prefetch(tile + kAheadTiles * kBytes + at, 0, 3);
}

template <class Type>
void strip_row(const StripProductArgs& args, const std::byte* strip, float* out) {
  constexpr int kTiles = Type::kFamily == Family::simple ? 1 : 8;
  const int64_t n_blocks = args.cols / (32 * kTiles);
  StripRow<Type> work(args);
  for (int64_t n = 0; n < n_blocks; ++n) {
    const StripBlock b = strip_block<Type>(strip, n, n_blocks);
    for (int j = 0; j < kTiles; ++j) {
      prefetch_tile<Type>(strip + n * Type::kBlockBytes + j * (Type::kBlockBytes / kTiles));
      work.tile(b, j, n * kTiles + j);
    }
  }
  work.store(out);
}

}  // namespace
}  // namespace kz
