#include "vocabularies.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string_view>

#include "engine/vocabulary.h"
#include "gguf/file.h"

namespace kz::testing {

const Tokenizer* tokenizer_of(const std::string& path) {
  static std::map<std::string, std::unique_ptr<Tokenizer>> opened;
  const auto known = opened.find(path);
  if (known != opened.end()) return known->second.get();
  std::unique_ptr<Tokenizer>& tokenizer = opened[path];
  if (!path.empty() && std::filesystem::exists(path)) {
    const gguf::File file = gguf::File::open(path);
    tokenizer = std::make_unique<Tokenizer>(read_vocabulary(file));
  }
  return tokenizer.get();
}

std::string fetched_model(const std::string& name) {
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/.cache/kazeia/" + name;
}

std::string extra_file(const std::string& name) {
  const char* folder = std::getenv("KAZEIA_TEST_EXTRA");
  return folder == nullptr ? "" : std::string(folder) + "/" + name;
}

std::string show(const Ids& ids) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(ids.size(), 1000); ++i) text += std::to_string(ids[i]) + " ";
  return text;
}

std::string mixed_text(size_t n_bytes, unsigned seed) {
  using namespace std::string_view_literals;
  static constexpr std::array kParts{"the "sv,
                                     "quick"sv,
                                     " Brown's"sv,
                                     " foxes"sv,
                                     "\n"sv,
                                     "\n\n  "sv,
                                     "  "sv,
                                     "\t"sv,
                                     "1234567"sv,
                                     " 3.14159"sv,
                                     "();\n"sv,
                                     " != "sv,
                                     "->"sv,
                                     "if (x[i] == 'a') {\r\n"sv,
                                     "don'T"sv,
                                     " WE'LL"sv,
                                     "..."sv,
                                     "!!!"sv,
                                     "~"sv,
                                     "\xE4\xB8\xAD\xE6\x96\x87"sv,
                                     "\xD0\xBF\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82 "sv,
                                     "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87"sv,
                                     "e\xCC\x81"sv,
                                     "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"sv,
                                     "\xF0\x9F\xA6\x99"sv,
                                     "\xE3\x80\x80"sv,
                                     "\xC2\xA0"sv,
                                     "<|im_start|>"sv,
                                     "<think>"sv,
                                     "</s>"sv,
                                     "_"sv,
                                     "A"sv,
                                     " a"sv,
                                     "\xC2\xBD"sv};
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < n_bytes) text += kParts[random() % kParts.size()];
  text.resize(n_bytes);
  return text;
}

std::string random_bytes(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes;
  while (bytes.size() < n) {
    switch (random() % 4) {
      case 0:
        bytes += static_cast<char>(random());
        break;
      case 1:
        bytes += static_cast<char>(0xC0 | (random() & 0x3F));
        break;
      case 2:
        bytes += static_cast<char>(0x80 | (random() & 0x3F));
        break;
      default:
        bytes += static_cast<char>(random() & 0x7F);
        break;
    }
  }
  return bytes;
}

}  // namespace kz::testing
