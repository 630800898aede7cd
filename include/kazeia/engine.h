// Kazeia-Engine, C++ API. Two nouns:
//
//   Engine   a model opened from a GGUF file: weights, tokenizer, compute backend. Immutable; shared by sessions.
//   Session  one conversation: its token history and the model's memory of it (KV rows, recurrent state).
//
// The library never prints and never exits; whatever ends an operation is a kz::Error (error.h). The command line
// tool uses nothing but this folder.
#pragma once

#include <kazeia/error.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kz {

/// Where a model lies: a path, or (descriptor, offset, length) of an already open file (`path` is then only a name
/// for messages). The descriptor stays the caller's and may be closed after opening.
struct ModelSource {
  std::string path;
  int fd = -1;
  uint64_t offset = 0;
  uint64_t length = 0;  ///< 0: to the end of the file
};

struct EngineOptions {
  ModelSource model;
  std::string backend = "cpu";  ///< "cpu" or "reference" (plain loops in double: slow, obviously right)
  std::string isa = "auto";     ///< kernel table of the cpu backend; a name forces it or fails
  /// How the cpu backend multiplies: "q8" (activations as 8-bit codes, weights packed once into memory of the engine:
  /// fast, within bounds that the tests hold) or "f32" (exact activations, weights used in place in the mapped file).
  std::string activations = "q8";
  /// A folder that keeps the packed weights of class q8 as a file of its own (as large as the model), which later
  /// starts map: such a start takes a second or less, and the kernel may drop what it needs the memory for and read it
  /// again. Empty: none. Only for folders that nobody else may write to.
  std::string packed_cache;
  int n_threads = 0;  ///< 0: one per core this process may use, or one per entry of `cores`
  /// When not empty: thread i stays on core cores[i mod size]; thread 0 is the one that calls sync() or generate(), for
  /// the time of the call.
  std::vector<int> cores;
  /// Called with the loaded share 0..1 from the loading thread; false cancels (Error(cancelled)).
  std::function<bool(double)> progress;
};

/// Session memory and limits. Types of keys and values: "f32", "f16", "q8_0".
struct SessionOptions {
  int64_t n_ctx = 4096;   ///< most tokens of prompt and answer together; 0: what the model was trained on
  int64_t n_batch = 512;  ///< most tokens of one forward pass (prefill chunk)
  std::string key_type = "f16";
  std::string value_type = "f16";
  std::string delta_form = "token";  ///< "token" or "chunked" prefill of delta layers
};

/// One line of the memory account.
struct MemoryItem {
  std::string what;        ///< "weights", "KV", "recurrent state", "scratch", "vocabulary"
  int64_t size_bytes = 0;  ///< when full
  int64_t file_bytes = 0;  ///< of these, pages of the model file that the kernel may drop and read again
};

struct TensorSummary {  ///< tensors of one kind ("blk.*.attn_q.weight")
  std::string kind;
  std::string type;
  std::string shape;
  int64_t count = 0;
  int64_t size_bytes = 0;
};

/// What a file says about itself, read without loading weights.
struct ModelInfo {
  std::string path, architecture, name, file_type;
  std::vector<std::string> files;  ///< paths of all parts, in order (one for a model that is not split)
  int gguf_version = 0;
  int n_shards = 1;
  int64_t file_bytes = 0, n_tensors = 0, n_parameters = 0, weight_bytes = 0;
  int64_t n_layers = 0, n_attention_layers = 0, n_delta_layers = 0;
  int64_t n_embd = 0, n_ff = 0, n_heads = 0, n_kv_heads = 0, key_dim = 0, value_dim = 0, n_vocab = 0, n_ctx_train = 0;
  bool tied = false;
  std::string tokenizer_model, tokenizer_pre;
  int64_t n_tokens = 0, n_merges = 0;
  int32_t bos = -1, eos = -1;
  std::vector<int32_t> end_tokens;
  bool adds_bos = false;
  std::string chat_template;           ///< the template's text, empty when absent
  std::vector<TensorSummary> tensors;  ///< grouped by kind and type
  std::vector<std::string> notes;
  /// Why this engine cannot run the file (inspect() only); empty when it can. Numbers that are then unknown are 0.
  std::string problem;
  bool is_damaged = false;  ///< the problem is in the file, not in what this engine can do
};

/// Reads a file's directory and configuration, and checks all tensors without reading them. What is wrong with a
/// readable file, or not supported, stands in ModelInfo::problem; throws Error when the file itself is unreadable.
ModelInfo inspect(const ModelSource& source);
/// What an engine and a session opened with these options would need, before anything is loaded or allocated. Checks
/// the tensors as Engine::open() does.
std::vector<MemoryItem> estimate_memory(const EngineOptions& engine, const SessionOptions& options);

struct SamplerParams {
  double temperature = 0.8;  ///< 0: greedy
  int64_t top_k = 40;        ///< 0: off
  double top_p = 0.95;       ///< 1: off
  double min_p = 0.05;       ///< 0: off
  int64_t seed = -1;         ///< -1: a new one each time; the one used is reported
  bool ignore_eos = false;   ///< never sample an end-of-generation token
};
/// Throws Error(bad_argument) that names the field, its value and the range.
void check(const SamplerParams& params);

enum class FinishReason {
  stop,       ///< the model ended its answer, or a stop string came
  length,     ///< n_predict reached
  context,    ///< the context is full
  cancelled,  ///< Session::cancel(), or the callback returned false
};
std::string_view finish_reason_name(FinishReason reason);

struct GenerateOptions {
  SamplerParams sampler;
  int64_t n_predict = -1;         ///< most new tokens; -1: until the model stops or the context is full
  std::vector<std::string> stop;  ///< stop strings, matched on the text
  bool show_special = false;      ///< include control tokens in the text
  /// Receives complete UTF-8 text as it comes; false stops.
  std::function<bool(std::string_view text)> on_text;
  /// Called once when the prompt is read, before the first token.
  std::function<void()> on_prompt_done;
};

struct GenerateResult {
  std::vector<int32_t> tokens;  ///< sampled tokens, the end token not included
  std::string text;
  FinishReason finish = FinishReason::stop;
  int64_t seed = 0;
  int64_t n_prompt = 0;  ///< tokens evaluated for the prompt (without those the session knew)
  int64_t n_reused = 0;  ///< prompt tokens the session already had
  double prompt_seconds = 0, decode_seconds = 0;
  double prompt_rate_tok_s() const { return prompt_seconds > 0 ? static_cast<double>(n_prompt) / prompt_seconds : 0; }
  double decode_rate_tok_s() const {
    return decode_seconds > 0 && tokens.size() > 1 ? static_cast<double>(tokens.size() - 1) / decode_seconds : 0;
  }
};

class Session {
 public:
  ~Session();

  /// Makes the session's history equal to `tokens` and computes what is missing. What can be kept is kept: the common
  /// prefix, as far as the model's memory can be cut back to it. Afterwards logits() belongs to the last token.
  /// Returns how many tokens were kept. Throws Error(bad_argument) when tokens is empty, holds an id outside the
  /// vocabulary, or exceeds the context (it names both numbers); the session is unchanged then.
  int64_t sync(std::span<const int32_t> tokens);
  /// Logits of the last token of the history, one per vocabulary entry.
  std::span<const float> logits() const;
  std::span<const int32_t> history() const;
  int64_t n_ctx() const;

  /// sync(prompt), then samples, decodes and streams until something ends it.
  GenerateResult generate(std::span<const int32_t> prompt, const GenerateOptions& options);
  /// Stops a running sync() or generate() at its next step; may be called from any thread.
  void cancel();

  /// Memory of this session: KV, recurrent state, scratch, sampler.
  std::vector<MemoryItem> memory() const;

 private:
  friend class Engine;
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct KernelPlacement {  ///< which kernel ran a verb, where, how often
  std::string verb, kernel, device;
  int64_t calls = 0;
  std::string weights{};  ///< of products: what the weights are called in every layer ("ffn_gate")
  int64_t bytes = 0;      ///< of weights, KV rows and recurrent states that the calls had to read (states: and write)
  double seconds = 0;     ///< of the timed calls; products that run together share theirs by bytes
  int64_t n_timed = 0;    ///< calls made while time_verbs() was on
  int64_t multiply_adds = 0;  ///< of products
};

struct TokenizeOptions {
  bool parse_special = false;  ///< control tokens in the text become their ids
  bool add_special = false;    ///< BOS / EOS where the vocabulary says so
};

/// The tokenizer of a file by itself: neither its weights nor its architecture matter, so files that hold a vocabulary
/// and nothing else are welcome.
class Vocabulary {
 public:
  /// Throws Error: bad_file, or unsupported when the file holds no vocabulary or one of an unknown kind.
  static std::unique_ptr<Vocabulary> open(const ModelSource& source);
  ~Vocabulary();

  std::vector<int32_t> tokenize(std::string_view text, TokenizeOptions options = {}) const;
  /// Throws Error(bad_argument) for an id outside the vocabulary.
  std::string detokenize(std::span<const int32_t> ids, bool show_special = true) const;
  int64_t size() const;

 private:
  struct Impl;
  explicit Vocabulary(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Engine {
 public:
  /// Opens, checks and binds a model. Throws Error.
  static std::unique_ptr<Engine> open(const EngineOptions& options);
  ~Engine();

  const ModelInfo& info() const;
  std::string backend() const;  ///< "cpu"
  std::string kernels() const;  ///< the kernel table in use, e.g. "avx2"
  int n_threads() const;
  std::vector<KernelPlacement> placement() const;
  /// Whether verbs are timed from now on; a clock costs up to 1 % of a small model's decode step, so it is off at
  /// first.
  void time_verbs(bool on) const;
  /// Memory of the engine itself: weights, vocabulary.
  std::vector<MemoryItem> memory() const;

  std::vector<int32_t> tokenize(std::string_view text, TokenizeOptions options = {}) const;
  std::string detokenize(std::span<const int32_t> ids, bool show_special = true) const;
  /// Token ids of the prompt that asks `text` as a user's message, in ChatML, with a system turn first unless `system`
  /// is empty; empty when the vocabulary has no ChatML tokens. Control tokens that the texts spell stay ordinary text.
  /// Models whose template knows reasoning: without `reasoning` the prompt ends with a closed, empty think block;
  /// with it, with an open one where the template itself opens it (Qwen3.5), else as is (Qwen3).
  /// (The model's own template language comes with `kazeia chat`.)
  std::vector<int32_t> chatml_prompt(std::string_view text, std::string_view system, bool reasoning) const;

  std::unique_ptr<Session> open_session(const SessionOptions& options) const;

  /// Evaluates `ids` from an empty history and hands over the logits of every position from first_position on, in
  /// order. The context is as long as `ids`, whatever options.n_ctx says; memory for logits is bounded (64 MiB, but
  /// one row at least). Throws Error(bad_argument) when ids is empty or holds an id outside the vocabulary.
  void evaluate(std::span<const int32_t> ids, const SessionOptions& options,
                const std::function<void(int64_t position, std::span<const float> logits)>& on_row,
                int64_t first_position = 0) const;

 private:
  // Measuring (bench.h) works on the engine's own threads and sessions.
  friend class LimitMeter;
  friend void check_bench_test(const Engine& engine, const struct BenchTest& test, const struct BenchOptions& options);
  friend struct BenchResult run_bench(const Engine& engine, const struct BenchTest& test,
                                      const struct BenchOptions& options);
  friend double time_to_first_token(const Engine& engine, const SessionOptions& options, int64_t n_prompt);
  friend std::string model_fingerprint(const Engine& engine);

  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Perplexity by llama.cpp's definition: chunks of n_ctx tokens, each from an empty context, only the predictions of
/// the second half scored (docs/perplexity.md).
struct PerplexityResult {
  double perplexity = 0, standard_error = 0;
  int64_t n_tokens = 0, n_chunks = 0, n_scored = 0;
  std::vector<double> running;  ///< after each chunk
};
PerplexityResult perplexity(const Engine& engine, std::string_view text, int64_t n_ctx, const SessionOptions& options,
                            const std::function<void(int64_t chunk, int64_t n_chunks, double running)>& on_chunk);

struct QuantizeOptions {
  std::string type;               ///< "Q4_0", "Q8_0", "Q4_K", "Q4_K_M", ...
  bool pure = false;              ///< every quantisable tensor in that type, embeddings included
  bool allow_requantize = false;  ///< accept a source that is quantised already
  int n_threads = 0;
  std::function<void(uint64_t done, uint64_t total)> progress;
};
struct QuantizeResult {
  int64_t source_bytes = 0, target_bytes = 0;
  std::vector<std::string> fallbacks;  ///< tensors that got another type, and why
};
QuantizeResult quantize(const std::string& source, const std::string& target, const QuantizeOptions& options);

/// Kernel tables of this build, best first, and whether this machine runs them.
std::vector<std::pair<std::string, bool>> kernel_tables();
/// Version and commit of this build.
std::string version();

}  // namespace kz
