// Engines, sessions and their options, as the tests open them.
#pragma once

#include <kazeia/engine.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kz::testing {

inline std::string data(const std::string& name) { return KZ_TEST_DATA "/" + name; }
inline std::string tiny_f16() { return data("tiny/kazeia-tiny-f16.gguf"); }
inline std::string tiny_q4_0() { return KZ_SOURCE_DIR "/models/kazeia-tiny-q4_0.gguf"; }

inline EngineOptions engine_options(const std::string& path, const std::string& backend = "cpu", int n_threads = 0,
                                    const std::string& activations = "f32") {
  EngineOptions options;
  options.model.path = path;
  options.backend = backend;
  options.n_threads = n_threads;
  options.activations = activations;
  return options;
}

inline std::unique_ptr<Engine> open_engine(const std::string& path, const std::string& backend = "cpu",
                                           int n_threads = 0, const std::string& activations = "f32") {
  return Engine::open(engine_options(path, backend, n_threads, activations));
}

/// Keys and values in float32, so that numbers can be compared with the vectors.
inline SessionOptions f32_session(int64_t n_ctx = 1024, int64_t n_batch = 512) {
  SessionOptions options;
  options.n_ctx = n_ctx;
  options.n_batch = n_batch;
  options.key_type = options.value_type = "f32";
  return options;
}

inline GenerateOptions greedy(int64_t n_predict) {
  GenerateOptions options;
  options.sampler.temperature = 0;
  options.n_predict = n_predict;
  return options;
}

/// Rows of all positions of `ids`.
inline std::vector<std::vector<float>> all_rows(const Engine& engine, std::span<const int32_t> ids,
                                                const SessionOptions& options) {
  std::vector<std::vector<float>> rows;
  engine.evaluate(ids, options,
                  [&](int64_t, std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); });
  return rows;
}

}  // namespace kz::testing
