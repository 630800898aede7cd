#include "apps/cli/bench_lists.h"

#include <gtest/gtest.h>
#include <kazeia/error.h>

namespace kz::cli {
namespace {

using Numbers = std::vector<int64_t>;

Numbers numbers(const std::vector<std::string>& words) { return parse_numbers("-p", words, 0, 100000); }

TEST(BenchLists, CommasAndRepeats) {
  EXPECT_EQ(numbers({"512"}), (Numbers{512}));
  EXPECT_EQ(numbers({"0,1,100000"}), (Numbers{0, 1, 100000}));
  EXPECT_EQ(numbers({"1,2", "3"}), (Numbers{1, 2, 3}));
  EXPECT_EQ(numbers({}), Numbers{});
}

TEST(BenchLists, Ranges) {
  EXPECT_EQ(numbers({"2-5"}), (Numbers{2, 3, 4, 5}));
  EXPECT_EQ(numbers({"0-4096+1024"}), (Numbers{0, 1024, 2048, 3072, 4096}));
  EXPECT_EQ(numbers({"0-10+4"}), (Numbers{0, 4, 8}));
  EXPECT_EQ(numbers({"1-9*2,7"}), (Numbers{1, 2, 4, 8, 7}));
  EXPECT_EQ(numbers({"3-3"}), (Numbers{3}));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(parse_numbers("-p", {"9223372036854775806-9223372036854775807"}, 0, kMost), (Numbers{kMost - 1, kMost}));
  EXPECT_EQ(parse_numbers("-p", {"4611686018427387904-9223372036854775807*2"}, 0, kMost).size(), 1u);
}

TEST(BenchLists, BadOnesSayWhatIsWrong) {
  const auto text_of = [](const std::string& word) {
    try {
      numbers({word});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_argument);
      return std::string(error.what());
    }
    return "accepted: " + word;
  };
  for (const char* word :
       {"", ",", "1,", "x", "1x", "-1", "1.5", "1-", "1-x", "1-2+", "1-2*", "1-2+1+1", " 1", "1--2"}) {
    EXPECT_NE(text_of(word).find("expected a whole number"), std::string::npos) << text_of(word);
    EXPECT_EQ(text_of(word).rfind("-p: ", 0), 0u);
  }
  EXPECT_NE(text_of("5-2").find("smaller than the first"), std::string::npos);
  EXPECT_NE(text_of("1-2+0").find("step"), std::string::npos);
  EXPECT_NE(text_of("1-8*1").find("factor"), std::string::npos);
  EXPECT_NE(text_of("0-8*2").find("factor"), std::string::npos);
  EXPECT_NE(text_of("100001").find("out of range, expected 0 to 100000"), std::string::npos);
  EXPECT_NE(text_of("99999999999999999999").find("out of range"), std::string::npos);
  EXPECT_NE(text_of("0-99999").find("more than 1000 values"), std::string::npos);
}

TEST(BenchLists, Names) {
  EXPECT_EQ(parse_names("-ctk", {"f16,q8_0", "f32"}), (std::vector<std::string>{"f16", "q8_0", "f32"}));
  EXPECT_THROW(parse_names("-ctk", {"f16,"}), Error);
  EXPECT_THROW(parse_names("-ctk", {""}), Error);
}

}  // namespace
}  // namespace kz::cli
