// Tokens of real vocabularies through the streaming parts.
#include <gtest/gtest.h>

#include "text/unicode.h"
#include "vocabularies.h"

namespace kz {
namespace {

using testing::Ids;
using testing::qwen35;

std::string stream(const Tokenizer& t, const Ids& ids) {
  StreamDecoder decoder;
  std::string text;
  for (const int32_t id : ids) {
    const std::string out = decoder.push(t.piece(id, true));
    EXPECT_EQ(text::valid_prefix(out), out.size());
    text += out;
  }
  return text + decoder.finish();
}

TEST(Stream, TokensGiveTheWholeText) {
  for (const Tokenizer* t : {&testing::gpt2(), &testing::qwen3(), &qwen35()}) {
    const Ids ids = t->encode(testing::mixed_text(20000, 4) + ".", {.parse_special = true});
    StreamDecoder whole;
    std::string expected = whole.push(t->decode(ids, true));
    expected += whole.finish();
    EXPECT_EQ(stream(*t, ids), expected);
  }
}

TEST(Stream, AnyTokensGiveValidText) {
  for (int32_t first = 0; first < qwen35().size(); first += 1000) {
    Ids ids;
    for (int32_t id = first; id < first + 400 && id < qwen35().size(); ++id) ids.push_back(id);
    const std::string text = stream(qwen35(), ids);
    EXPECT_EQ(text::valid_prefix(text), text.size());
  }
}

TEST(Stream, StoppedAnywhereTheTextIsValid) {  // a limit reached inside a character
  const Ids ids = qwen35().encode("\xF0\x9F\xA6\x99\xF0\x9F\xAB\xA8\xE2\xB4\xB1");
  EXPECT_GT(ids.size(), 3u) << "characters of several tokens each";
  for (size_t n = 0; n <= ids.size(); ++n) {
    const std::string text = stream(qwen35(), Ids(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)));
    EXPECT_EQ(text::valid_prefix(text), text.size());
  }
}

}  // namespace
}  // namespace kz
