#include "cpu/strip_loader.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/arena.h"
#include "core/system.h"
#include "cpu/strip/strip.h"

namespace kz {
namespace {

/// File bytes of a piece: what a core's second cache holds beside the strips that come of it
/// (docs/decisions/loading.md).
constexpr int64_t kPieceBytes = 512 * 1024;
/// How far in front of the readers the page cache is filled.
constexpr uint64_t kReadAheadBytes = 16 * 1024 * 1024;
/// Beside the packed weights and the file, the rest of the system needs this much before its page cache is left alone.
constexpr int64_t kRoomBytes = int64_t{1} << 30;

/// Neighbouring units of one weight.
struct Piece {
  const PackedItem* item;
  int64_t first, n;
};

/// False too where the system does not say.
bool memory_is_short(int64_t needed_bytes) {
  const int64_t available = available_memory_bytes();
  return available != 0 && available < needed_bytes + kRoomBytes;
}

class Loader {
 public:
  Loader(std::span<const WeightSource> sources, const PackedPlan& plan, ThreadPool& pool, std::byte* block,
         const PieceWriter* write)
      : sources_(sources),
        plan_(plan),
        pool_(pool),
        block_(block),
        write_(write),
        drop_behind_(memory_is_short(plan.block_bytes + plan.file_bytes)) {
    divide();
  }

  void run(const std::function<void(double)>& progress) {
    // Each thread takes the next piece of all, so that the file is read in order whatever share a thread gets.
    pool_.parallel_for(pool_.size(), 1, [&](int64_t, int64_t, int worker) {
      Arena buffer, strips;
      for (size_t at; !failed_ && (at = next_.fetch_add(1)) < pieces_.size();) {
        try {
          load(pieces_[at], buffer, strips);
          done_bytes_ += file_bytes(pieces_[at]);
          if (worker == 0 && progress)
            progress(static_cast<double>(done_bytes_) / static_cast<double>(plan_.file_bytes));
        } catch (...) {
          failed_ = true;
          throw;
        }
      }
    });
  }

 private:
  int64_t n_rows(const Piece& piece) const {
    const int64_t rows = sources_[piece.item->source].tensor.ne[1];
    return std::min(piece.n * piece.item->unit_rows, rows - piece.first * piece.item->unit_rows);
  }
  int64_t file_bytes(const Piece& piece) const { return n_rows(piece) * piece.item->row_bytes; }

  void divide() {
    for (const PackedItem& item : plan_.items) {
      const int64_t most = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, item.unit_rows * item.row_bytes));
      for (int64_t first = 0; first < item.n_units; first += most) {
        const Piece piece{&item, first, std::min(most, item.n_units - first)};
        buffer_bytes_ = std::max(buffer_bytes_, file_bytes(piece));
        strips_bytes_ = std::max(strips_bytes_, piece.n * item.unit_bytes);
        pieces_.push_back(piece);
      }
    }
  }

  void load(const Piece& piece, Arena& buffer, Arena& strips) {
    const std::byte* rows = read(piece, buffer);
    const int64_t place = piece.item->place + piece.first * piece.item->unit_bytes;
    const int64_t size_bytes = piece.n * piece.item->unit_bytes;
    if (write_ == nullptr) return pack(piece, rows, block_ + place);
    if (strips.data() == nullptr) strips = Arena("strips to write", static_cast<size_t>(strips_bytes_));
    pack(piece, rows, strips.data());
    (*write_)(place, {strips.data(), static_cast<size_t>(size_bytes)});
  }

  const std::byte* read(const Piece& piece, Arena& buffer) const {
    const WeightSource& source = sources_[piece.item->source];
    const int64_t skipped = piece.first * piece.item->unit_rows * piece.item->row_bytes;
    if (source.file == nullptr) return source.tensor.data + skipped;
    if (buffer.data() == nullptr) buffer = Arena("file buffer", static_cast<size_t>(buffer_bytes_));
    const uint64_t offset = source.offset + static_cast<uint64_t>(skipped);
    const auto size_bytes = static_cast<uint64_t>(file_bytes(piece));
    source.file->read_ahead(offset + kReadAheadBytes, size_bytes);
    source.file->read(offset, {buffer.data(), size_bytes});
    if (drop_behind_) source.file->drop_cached(offset, size_bytes);
    return buffer.data();
  }

  void pack(const Piece& piece, const std::byte* rows, std::byte* to) const {
    const Tensor& t = sources_[piece.item->source].tensor;
    if (!piece.item->strips) {
      std::memcpy(to, rows, static_cast<size_t>(file_bytes(piece)));
      std::memset(to + file_bytes(piece), 0, static_cast<size_t>(piece.n * piece.item->unit_bytes - file_bytes(piece)));
      return;
    }
    const int64_t rows_left = n_rows(piece);
    for (int64_t s = 0; s < piece.n; ++s) {
      const int64_t row = s * kStripRows;
      pack_strip(t.dtype, rows + row * piece.item->row_bytes, std::min(kStripRows, rows_left - row), t.ne[0],
                 to + s * piece.item->unit_bytes);
    }
  }

  std::span<const WeightSource> sources_;
  const PackedPlan& plan_;
  ThreadPool& pool_;
  std::byte* block_;
  const PieceWriter* write_;
  bool drop_behind_;
  std::vector<Piece> pieces_;
  int64_t buffer_bytes_ = 0, strips_bytes_ = 0;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> done_bytes_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace

void load_packed(std::span<const WeightSource> sources, const PackedPlan& plan, ThreadPool& pool,
                 const std::function<void(double)>& progress, std::byte* block) {
  Loader(sources, plan, pool, block, nullptr).run(progress);
}

void load_packed(std::span<const WeightSource> sources, const PackedPlan& plan, ThreadPool& pool,
                 const std::function<void(double)>& progress, const PieceWriter& write) {
  Loader(sources, plan, pool, nullptr, &write).run(progress);
}

}  // namespace kz
