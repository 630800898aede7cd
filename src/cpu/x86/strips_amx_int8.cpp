// Products of many rows with AMX: 16 rows x 16 columns of block sums in one instruction, unpacked lines of a strip as
// they lie. The block sums of one tile of 32 inputs are exact; they leave the matrix unit for the float step of class
// q8, while it works on the next ones.
//
// Tile instructions are written as assembly that may touch memory: some compilers' intrinsics do not say that a tile
// load reads memory.
#if !defined(__AVX512VNNI__) || !defined(__AMX_INT8__)
#error "compile this file with the flags of strips_avx512vnni.cpp and -mamx-tile -mamx-int8"
#endif
#include "cpu/x86/amx_tiles.h"
#include "cpu/x86/strips_avx512.h"

namespace kz {
namespace {

/// Signed bytes, as tdpbssd takes both factors.
struct AmxInt8 : Avx512Vnni {
  // More than the first cache holds: starting and emptying the matrix unit costs more than lines from the second.
  static constexpr int kChunkTiles = 48;
  static constexpr Unpacked unpacked(int zero, bool is_signed, bool has_min) {
    return {is_signed || has_min ? 0 : -zero, 0, false};
  }
};

constexpr int kTileRows = 16;

/// Tiles of this thread while one product runs: 0..3 block sums, 4 and 5 activations, 6 and 7 weights, for blocks of
/// kInputs. A product that has taken them gives them back.
template <int kInputs>
KZ_INLINE void take_tiles() {
  TileConfig config;
  for (int t = 0; t < 4; ++t) config.set(t, kTileRows, 64);
  for (int t = 4; t < 6; ++t) config.set(t, kTileRows, kInputs);
  for (int t = 6; t < 8; ++t) config.set(t, kInputs / 4, 64);
  config.load();
}

template <int kTile>
KZ_INLINE void load_tile(const void* p, int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride_bytes), "i"(kTile) : "memory");
}

template <int kTile>
KZ_INLINE void store_tile(void* p) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(int64_t{64}), "i"(kTile) : "memory");
}

/// Tile kSum <- activations of tile kX times weights of tile kW.
template <int kSum, int kX, int kW>
KZ_INLINE void multiply_tiles() {
  asm volatile("tilezero %%tmm%c0\n\ttdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kX), "i"(kW) : "memory");
}

/// Where sixteen rows meet sixteen columns of a chunk; copied by the loop, so that nothing is loaded again behind the
/// tile instructions, which may touch any memory.
struct AmxPlace {
  const int8_t* codes;  ///< of the rows, first block of the chunk
  const float *scales, *scaled_sums;
  int64_t blocks;    ///< from one block of a row to the next, in blocks
  const uint8_t* w;  ///< lines of the sixteen columns, first tile of the chunk
  const float *d, *second, *third;
  int n;  ///< tiles of the chunk
};

template <Form kForm>
struct AmxTile {
  static constexpr int kHalves = kForm == Form::halves ? 2 : 1;
  static constexpr int kSums = kTileRows * 16;
  // Block sums on their way: a slot is a tile (two with halves) and its place in memory.
  struct alignas(64) Buffer {
    int32_t sums[2][kHalves][kSums];
  };

  /// Block sums of tile i of the chunk into the tile registers of slot kSlot.
  template <int kSlot>
  KZ_INLINE static void multiply(const AmxPlace& p, int i) {
    const int8_t* x = p.codes + 32 * i * p.blocks;
    const uint8_t* w = p.w + 1024 * i;
    if constexpr (kHalves == 1) {
      load_tile<4 + kSlot>(x, 32);
      load_tile<6 + kSlot>(w, 64);
      multiply_tiles<kSlot, 4 + kSlot, 6 + kSlot>();
    } else {
      load_tile<4>(x, 32);
      load_tile<6>(w, 64);
      multiply_tiles<2 * kSlot, 4, 6>();
      load_tile<5>(x + 16, 32);
      load_tile<7>(w + 256, 64);
      multiply_tiles<2 * kSlot + 1, 5, 7>();
    }
  }

  template <int kSlot>
  KZ_INLINE static void store(Buffer& to) {
    store_tile<kHalves * kSlot>(to.sums[kSlot][0]);
    if constexpr (kHalves == 2) store_tile<2 * kSlot + 1>(to.sums[kSlot][1]);
  }

  /// The sums of tile i meet their scales while those of tile i + 1 leave the matrix unit and it works on tile i + 2.
  template <int kSlot>
  KZ_INLINE static void step(const AmxPlace& p, int i, Buffer& buffer, __m512 (&sum)[kTileRows]) {
    TileScales<AmxInt8> s;
    s.d = _mm512_load_ps(p.d + 32 * i);
    if constexpr (kForm != Form::plain) s.second = _mm512_load_ps(p.second + 32 * i);
    if constexpr (kForm == Form::halves) s.third = _mm512_load_ps(p.third + 32 * i);
    const float *scales = p.scales + i * p.blocks, *scaled_sums = p.scaled_sums + i * p.blocks;
    const int32_t(&from)[kHalves][kSums] = buffer.sums[kSlot];
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      const __m512i first = _mm512_load_si512(from[0] + 16 * r);
      const __m512i other = _mm512_load_si512(from[kHalves - 1] + 16 * r);
      sum[r] = float_step<AmxInt8, kForm>(sum[r], first, other, s, scales[r], scaled_sums[r]);
    }
  }

  /// Adds the chunk to `out`, rows skip .. 15 of it.
  static void run(const AmxPlace& place, float* out, int64_t stride, bool is_first, int skip) {
    const AmxPlace p = place;
    __m512 sum[kTileRows];
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      sum[r] = is_first ? _mm512_setzero_ps() : _mm512_loadu_ps(out + r * stride);
    }
    Buffer buffer;
    multiply<0>(p, 0);
    if (p.n > 1) multiply<1>(p, 1);
    store<0>(buffer);
    int i = 0;
    for (; i + 3 < p.n; i += 2) {
      multiply<0>(p, i + 2);
      step<0>(p, i, buffer, sum);
      store<1>(buffer);
      multiply<1>(p, i + 3);
      step<1>(p, i + 1, buffer, sum);
      store<0>(buffer);
    }
    for (; i < p.n; i += 2) {
      if (i + 2 < p.n) multiply<0>(p, i + 2);
      step<0>(p, i, buffer, sum);
      if (i + 1 >= p.n) break;
      store<1>(buffer);
      step<1>(p, i + 1, buffer, sum);
      if (i + 2 < p.n) store<0>(buffer);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      if (r >= skip) _mm512_storeu_ps(out + r * stride, sum[r]);
    }
  }
};

/// All rows of a chunk. Rows that do not fill a tile are multiplied once more together with those before them, whose
/// results are left out: no row behind the last is touched.
template <Form kForm, int kTiles>
void amx_pass(const ChunkPass<kTiles>& pass) {
  const int64_t n_rows = pass.args.n_rows, stride = pass.args.out_stride;
  const std::byte* next = pass.next;
  for (int64_t row = 0; row < n_rows; row += kTileRows) {
    for (int64_t at = 0; at < pass.next_bytes; at += 64) __builtin_prefetch(next + at, 0, 2);
    next += pass.next_bytes;
    const int64_t first = row + kTileRows <= n_rows ? row : n_rows - kTileRows;
    const int skip = static_cast<int>(row - first);
    const Q8Rows& x = *pass.args.x;
    const int64_t at = pass.first * x.n_rows + pass.args.first_row + first;
    const auto& chunk = pass.chunk;
    for (int g = 0; g < 2; ++g) {
      const AmxPlace place{x.codes + 32 * at,
                           x.scales + at,
                           x.scaled_sums + at,
                           x.n_rows,
                           chunk.codes[0] + 512 * g,
                           chunk.d[0] + 16 * g,
                           chunk.second[0] + 16 * g,
                           chunk.third[0] + 16 * g,
                           pass.n};
      AmxTile<kForm>::run(place, pass.out + first * stride + 16 * g, stride, pass.first == 0, skip);
    }
  }
}

template <class Type>
void amx_strips(const StripProductArgs& args) {
  constexpr int kTiles = AmxInt8::kChunkTiles;
  constexpr int64_t kTileBytes = Type::kBlockBytes / Type::kTiles;
  const int64_t n_tiles = args.cols / 32, n_blocks = n_tiles / Type::kTiles;
  const int64_t share = next_share(kTiles * kTileBytes, args.n_rows, kTileRows);
  take_tiles<Type::kForm == Form::halves ? 16 : 32>();
  UnpackedChunk<kTiles> chunk;
  for (int64_t s = 0; s < args.n_strips; ++s) {
    const std::byte* strip = args.strips + s * args.stride_bytes;
    for (int64_t first = 0; first < n_tiles; first += kTiles) {
      const int n = static_cast<int>(n_tiles - first < kTiles ? n_tiles - first : kTiles);
      unpack_chunk<AmxInt8, Type>(strip, first, n, n_blocks, chunk);
      const std::byte* next = strip + (first + n) * kTileBytes;
      amx_pass<Type::kForm>(ChunkPass<kTiles>{args, chunk, first, n, next, share, args.out + 32 * s});
    }
  }
  release_tiles();
}

template <class Type>
struct AmxProduct {
  static void run(const StripProductArgs& args) { amx_strips<Type>(args); }
};

}  // namespace

extern const StripKernels kStripsAmxInt8;
constexpr StripKernels kStripsAmxInt8 = {"amx_int8", knows_strip_type, product_with<AmxProduct>,
                                         quantise_strip_row_avx512, kTileRows};

}  // namespace kz
