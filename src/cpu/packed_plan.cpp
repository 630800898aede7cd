#include "cpu/packed_plan.h"

#include <algorithm>

#include "cpu/strip/strip.h"

namespace kz {
namespace {

PackedItem item_of(const Tensor& t, size_t source, bool strips) {
  PackedItem item;
  item.source = source;
  item.strips = strips;
  item.row_bytes = row_bytes(t.dtype, t.ne[0]);
  item.unit_rows = strips ? kStripRows : t.ne[1];
  item.n_units = (t.ne[1] + item.unit_rows - 1) / item.unit_rows;
  item.unit_bytes =
      strips ? strip_layout(t.dtype, t.ne[0]).stride_bytes() : (t.ne[1] * item.row_bytes + 127) / 128 * 128;
  return item;
}

}  // namespace

PackedPlan plan_packing(std::span<const WeightSource> sources,
                        const std::function<Keeping(const WeightSource&)>& keeping) {
  PackedPlan plan;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Keeping how = keeping(sources[i]);
    if (how != Keeping::in_place) plan.items.push_back(item_of(sources[i].tensor, i, how == Keeping::strips));
  }
  std::sort(plan.items.begin(), plan.items.end(), [&](const PackedItem& a, const PackedItem& b) {
    const WeightSource &x = sources[a.source], &y = sources[b.source];
    if (x.file != y.file) return std::less<const MappedFile*>()(x.file, y.file);
    if (x.offset != y.offset) return x.offset < y.offset;
    return a.source < b.source;
  });
  for (PackedItem& item : plan.items) {
    item.place = plan.block_bytes;
    plan.block_bytes += item.size_bytes();
    plan.file_bytes += sources[item.source].tensor.ne[1] * item.row_bytes;
  }
  return plan;
}

std::string plan_text(const PackedPlan& plan, std::span<const WeightSource> sources) {
  std::string text;
  for (const PackedItem& item : plan.items) {
    const WeightSource& source = sources[item.source];
    const Tensor& t = source.tensor;
    text.append(source.name).append(item.strips ? " strips " : " rows ").append(dtype_name(t.dtype));
    for (const int64_t number : {t.ne[0], t.ne[1], item.unit_bytes, item.place}) {
      text.append(" ").append(std::to_string(number));
    }
    text.append("\n");
  }
  return text;
}

}  // namespace kz
