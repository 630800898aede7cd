// `kazeia bench`: how fast a model runs here, and how near that is to what the machine can do.
#include "apps/cli/bench_lists.h"
#include "apps/cli/bench_output.h"
#include "apps/cli/bench_profile.h"
#include "apps/cli/bench_row.h"
#include "apps/cli/commands.h"
#include "apps/cli/console.h"
#include "apps/cli/flags.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <kazeia/bench.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>

namespace kz::cli {
namespace {

constexpr const char* kFooter =
    "Options that say LIST take several values: 16,512 or 0-4096+1024 or 1-8*2. Every combination is\n"
    "measured: the prompt tests (pp), then the decode tests (tg), at each depth. docs/bench.md names the fields.\n"
    "\n"
    "Examples:\n"
    "  kazeia bench -m model.gguf\n"
    "  kazeia bench -m model.gguf -p 128,512 -n 128 -d 0,4096 -t 1,2 -o json\n"
    "  kazeia bench -m model.gguf -p 512 -n 32 --profile";

constexpr int64_t kMostTokens = int64_t{1} << 24;
constexpr int64_t kMostThreads = 512;

using Words = std::vector<std::string>;

struct BenchFlags {
  ModelFlags model;
  Words n_prompt, n_gen, n_depth, n_threads, n_batch, n_ubatch, key_types, value_types, isa, activations, first_token;
  int64_t repetitions = 5;
  std::string format = "table";
  bool warm_up = true, limits = true, profile = false, progress = false;
};

/// The lists, read.
struct BenchLists {
  std::vector<int64_t> n_prompt, n_gen, n_depth, n_threads, n_batch, n_ubatch, first_token;
  Words key_types, value_types, isa, activations;

  explicit BenchLists(const BenchFlags& flags)
      : n_prompt(numbers("-p", flags.n_prompt, "512", 0, kMostTokens)),
        n_gen(numbers("-n", flags.n_gen, "128", 0, kMostTokens)),
        n_depth(numbers("-d", flags.n_depth, "0", 0, kMostTokens)),
        n_threads(numbers("-t", flags.n_threads, "0", 0, kMostThreads)),
        n_batch(numbers("-b", flags.n_batch, "2048", 1, kMostTokens)),
        n_ubatch(numbers("-ub", flags.n_ubatch, "512", 1, kMostTokens)),
        first_token(numbers("--first-token", flags.first_token, "32,128,512", 0, kMostTokens)),
        key_types(names("-ctk", flags.key_types, "f16")),
        value_types(names("-ctv", flags.value_types, "f16")),
        isa(names("--isa", flags.isa, flags.model.isa)),
        activations(names("--activations", flags.activations, flags.model.activations)) {}

  std::vector<BenchTest> tests() const {
    std::vector<BenchTest> all;
    for (const int64_t depth : n_depth) {
      for (const int64_t n : n_prompt) {
        if (n > 0) all.push_back({n, 0, depth});
      }
      for (const int64_t n : n_gen) {
        if (n > 0) all.push_back({0, n, depth});
      }
    }
    return all;
  }

 private:
  static std::vector<int64_t> numbers(const std::string& option, const Words& words, const std::string& otherwise,
                                      int64_t lowest, int64_t highest) {
    return parse_numbers(option, words.empty() ? Words{otherwise} : words, lowest, highest);
  }
  static Words names(const std::string& option, const Words& words, const std::string& otherwise) {
    return parse_names(option, words.empty() ? Words{otherwise} : words);
  }
};

std::string time_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

/// Runs the tests of one engine after another and keeps what came out.
class Bench {
 public:
  Bench(const BenchFlags& flags, const BenchLists& lists) : flags_(flags), lists_(lists) {}

  void run() {
    for (const std::string& activations : lists_.activations) {
      for (const std::string& isa : lists_.isa) {
        for (const int64_t n_threads : lists_.n_threads) run_engine(activations, isa, n_threads);
      }
    }
  }

  std::string text() const { return bench_text(parse_bench_format(flags_.format), rows_) + profiles_; }

 private:
  void run_engine(const std::string& activations, const std::string& isa, int64_t n_threads) {
    throw_if_interrupted();
    note(fmt::format("loading {}: {}, {}, {} threads", flags_.model.path, activations, isa, n_threads));
    EngineOptions options = flags_.model.engine_options();
    options.activations = activations;
    options.isa = isa;
    options.n_threads = static_cast<int>(n_threads);
    reset_peak_memory();
    const auto start = std::chrono::steady_clock::now();
    const std::unique_ptr<Engine> engine = Engine::open(options);
    BenchSetup setup;
    setup.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    setup.load_peak_bytes = process_memory().peak_bytes;
    setup.activations = activations;
    setup.model_hash = model_fingerprint(*engine);
    setup.machine = machine_facts();
    // What cannot run shows before hours have gone by.
    for_sessions([&](const SessionOptions& session, int64_t, int64_t) {
      for (const BenchTest& test : lists_.tests()) check_bench_test(*engine, test, bench_options(session, nullptr));
    });
    const bool has_limits = flags_.limits && engine->backend() == "cpu";
    const std::unique_ptr<LimitMeter> meter = has_limits ? std::make_unique<LimitMeter>(*engine) : nullptr;
    for_sessions([&](const SessionOptions& session, int64_t n_batch, int64_t n_ubatch) {
      BenchConditions conditions;
      conditions.n_batch = n_batch;
      conditions.n_ubatch = n_ubatch;
      conditions.key_type = session.key_type;
      conditions.value_type = session.value_type;
      conditions.first_token_seconds = first_tokens(*engine, session);
      for (const BenchTest& test : lists_.tests()) run_test(*engine, setup, conditions, session, test, meter.get());
    });
  }

  /// body(session options, -b, -ub) for every combination.
  template <class Body>
  void for_sessions(Body body) const {
    SessionOptions session;
    for (const std::string& key_type : lists_.key_types) {
      for (const std::string& value_type : lists_.value_types) {
        for (const int64_t n_batch : lists_.n_batch) {
          for (const int64_t n_ubatch : lists_.n_ubatch) {
            session.key_type = key_type;
            session.value_type = value_type;
            session.n_batch = std::min(n_batch, n_ubatch);  // the engine has no outer batch
            body(session, n_batch, n_ubatch);
          }
        }
      }
    }
  }

  BenchOptions bench_options(const SessionOptions& session, const LimitMeter* meter) const {
    BenchOptions options;
    options.session = session;
    options.repetitions = flags_.repetitions;
    options.warm_up = flags_.warm_up;
    options.profile = flags_.profile;
    options.limits = meter;
    options.on_repetition = throw_if_interrupted;
    return options;
  }

  void run_test(const Engine& engine, const BenchSetup& setup, BenchConditions conditions,
                const SessionOptions& session, const BenchTest& test, const LimitMeter* meter) {
    note(
        fmt::format("{}, {} threads, KV {}/{}", test.name(), engine.n_threads(), session.key_type, session.value_type));
    conditions.test_time = time_now();
    const BenchResult result = run_bench(engine, test, bench_options(session, meter));
    rows_.push_back(bench_row(engine, setup, conditions, result));
    if (!flags_.profile) return;
    rows_.back()["profile"] = profile_json(result);
    const BenchFormat format = parse_bench_format(flags_.format);
    if (format == BenchFormat::table || format == BenchFormat::markdown) profiles_ += "\n" + profile_text(result);
  }

  /// Of a few runs while they are short, of one where they are long.
  std::map<int64_t, double> first_tokens(const Engine& engine, const SessionOptions& session) const {
    constexpr double kLongSeconds = 2;
    constexpr size_t kMostRuns = 3;
    std::map<int64_t, double> middle;
    for (const int64_t n_prompt : lists_.first_token) {
      if (n_prompt == 0 || n_prompt > engine.info().n_ctx_train) continue;
      note(fmt::format("time to the first token of a prompt of {}", n_prompt));
      std::vector<double> seconds;
      do {
        throw_if_interrupted();
        seconds.push_back(time_to_first_token(engine, session, n_prompt));
      } while (seconds.size() < kMostRuns && seconds.back() < kLongSeconds);
      middle[n_prompt] = median(seconds);
    }
    return middle;
  }

  void note(const std::string& line) const {
    if (flags_.progress) write_err(fmt::format("bench: {}\n", printable(line)));
  }

  const BenchFlags& flags_;
  const BenchLists& lists_;
  std::vector<nlohmann::ordered_json> rows_;
  std::string profiles_;
};

int run_bench_command(const BenchFlags& flags) {
  parse_bench_format(flags.format);
  const BenchLists lists(flags);
  if (lists.tests().empty()) throw Error(ErrorCode::bad_argument, "nothing to measure: -p and -n are both 0");
  watch_interrupts();
  Bench bench(flags, lists);
  bench.run();
  write_out(bench.text());
  return 0;
}

void add_lists(CLI::App& app, BenchFlags& flags) {
  const auto add = [&app](const char* names, Words& target, const char* help) {
    add_texts(app, names, "LIST", target, help);
  };
  add("-p,--n-prompt", flags.n_prompt, "Tokens of the prompt tests; 0: none (default 512)");
  add("-n,--n-gen", flags.n_gen, "Tokens of the decode tests; 0: none (default 128)");
  add("-d,--n-depth", flags.n_depth, "Tokens in the context before a test starts (default 0)");
  add("-t,--threads", flags.n_threads, "Threads; 0 (default): one per core");
  add("-b,--batch-size", flags.n_batch, "Most prompt tokens of one batch (default 2048)");
  add("--ubatch-size", flags.n_ubatch, "Most prompt tokens of one pass (default 512; the smaller of both counts)");
  add("--cache-type-k", flags.key_types, "Types of cached keys: f32, f16, q8_0 (default f16)");
  add("--cache-type-v", flags.value_types, "Types of cached values (default f16)");
  add("--isa", flags.isa, "Kernel tables; auto (default) takes the best");
  add("--activations", flags.activations, "Arithmetic classes of the products, as for run");
  add("--first-token", flags.first_token,
      "Prompts to take the time to the first token of; 0: none (default 32,128,512)");
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench", "Measure speed, and its share of what this machine can do");
  command->footer(kFooter);
  const auto flags = std::make_shared<BenchFlags>();
  flags->model.add_path(*command);
  add_lists(*command, *flags);
  add_integer(*command, "-r,--repetitions", "N", flags->repetitions, 1, 10000, "Repetitions of each test (default 5)");
  flags->model.add_cores(*command);
  add_text(*command, "--backend", "NAME", flags->model.backend, "cpu (default) or reference");
  add_text(*command, "-o,--output", "FORMAT", flags->format, "table (default), md, csv, json or jsonl");
  add_switch(*command, "--profile", flags->profile, "Show the time per verb of one more repetition of each test");
  add_switch(*command, "--warmup,!--no-warmup", flags->warm_up, "Run each test once before (default: on)");
  add_switch(*command, "--limits,!--no-limits", flags->limits,
             "Measure what the machine can read and multiply (default: on)");
  add_switch(*command, "--progress", flags->progress, "Say on standard error what runs");
  command->callback([flags, &action] { action = [flags] { return run_bench_command(*flags); }; });
}

}  // namespace kz::cli
