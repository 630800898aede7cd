// Sixteen lanes of a kernel, as one, two or four vectors of the machine, or a pair of such halves.
//
// Part of the kernel template: compiled once per instruction set, so everything lies in an unnamed namespace and
// nothing but fixed-width types may be included. A lane operation rounds like the scalar operation, hence results do
// not depend on the width of the machine's vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"

#define KZ_INLINE [[gnu::always_inline]] inline

namespace kz {
namespace {

/// A vector of the machine.
template <class T, int kWidth>
struct Native {
  typedef T Type __attribute__((vector_size(sizeof(T) * kWidth)));
};

/// Two halves; halves may be pairs again. Members rather than an array: compilers keep them in registers.
template <class V>
struct Pair {
  V lo, hi;
};

template <class T, int kCount, int kWidth>
struct LanesOf {
  using Type = Pair<typename LanesOf<T, kCount / 2, kWidth>::Type>;
};
template <class T, int kWidth>
struct LanesOf<T, kWidth, kWidth> {
  using Type = typename Native<T, kWidth>::Type;
};

template <class V>
KZ_INLINE Pair<V> operator+(const Pair<V>& a, const Pair<V>& b) {
  return {a.lo + b.lo, a.hi + b.hi};
}
template <class V>
KZ_INLINE Pair<V> operator-(const Pair<V>& a, const Pair<V>& b) {
  return {a.lo - b.lo, a.hi - b.hi};
}
template <class V>
KZ_INLINE Pair<V> operator*(const Pair<V>& a, const Pair<V>& b) {
  return {a.lo * b.lo, a.hi * b.hi};
}
template <class V>
KZ_INLINE Pair<V> operator/(const Pair<V>& a, const Pair<V>& b) {
  return {a.lo / b.lo, a.hi / b.hi};
}
template <class V>
KZ_INLINE Pair<V> operator&(const Pair<V>& a, const Pair<V>& b) {
  return {a.lo & b.lo, a.hi & b.hi};
}
template <class V>
KZ_INLINE Pair<V> operator|(const Pair<V>& a, const Pair<V>& b) {
  return {a.lo | b.lo, a.hi | b.hi};
}

template <class V>
struct ElementOf {
  using Type = __typeof__(V{}[0] + V{}[0]);
};
template <class V>
struct ElementOf<Pair<V>> {
  using Type = typename ElementOf<V>::Type;
};

template <class V>
struct Ops {
  using T = typename ElementOf<V>::Type;
  static constexpr int kCount = sizeof(V) / sizeof(T);
  KZ_INLINE static V load(const void* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof(V));
    return v;
  }
  KZ_INLINE static void store(T* p, const V& v) { __builtin_memcpy(p, &v, sizeof(V)); }
  KZ_INLINE static V splat(T x) { return x - V{}; }  // minus zero changes no value, not even a negative zero
  /// a < b ? x : y in every lane; a comparison with NaN is false.
  KZ_INLINE static V less(const V& a, const V& b, const V& x, const V& y) { return a < b ? x : y; }
  KZ_INLINE static V shift_left(const V& v, int n) { return v << n; }
};

template <class V>
struct Ops<Pair<V>> {
  using T = typename ElementOf<V>::Type;
  static constexpr int kCount = 2 * Ops<V>::kCount;
  KZ_INLINE static Pair<V> load(const void* p) {
    return {Ops<V>::load(p), Ops<V>::load(static_cast<const char*>(p) + sizeof(V))};
  }
  KZ_INLINE static void store(T* p, const Pair<V>& v) {
    Ops<V>::store(p, v.lo);
    Ops<V>::store(p + Ops<V>::kCount, v.hi);
  }
  KZ_INLINE static Pair<V> splat(T x) { return {Ops<V>::splat(x), Ops<V>::splat(x)}; }
  KZ_INLINE static Pair<V> less(const Pair<V>& a, const Pair<V>& b, const Pair<V>& x, const Pair<V>& y) {
    return {Ops<V>::less(a.lo, b.lo, x.lo, y.lo), Ops<V>::less(a.hi, b.hi, x.hi, y.hi)};
  }
  KZ_INLINE static Pair<V> shift_left(const Pair<V>& v, int n) {
    return {Ops<V>::shift_left(v.lo, n), Ops<V>::shift_left(v.hi, n)};
  }
};

/// Reinterprets or converts lane by lane.
template <class To, class From>
struct Between {
  KZ_INLINE static To bits(const From& v) { return reinterpret_cast<To>(v); }
  KZ_INLINE static To value(const From& v) { return __builtin_convertvector(v, To); }
};
template <class To, class From>
struct Between<Pair<To>, Pair<From>> {
  KZ_INLINE static Pair<To> bits(const Pair<From>& v) {
    return {Between<To, From>::bits(v.lo), Between<To, From>::bits(v.hi)};
  }
  KZ_INLINE static Pair<To> value(const Pair<From>& v) {
    return {Between<To, From>::value(v.lo), Between<To, From>::value(v.hi)};
  }
};

/// The fixed tree over the lanes: each step adds the upper half to the lower one.
template <class V>
KZ_INLINE typename ElementOf<V>::Type tree_sum(const V& v) {
  constexpr int kCount = Ops<V>::kCount;
  if constexpr (kCount == 2) {
    return v[0] + v[1];
  } else {
    using Half = typename Native<typename ElementOf<V>::Type, kCount / 2>::Type;
    Pair<Half> halves;
    __builtin_memcpy(&halves, &v, sizeof(V));
    return tree_sum(halves.lo + halves.hi);
  }
}
template <class V>
KZ_INLINE typename ElementOf<V>::Type tree_sum(const Pair<V>& v) {
  return tree_sum(v.lo + v.hi);
}

template <int... kIndex>
struct Indices {};
/// Indices<0, 1, ..., kCount - 1>.
template <int kCount, int... kRest>
struct CountTo {
  using Type = typename CountTo<kCount - 1, kCount - 1, kRest...>::Type;
};
template <int... kRest>
struct CountTo<0, kRest...> {
  using Type = Indices<kRest...>;
};

/// Where lane i comes from when the lower (or upper) halves of all segments are put together.
constexpr int half_lane(int i, int segment, bool upper) {
  const int half = segment / 2;
  return i / half * segment + (upper ? half : 0) + i % half;
}

/// Adds the upper half of each segment of kSegment lanes to the lower one; the sums of a's segments come first.
template <int kSegment, class V, int... kLane>
KZ_INLINE V add_halves(const V& a, const V& b, Indices<kLane...>) {
  return __builtin_shufflevector(a, b, half_lane(kLane, kSegment, false)...) +
         __builtin_shufflevector(a, b, half_lane(kLane, kSegment, true)...);
}

template <int kSegment, int kWanted, class V, int kN>
KZ_INLINE void segment_sums(const V (&v)[kN], float* out) {
  static_assert(kN == 1 || kN % 2 == 0);
  if constexpr (kSegment == 1) {
    __builtin_memcpy(out, v, kWanted * sizeof(float));
  } else {
    using Lane = typename CountTo<Ops<V>::kCount>::Type;
    constexpr int kHalf = kN == 1 ? 1 : kN / 2, kNext = kN == 1 ? 0 : 1;
    V half[kHalf];
    for (int i = 0; i < kHalf; ++i) half[i] = add_halves<kSegment>(v[2 * i * kNext], v[2 * i * kNext + kNext], Lane());
    segment_sums<kSegment / 2, kWanted>(half, out);
  }
}

/// tree_sum() of kN vectors at once, with the same bits; kN a power of two.
template <class V, int kN>
KZ_INLINE void tree_sums(const V (&v)[kN], float* out) {
  segment_sums<Ops<V>::kCount, kN>(v, out);
}
template <class V, int kN>
KZ_INLINE void tree_sums(const Pair<V> (&v)[kN], float* out) {
  V half[kN];
  for (int i = 0; i < kN; ++i) half[i] = v[i].lo + v[i].hi;
  tree_sums(half, out);
}

/// The lanes of one table, for vectors of kWidth floats.
template <int kWidth>
struct Lanes {
  using F = typename LanesOf<float, kLanes, kWidth>::Type;
  using I = typename LanesOf<uint32_t, kLanes, kWidth>::Type;

  KZ_INLINE static F load(const float* p) { return Ops<F>::load(p); }
  KZ_INLINE static void store(float* p, const F& v) { Ops<F>::store(p, v); }
  KZ_INLINE static F splat(float x) { return Ops<F>::splat(x); }
  /// The first n < kLanes values; the other lanes hold `fill`.
  KZ_INLINE static F load_part(const float* p, int64_t n, float fill = 0.0f) {
    float part[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) part[i] = i < n ? p[i] : fill;
    return load(part);
  }
  KZ_INLINE static void store_part(float* p, const F& v, int64_t n) {
    float part[kLanes];
    store(part, v);
    for (int64_t i = 0; i < n; ++i) p[i] = part[i];
  }
};

/// Calls body(offset, load, store) for 16 lanes at a time over [0, n). load(p) reads p + offset (lanes behind n are
/// zero), store(p, v) writes there; elementwise code is written once for whole and partial steps.
template <int kWidth, class Body>
KZ_INLINE void for_lanes(int64_t n, Body&& body) {
  using L = Lanes<kWidth>;
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) {
    body([at](const float* p) { return L::load(p + at); },
         [at](float* p, const typename L::F& v) { L::store(p + at, v); });
  }
  if (at < n) {
    body([at, n](const float* p) { return L::load_part(p + at, n - at); },
         [at, n](float* p, const typename L::F& v) { L::store_part(p + at, v, n - at); });
  }
}

/// e^x within 2 units in the last place; 0 below -87.3, about 2.4e38 above 88.3, NaN for NaN. The same bits in every
/// table: 2^n times a polynomial of degree 7 (Taylor) in |r| <= ln(2)/2, multiplied and added, never fused.
template <int kWidth>
KZ_INLINE typename Lanes<kWidth>::F exp_lanes(const typename Lanes<kWidth>::F& input) {
  using L = Lanes<kWidth>;
  using F = typename L::F;
  using I = typename L::I;
  constexpr float kLow = -87.3f, kHigh = 88.37f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const F clamped = Ops<F>::less(L::splat(kHigh), input, L::splat(kHigh), input);
  const F x = Ops<F>::less(clamped, L::splat(kLow), L::splat(kLow), clamped);
  const F shifted = x * L::splat(1.44269504f) + L::splat(kRound);
  const F n = shifted - L::splat(kRound);
  const F r = (x - n * L::splat(0.693359375f)) - n * L::splat(-2.12194440e-4f);  // ln 2 in two parts
  F p = L::splat(1.0f / 5040);
  p = p * r + L::splat(1.0f / 720);
  p = p * r + L::splat(1.0f / 120);
  p = p * r + L::splat(1.0f / 24);
  p = p * r + L::splat(1.0f / 6);
  p = p * r + L::splat(0.5f);
  p = p * r + L::splat(1.0f);
  p = p * r + L::splat(1.0f);
  const I exponent = Ops<I>::shift_left(Between<I, F>::bits(shifted) + Ops<I>::splat(127), 23);
  const F value = p * Between<F, I>::bits(exponent);
  return Ops<F>::less(input, L::splat(kLow), F{}, value);
}

/// x * sigmoid(x).
template <int kWidth>
KZ_INLINE typename Lanes<kWidth>::F silu_lanes(const typename Lanes<kWidth>::F& x) {
  using F = typename Lanes<kWidth>::F;
  return x / (Lanes<kWidth>::splat(1.0f) + exp_lanes<kWidth>(F{} - x));
}

/// 1 / (1 + e^-x).
template <int kWidth>
KZ_INLINE typename Lanes<kWidth>::F sigmoid_lanes(const typename Lanes<kWidth>::F& x) {
  using F = typename Lanes<kWidth>::F;
  const F one = Lanes<kWidth>::splat(1.0f);
  return one / (one + exp_lanes<kWidth>(F{} - x));
}

}  // namespace
}  // namespace kz
