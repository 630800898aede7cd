// The loops that bench/arm/model_loops measures, each in a function of its own. KZ_TABLE names the file of the table,
// KZ_UNIT its unit.
#include KZ_TABLE

namespace kz {

using Unit = KZ_UNIT;

extern "C" {
void decode_Q4_0(const StripProductArgs& args, const std::byte* strip, float* out) {
  strip_row<Q4_0>(args, strip, out);
}
void decode_Q4_K(const StripProductArgs& args, const std::byte* strip, float* out) {
  strip_row<Q4_K>(args, strip, out);
}
void decode_Q8_0(const StripProductArgs& args, const std::byte* strip, float* out) {
  strip_row<Q8_0>(args, strip, out);
}
void prefill_Q4_0(StripPanel<Unit, Q4_0>& panel, const std::byte* strip, float* out) { panel.multiply(strip, out); }
void prefill_Q4_K(StripPanel<Unit, Q4_K>& panel, const std::byte* strip, float* out) { panel.multiply(strip, out); }
void prefill_Q8_0(StripPanel<Unit, Q8_0>& panel, const std::byte* strip, float* out) { panel.multiply(strip, out); }
}

}  // namespace kz
