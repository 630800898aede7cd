#include "core/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kz {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kDigestBytes = 32;
constexpr std::array<uint64_t, 8> kStart = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                            0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                            0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
constexpr uint8_t kOrder[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

void mix(uint64_t& a, uint64_t& b, uint64_t& c, uint64_t& d, uint64_t x, uint64_t y) {
  a += b + x;
  d = std::rotr(d ^ a, 32);
  c += d;
  b = std::rotr(b ^ c, 24);
  a += b + y;
  d = std::rotr(d ^ a, 16);
  c += d;
  b = std::rotr(b ^ c, 63);
}

}  // namespace

Digest::Digest() : state_(kStart) { state_[0] ^= 0x01010000 ^ kDigestBytes; }

void Digest::compress(bool last) {
  std::array<uint64_t, 16> v, m;
  std::memcpy(m.data(), block_.data(), block_.size());
  std::copy(state_.begin(), state_.end(), v.begin());
  std::copy(kStart.begin(), kStart.end(), v.begin() + 8);
  v[12] ^= total_;
  if (last) v[14] = ~v[14];
  for (size_t round = 0; round < 12; ++round) {
    const uint8_t(&s)[16] = kOrder[round % 10];
    for (size_t i = 0; i < 4; ++i) mix(v[i], v[4 + i], v[8 + i], v[12 + i], m[s[2 * i]], m[s[2 * i + 1]]);
    for (size_t i = 0; i < 4; ++i) {
      mix(v[i], v[4 + (i + 1) % 4], v[8 + (i + 2) % 4], v[12 + (i + 3) % 4], m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
    }
  }
  for (size_t i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[8 + i];
}

void Digest::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (filled_ == block_.size()) {  // a full block is only then not the last when more comes
      compress(false);
      filled_ = 0;
    }
    const size_t n = std::min(bytes.size(), block_.size() - filled_);
    if (n > 0) std::memcpy(block_.data() + filled_, bytes.data(), n);
    filled_ += n;
    total_ += n;
    bytes = bytes.subspan(n);
  }
}

void Digest::add(std::string_view text) { add(std::as_bytes(std::span(text))); }

std::string Digest::finish() {
  std::fill(block_.begin() + static_cast<std::ptrdiff_t>(filled_), block_.end(), std::byte{0});
  compress(true);
  std::string text;
  for (size_t i = 0; i < kDigestBytes; ++i) {
    const auto byte = static_cast<unsigned>(state_[i / 8] >> (8 * (i % 8)) & 0xff);
    text.push_back("0123456789abcdef"[byte >> 4]);
    text.push_back("0123456789abcdef"[byte & 15]);
  }
  return text;
}

uint64_t checksum(std::span<const std::byte> bytes) {
  // Eight sums side by side, because one multiplication waits for the one before it.
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  std::array<uint64_t, 8> sums = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<uint64_t, 8> words;
  const size_t n_bytes = bytes.size();
  for (; bytes.size() >= sizeof(words); bytes = bytes.subspan(sizeof(words))) {
    std::memcpy(words.data(), bytes.data(), sizeof(words));
    for (size_t i = 0; i < 8; ++i) sums[i] = std::rotl((sums[i] ^ words[i]) * kFactor, 29);
  }
  words.fill(0);
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  uint64_t sum = n_bytes;
  for (size_t i = 0; i < 8; ++i) sum = std::rotl((sum ^ std::rotl((sums[i] ^ words[i]) * kFactor, 29)) * kFactor, 31);
  return sum ^ sum >> 32;
}

}  // namespace kz
