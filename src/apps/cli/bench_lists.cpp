#include "apps/cli/bench_lists.h"

#include <fmt/format.h>
#include <kazeia/error.h>

#include <charconv>
#include <string_view>

namespace kz::cli {
namespace {

constexpr size_t kMostValues = 1000;

/// Reads numbers out of one word, from the front.
class Reader {
 public:
  Reader(const std::string& option, std::string_view word) : option_(option), word_(word), rest_(word) {}

  int64_t number() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc::result_out_of_range) fail("is out of range");
    if (error != std::errc() || rest_.starts_with('-')) fail("expected a whole number or a range such as 0-4096+1024");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  /// Whether the next character is `c`, which is passed then.
  bool passes(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect_end() const {
    if (!rest_.empty()) fail("expected a whole number or a range such as 0-4096+1024");
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::bad_argument, fmt::format("{}: '{}': {}", option_, word_, what));
  }

 private:
  const std::string& option_;
  std::string_view word_, rest_;
};

void add_value(const std::string& option, int64_t value, int64_t lowest, int64_t highest, std::vector<int64_t>& to) {
  if (value < lowest || value > highest) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("{}: {} is out of range, expected {} to {}", option, value, lowest, highest));
  }
  if (to.size() >= kMostValues) {
    throw Error(ErrorCode::bad_argument, fmt::format("{}: more than {} values", option, kMostValues));
  }
  to.push_back(value);
}

void add_word(const std::string& option, std::string_view word, int64_t lowest, int64_t highest,
              std::vector<int64_t>& to) {
  Reader read(option, word);
  const int64_t first = read.number();
  if (!read.passes('-')) {
    read.expect_end();
    return add_value(option, first, lowest, highest, to);
  }
  const int64_t last = read.number();
  int64_t step = 1, factor = 1;
  if (read.passes('+')) {
    step = read.number();
    if (step < 1) read.fail("the step must be at least 1");
  } else if (read.passes('*')) {
    factor = read.number();
    if (factor < 2 || first < 1) read.fail("the factor must be at least 2 and the first value at least 1");
  }
  read.expect_end();
  if (last < first) read.fail("the last value is smaller than the first");
  if (last > highest) add_value(option, last, lowest, highest, to);  // refuses it; below, no sum can overflow
  for (int64_t value = first; value <= last;) {
    add_value(option, value, lowest, highest, to);
    if (factor > 1 ? value > last / factor : step > last - value) break;
    value = factor > 1 ? value * factor : value + step;
  }
}

/// body(word) for each part between commas.
template <class Body>
void for_parts(const std::vector<std::string>& words, Body body) {
  for (const std::string& all : words) {
    std::string_view rest = all;
    while (true) {
      const size_t comma = rest.find(',');
      body(rest.substr(0, comma));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
}

}  // namespace

std::vector<int64_t> parse_numbers(const std::string& option, const std::vector<std::string>& words, int64_t lowest,
                                   int64_t highest) {
  std::vector<int64_t> values;
  for_parts(words, [&](std::string_view word) { add_word(option, word, lowest, highest, values); });
  return values;
}

std::vector<std::string> parse_names(const std::string& option, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for_parts(words, [&](std::string_view word) {
    if (word.empty()) throw Error(ErrorCode::bad_argument, fmt::format("{}: expected names, found ''", option));
    names.emplace_back(word);
  });
  return names;
}

}  // namespace kz::cli
