// A vocabulary and a text from any bytes. The first byte chooses: one of two small vocabularies made here, or one read
// from the input (any tokens, types, scores, merges and ids), which is accepted or refused by kz::Error. Then texts are
// encoded, decoded and streamed, and what must hold is checked.
#include <kazeia/error.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "text/byte_symbols.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace {

using kz::Tokenizer;
using kz::VocabularyData;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Takes numbers and strings off the input; behind its end everything is zero and empty.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  std::string_view bytes(size_t n) {
    const std::string_view bytes = rest_.substr(0, n);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }
  std::string_view rest() { return bytes(rest_.size()); }

 private:
  std::string_view rest_;
};

/// A vocabulary that owns its strings.
struct Vocabulary {
  std::vector<std::string> tokens, merges;
  VocabularyData data;

  void link() {
    data.tokens.assign(tokens.begin(), tokens.end());
    data.merges.assign(merges.begin(), merges.end());
  }
};

/// All bytes, some merges, a control and a user-defined token.
Vocabulary byte_level(const char* pre) {
  Vocabulary v;
  v.data.model = "gpt2";
  v.data.pre = pre;
  for (int byte = 0; byte < 256; ++byte) v.tokens.push_back(kz::text::spell(std::string(1, static_cast<char>(byte))));
  for (const char* pair : {"a b", "ab c", "a a", "aa aa", "\xC4\xA0 a", "' s", "\xC3\xA4 \xC2\xB8", "c a", "ca b"}) {
    v.merges.emplace_back(pair);
    std::string joined = pair;
    joined.erase(joined.find(' ', 1), 1);
    v.tokens.push_back(joined);
  }
  v.data.types.assign(v.tokens.size(), 1);
  for (const char* special : {"<|x|>", "<|x|><|", "<u>", "ab<"}) {
    v.tokens.emplace_back(special);
    v.data.types.push_back(special[1] == '|' ? 3 : 4);
  }
  v.link();
  return v;
}

Vocabulary any_vocabulary(Input& in) {
  static constexpr const char* kModels[] = {"gpt2", "llama", "t5"};
  static constexpr const char* kPres[] = {"qwen2", "qwen35", "llama-bpe", "smollm", "gpt-2", "default", "", "other"};
  Vocabulary v;
  v.data.source = "fuzz";
  v.data.model = kModels[in.byte() % std::size(kModels)];
  v.data.pre = kPres[in.byte() % std::size(kPres)];
  const uint8_t what = in.byte();
  for (size_t n = in.byte(); n > 0; --n) v.tokens.emplace_back(in.bytes(in.byte() % 9));
  for (size_t n = in.byte(); n > 0; --n) v.merges.emplace_back(in.bytes(in.byte() % 9));
  if (what & 1) {
    for (size_t n = v.tokens.size() + (what & 2); n > 0; --n) v.data.types.push_back(in.byte() % 8);
  }
  if (what & 4) {
    for (size_t n = v.tokens.size() + (what & 2); n > 0; --n) v.data.scores.push_back(static_cast<int8_t>(in.byte()));
  }
  using Id = std::optional<int64_t>;
  for (Id* id : {&v.data.bos, &v.data.eos, &v.data.eot, &v.data.unk, &v.data.fim_pad, &v.data.fim_rep}) {
    if (in.byte() & 1) *id = static_cast<int64_t>(in.byte()) - 1;
  }
  for (std::optional<bool>* flag : {&v.data.add_bos, &v.data.add_eos, &v.data.add_space_prefix}) {
    if (in.byte() & 1) *flag = (in.byte() & 1) != 0;
  }
  v.link();
  return v;
}

std::string nfc_of_valid_stretches(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t n = kz::text::valid_prefix(text);
    out += kz::text::nfc(text.substr(0, n));
    text.remove_prefix(n);
    if (text.empty()) break;
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

bool is_valid(std::string_view text) { return kz::text::valid_prefix(text) == text.size(); }

/// What holds for any vocabulary.
void check_any(const Tokenizer& t, std::string_view text, Input& in) {
  for (const bool parse : {false, true}) {
    const std::vector<int32_t> ids = t.encode(text, {.parse_special = parse, .add_special = parse});
    for (const int32_t id : ids) require(id >= 0 && id < t.size());
    require(t.encode(text, {.parse_special = parse, .add_special = parse}) == ids);
    const std::string bytes = t.decode(ids, parse);
    kz::StreamDecoder whole, pieces;
    std::string expected = whole.push(bytes);
    expected += whole.finish();
    std::string shown;
    for (size_t pos = 0; pos < bytes.size();) {
      const size_t n = 1 + in.byte() % 4;
      const std::string out = pieces.push(std::string_view(bytes).substr(pos, n));
      require(is_valid(out));
      shown += out;
      pos += n;
    }
    shown += pieces.finish();
    require(shown == expected && is_valid(shown));
  }
  for (int32_t id = -1; id <= t.size(); ++id) {
    require(t.decode({&id, 1}, true).size() <= t.piece(id, true).size());
    require(!t.ends_generation(id) || (id >= 0 && id < t.size()));
  }
}

void check_stop(std::string_view text, Input& in) {
  std::vector<std::string> stops;
  for (size_t n = in.byte() % 4; n > 0; --n) stops.emplace_back(in.bytes(in.byte() % 4));
  kz::StreamDecoder decoder;
  std::string all = decoder.push(text);
  all += decoder.finish();
  kz::StopMatcher whole(stops), pieces(stops);
  std::string expected = whole.push(all);
  expected += whole.finish();
  require(all.starts_with(expected) && is_valid(expected) && (whole.stopped() || expected == all));
  kz::StreamDecoder second;
  std::string shown;
  for (size_t pos = 0; pos < text.size(); pos += 3) shown += pieces.push(second.push(text.substr(pos, 3)));
  shown += pieces.push(second.finish());
  shown += pieces.finish();
  require(shown == expected && pieces.stopped() == whole.stopped());
}

void run(Input& in) {
  static const Tokenizer plain(byte_level("gpt-2").data), normalising(byte_level("qwen35").data);
  const uint8_t choice = in.byte();
  if (choice % 4 < 2) {
    const Tokenizer& t = choice % 4 == 0 ? plain : normalising;
    const std::string_view stops = in.bytes(in.byte() % 16);
    const std::string_view text = in.rest();
    const std::string back = t.decode(t.encode(text));
    if (choice % 4 == 0) require(back == text);
    // A user-defined token parts what is normalised, so only texts without one are compared.
    const bool parted = text.find("<u>") != text.npos || text.find("ab<") != text.npos;
    if (choice % 4 == 1 && !parted) require(back == nfc_of_valid_stretches(text));
    Input more(reinterpret_cast<const uint8_t*>(stops.data()), stops.size());
    check_any(t, text, more);
    check_stop(text, more);
    return;
  }
  const Vocabulary vocabulary = any_vocabulary(in);
  try {
    const Tokenizer t(vocabulary.data);
    check_any(t, in.rest(), in);
  } catch (const kz::Error& error) {
    require(error.code() == kz::ErrorCode::bad_file || error.code() == kz::ErrorCode::unsupported);
    for (const char* c = error.what(); *c != 0; ++c) require(static_cast<unsigned char>(*c) >= 0x20 && *c != 0x7f);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  run(input);
  return 0;
}
