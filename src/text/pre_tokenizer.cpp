#include "text/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "text/shown.h"
#include "text/unicode.h"

namespace kz::text {
namespace {

/// A character of a valid text, and where the next one begins. Behind the end it has no class.
struct Char {
  char32_t code_point = 0;
  uint8_t classes = 0;
  size_t end = 0;
  bool exists = false;
};

Char read(std::string_view text, size_t pos) {
  if (pos >= text.size()) return {0, 0, pos, false};
  const Utf8Step step = read_valid_utf8(text, pos);
  return {step.code_point, char_class(step.code_point), pos + step.length, true};
}

/// First place from pos on whose character `wanted` refuses, after at most `most` characters.
template <class Wanted>
size_t run_end(std::string_view text, size_t pos, Wanted&& wanted, size_t most = SIZE_MAX) {
  for (size_t n = 0; n < most; ++n) {
    const Char c = read(text, pos);
    if (!c.exists || !wanted(c)) break;
    pos = c.end;
  }
  return pos;
}

/// Length of a contraction whose apostrophe stands at pos, or 0: 's 't 're 've 'm 'll 'd.
size_t contraction(std::string_view text, size_t pos, bool any_case) {
  if (text[pos] != '\'') return 0;
  const std::string_view rest = text.substr(pos + 1, 2);
  const auto letter = [&](size_t i) -> char {
    if (i >= rest.size()) return 0;
    const char c = rest[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char a = letter(0), b = letter(1);
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  // Regular expressions without case count U+017F (long s) as an s.
  if (any_case && rest == "\xC5\xBF") return 3;
  return 0;
}

/// `\s+(?!\S)|\s+`: a run of white space leaves its last character to what follows it.
size_t space_end(std::string_view text, size_t pos) {
  size_t last = pos, end = pos;
  for (Char c = read(text, pos); c.classes & kSpace; c = read(text, end)) {
    last = end;
    end = c.end;
  }
  return end == text.size() || last == pos ? end : last;
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`: a run of white space up to its last line end, if it has one.
size_t newline_or_space_end(std::string_view text, size_t pos) {
  size_t end = pos, behind_newline = pos;
  for (Char c = read(text, pos); c.classes & kSpace; c = read(text, end)) {
    end = c.end;
    if (c.classes & kNewline) behind_newline = end;
  }
  return behind_newline > pos ? behind_newline : space_end(text, pos);
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?W+|\p{N}{1,digits}| ?[^\s W \p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
/// where W is \p{L}, or [\p{L}\p{M}].
template <uint8_t kWord, size_t kDigits>
size_t qwen_step(std::string_view text, size_t pos) {
  if (const size_t length = contraction(text, pos, true)) return pos + length;
  const auto is_word = [](const Char& c) { return (c.classes & kWord) != 0; };
  const auto is_symbol = [](const Char& c) { return (c.classes & (kWord | kNumber | kSpace)) == 0; };
  const Char c = read(text, pos);
  if (is_word(c)) return run_end(text, c.end, is_word);
  if (c.classes & kNumber) {
    return run_end(text, pos, [](const Char& d) { return (d.classes & kNumber) != 0; }, kDigits);
  }
  const Char next = read(text, c.end);
  if (!(c.classes & kNewline) && is_word(next)) return run_end(text, next.end, is_word);
  if (is_symbol(c) || (c.code_point == ' ' && next.exists && is_symbol(next))) {
    const size_t end = run_end(text, c.end, is_symbol);
    return run_end(text, end, [](const Char& d) { return (d.classes & kNewline) != 0; });
  }
  return newline_or_space_end(text, pos);
}

/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2_step(std::string_view text, size_t pos) {
  constexpr uint8_t kKinds = kLetter | kNumber | kSpace;
  if (const size_t length = contraction(text, pos, false)) return pos + length;
  Char c = read(text, pos);
  if (c.code_point == ' ') {
    const Char next = read(text, c.end);
    if (next.exists && !(next.classes & kSpace)) c = next;
  }
  if (c.classes & kSpace) return space_end(text, pos);
  const int kind = c.classes & kKinds;
  return run_end(text, c.end, [&](const Char& d) { return (d.classes & kKinds) == kind; });
}

/// A match of `\p{N}`, or what lies before the next one.
size_t digit_step(std::string_view text, size_t pos) {
  const Char c = read(text, pos);
  if (c.classes & kNumber) return c.end;
  return run_end(text, c.end, [](const Char& d) { return (d.classes & kNumber) == 0; });
}

/// A run of characters that are all in the set or all outside it: `[set]+` and the text between its matches.
template <class InSet>
size_t alternate(std::string_view text, size_t pos, InSet&& in_set) {
  const Char first = read(text, pos);
  const bool inside = in_set(first);
  return run_end(text, first.end, [&](const Char& c) { return in_set(c) == inside; });
}

/// [\p{P}\$\+<=>\^~\|]+
size_t punctuation_step(std::string_view text, size_t pos) {
  return alternate(text, pos, [](const Char& c) {
    return (c.classes & kPunctuation) != 0 ||
           (c.exists && c.code_point < 0x80 &&
            std::string_view("$+<=>^~|").find(static_cast<char>(c.code_point)) != std::string_view::npos);
  });
}

/// \p{N}+
size_t number_step(std::string_view text, size_t pos) {
  return alternate(text, pos, [](const Char& c) { return (c.classes & kNumber) != 0; });
}

/// [0-9][0-9][0-9]
size_t three_digits_step(std::string_view text, size_t pos) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t digits = 0;
  for (size_t i = pos; i < text.size(); ++i) {
    digits = is_digit(text[i]) ? digits + 1 : 0;
    if (digits == 3) return i - 2 == pos ? i + 1 : i - 2;
  }
  return text.size();
}

constexpr std::array<PreTokenizer::Step, 1> kQwen2{qwen_step<kLetter, 1>};
constexpr std::array<PreTokenizer::Step, 1> kQwen35{qwen_step < kLetter | kMark, 1 > };
constexpr std::array<PreTokenizer::Step, 1> kLlama3{qwen_step<kLetter, 3>};
constexpr std::array<PreTokenizer::Step, 1> kGpt2{gpt2_step};
constexpr std::array<PreTokenizer::Step, 2> kSmollm{digit_step, gpt2_step};
constexpr std::array<PreTokenizer::Step, 4> kDefault{punctuation_step, gpt2_step, number_step, three_digits_step};

struct Rule {
  std::string_view name;
  std::string_view same_as;  // the rule that this name is an alias of
  std::span<const PreTokenizer::Step> steps;
  bool ignores_merges, adds_bos, normalises;
};

// Only names whose tokenizers ask for NFC normalise (the aliases of qwen2 have no normaliser).
constexpr std::array kRules{
    Rule{"qwen2", "qwen2", kQwen2, false, false, true},
    Rule{"deepseek-r1-qwen", "qwen2", kQwen2, false, false, false},
    Rule{"megrez", "qwen2", kQwen2, false, false, false},
    Rule{"qwen35", "qwen35", kQwen35, false, false, true},
    Rule{"llama-bpe", "llama-bpe", kLlama3, true, true, false},
    Rule{"llama3", "llama-bpe", kLlama3, true, true, false},
    Rule{"llama-v3", "llama-bpe", kLlama3, true, true, false},
    Rule{"falcon3", "llama-bpe", kLlama3, true, true, false},
    Rule{"pixtral", "llama-bpe", kLlama3, true, true, false},
    Rule{"lfm2", "llama-bpe", kLlama3, true, true, false},
    Rule{"smollm", "smollm", kSmollm, false, false, false},
    Rule{"starcoder", "smollm", kSmollm, false, false, false},
    Rule{"refact", "smollm", kSmollm, false, false, false},
    Rule{"command-r", "smollm", kSmollm, false, false, false},
    Rule{"codeshell", "smollm", kSmollm, false, false, false},
    Rule{"exaone", "smollm", kSmollm, false, false, false},
    Rule{"gpt-2", "gpt-2", kGpt2, false, false, false},
    Rule{"default", "default", kDefault, false, false, false},
};

void split_from(std::span<const PreTokenizer::Step> steps, std::string_view text,
                const std::function<void(std::string_view)>& word) {
  if (steps.empty()) return word(text);
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = steps.front()(text, pos);
    split_from(steps.subspan(1), text.substr(pos, end - pos), word);
    pos = end;
  }
}

}  // namespace

PreTokenizer::PreTokenizer(std::string_view name, std::string_view source) {
  if (name.empty()) name = "default";
  const auto rule = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& r) { return r.name == name; });
  if (rule == kRules.end()) {
    std::string known;
    for (const Rule& r : kRules) known += (known.empty() ? "" : ", ") + std::string(r.name);
    throw Error(ErrorCode::unsupported, fmt::format("{}: tokenizer.ggml.pre: the pre-tokenizer '{}' is not supported, "
                                                    "known are {}",
                                                    source, shown(name), known));
  }
  name_ = rule->same_as;
  steps_ = rule->steps;
  ignores_merges_ = rule->ignores_merges;
  adds_bos_ = rule->adds_bos;
  normalises_ = rule->normalises;
}

void PreTokenizer::split(std::string_view text, const std::function<void(std::string_view)>& word) const {
  split_from(steps_, text, word);
}

}  // namespace kz::text
