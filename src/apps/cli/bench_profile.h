// Where the time of a test goes, verb by verb.
#pragma once

#include <kazeia/bench.h>

#include <nlohmann/json.hpp>
#include <string>

namespace kz::cli {

/// Lines sorted by time, and "other": what no verb has. Seconds are of one repetition.
nlohmann::ordered_json profile_json(const BenchResult& result);
/// The same as a table; times per token for decode tests, per repetition for prompts.
std::string profile_text(const BenchResult& result);

}  // namespace kz::cli
