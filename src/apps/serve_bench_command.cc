// `deepinfer bench serve`: flags in, figures out.
#include <sys/resource.h>

#include "apps/engine_flags.h"
#include "apps/serve_bench.h"
#include "apps/terminal.h"
#include "base/log.h"

namespace deepinfer {
namespace {

struct ServeBenchFlags {
  ServeBenchOptions bench;
  std::optional<double> request_rate;
  std::optional<int64_t> num_prompts;
  int32_t input_len = 512, output_len = 128;
  double range_ratio = 0;
  std::string arrivals = "poisson", lengths = "uniform", extra_body, plot, details;
  std::string log_level = "warning";
  uint64_t seed = 1;
  bool stream = true, preconnect = false, json = false;

  void AddTo(OptionSet& options);
  void AddTrafficTo(OptionSet& options);
  Status Complete();
};

void ServeBenchFlags::AddTo(OptionSet& options) {
  options.Add({.flag = "base-url", .help = "the server, with or without /v1", .unit = "URL"},
              &bench.base_url);
  options.Add({.flag = "endpoint",
               .help = "what is asked; completions get token ids, chat gets words",
               .choices = {"/v1/completions", "/v1/chat/completions"}},
              &bench.endpoint);
  options.Add({.flag = "model", .help = "none: the first that the server lists", .unit = "NAME"},
              &bench.body.model);
  options.Add({.flag = "api-key",
               .environment = "OPENAI_API_KEY",
               .help = "sent as a bearer token",
               .unit = "KEY"},
              &bench.api_key);
  options.Add({.flag = "max-concurrency",
               .help = "requests at a time; with --request-rate or --trace 0 is no limit, else one",
               .min = 0,
               .max = 60000},
              &bench.max_concurrency);
  options.Add({.flag = "num-prompts",
               .help = "requests; none: 100, all of a trace, or as many as --duration takes",
               .min = 1},
              &num_prompts);
  options.Add({.flag = "duration",
               .help = "after which no request is sent; 0: until all have been",
               .unit = "s",
               .min = 0},
              &bench.duration_s);
  options.Add({.flag = "num-warmups", .help = "requests before the clock starts", .min = 0},
              &bench.num_warmups);
  options.Add({.flag = "preconnect",
               .help = "connections for all of max-concurrency stand before the clock starts"},
              &preconnect);
  options.Add({.flag = "request-timeout", .help = "of one request", .unit = "s", .min = 0.001},
              &bench.timeout_s);
  options.Add({.flag = "stream", .help = "answers come as server-sent events"}, &stream);
  options.Add({.flag = "ignore-eos",
               .help = "outputs have their full length; needs a server that knows `ignore_eos`"},
              &bench.body.ignore_eos);
  options.Add({.flag = "temperature", .help = "of sampling", .min = 0, .max = 2},
              &bench.body.temperature);
  options.Add({.flag = "extra-body", .help = "members for every request", .unit = "JSON"},
              &extra_body);
  AddTrafficTo(options);
  options.Add({.flag = "json", .help = "one JSON object instead of a table"}, &json);
  options.Add({.flag = "plot", .help = "draws latencies and tokens/s, as SVG", .unit = "FILE"},
              &plot);
  options.Add({.flag = "save-detailed",
               .help = "every request with its times and text, as JSON lines",
               .unit = "FILE"},
              &details);
  options.Add({.flag = "log-level",
               .help = "what goes to stderr",
               .choices = {"debug", "info", "warning", "error"}},
              &log_level);
}

void ServeBenchFlags::AddTrafficTo(OptionSet& options) {
  options.Add({.flag = "request-rate",
               .help = "open loop: requests go out at this rate, however slow the server is; none: "
                       "closed loop",
               .unit = "requests/s",
               .min = 1e-6},
              &request_rate);
  options.Add({.flag = "arrivals",
               .help = "times between requests at a rate",
               .choices = {"poisson", "constant"}},
              &arrivals);
  options.Add({.flag = "random-input-len",
               .help = "length of made-up prompts",
               .unit = "tokens",
               .min = 1,
               .max = 1 << 24},
              &input_len);
  options.Add({.flag = "random-output-len",
               .help = "length of outputs",
               .unit = "tokens",
               .min = 1,
               .max = 1 << 24},
              &output_len);
  options.Add({.flag = "random-range-ratio",
               .help = "how far lengths spread: uniform in length * (1 +- ratio), or deviation of "
                       "the logarithm",
               .min = 0,
               .max = 4},
              &range_ratio);
  options.Add({.flag = "random-lengths",
               .help = "how lengths are spread",
               .choices = {"uniform", "lognormal"}},
              &lengths);
  options.Add({.flag = "random-prefix-len",
               .help = "beginning that prompts share, beyond their length",
               .unit = "tokens",
               .min = 0,
               .max = 1 << 24},
              &bench.random.prefix_tokens);
  options.Add(
      {.flag = "random-num-prefixes", .help = "beginnings, of which each prompt has one", .min = 1},
      &bench.random.num_prefixes);
  options.Add(
      {.flag = "vocab-size", .help = "token ids of made-up prompts are below it", .min = 101},
      &bench.body.vocab_size);
  options.Add({.flag = "trace",
               .help = "open loop: lengths, times and common prompt blocks of a recorded trace, "
                       "Mooncake's JSON lines or Azure's CSV",
               .unit = "FILE"},
              &bench.trace);
  options.Add({.flag = "trace-speed", .help = "times of the trace are divided by it", .min = 1e-6},
              &bench.trace_options.speed);
  options.Add({.flag = "trace-length-scale",
               .help = "lengths of the trace are multiplied by it",
               .min = 1e-6,
               .max = 100},
              &bench.trace_options.length_scale);
  options.Add({.flag = "trace-block-tokens",
               .help = "prompt tokens that a hash id of the trace stands for",
               .unit = "tokens",
               .min = 1},
              &bench.trace_options.block_tokens);
  options.Add({.flag = "seed", .help = "of prompts, lengths and arrivals"}, &seed);
}

Status ServeBenchFlags::Complete() {
  const bool is_trace = !bench.trace.empty();
  if (is_trace && request_rate) {
    return InvalidArgument(
        "--request-rate: a trace has times of its own; --trace-speed scales them");
  }
  if (lengths == "uniform" && range_ratio >= 1) {
    return InvalidArgument("--random-range-ratio: found ", range_ratio,
                           ", uniform lengths take less than 1");
  }
  bench.scheduled = is_trace || request_rate;
  if (!bench.scheduled && bench.max_concurrency == 0) bench.max_concurrency = 1;
  const bool timed = bench.duration_s > 0;
  bench.random.num_requests = num_prompts.value_or(timed ? 0 : 100);
  bench.trace_options.num_requests = num_prompts.value_or(0);
  bench.random.requests_per_s = request_rate.value_or(0);
  bench.random.constant_gaps = arrivals == "constant";
  const auto shape =
      lengths == "uniform" ? LengthDraw::Shape::kUniform : LengthDraw::Shape::kLogNormal;
  bench.random.prompt = {.typical = input_len, .spread = range_ratio, .shape = shape};
  bench.random.output = {.typical = output_len, .spread = range_ratio, .shape = shape};
  bench.random.seed = bench.trace_options.seed = bench.body.seed = seed;
  bench.body.api = bench.endpoint == "/v1/completions" ? ServeApi::kCompletions : ServeApi::kChat;
  bench.body.streams = stream;
  bench.keeps_text = !details.empty();
  if (preconnect && bench.max_concurrency == 0) {
    return InvalidArgument("--preconnect: needs --max-concurrency, which says how many");
  }
  if (preconnect) bench.num_connections = bench.max_concurrency;
  if (extra_body.empty()) return OkStatus();
  auto extra = ParseJson(extra_body);
  if (!extra.ok() || !extra->IsObject()) {
    return InvalidArgument("--extra-body: found ", extra_body, ", expected a JSON object");
  }
  bench.body.extra = *std::move(extra);
  return OkStatus();
}

// Thousands of connections are thousands of files.
void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

StatusOr<int> RunBenchServeCommand(const CommandContext& context) {
  ServeBenchFlags flags;
  OptionSet options("bench serve",
                    "Puts load on a server with an OpenAI-shaped API and shows what its clients "
                    "saw. Closed loop: --max-concurrency requests at a time. Open loop: "
                    "--request-rate or --trace; latencies count from when a request was due.");
  flags.AddTo(options);
  if (const auto code = ParseOptions(options, context)) return *code;
  if (const Status status = flags.Complete(); !status.ok()) {
    PrintError(StrCat("deepinfer bench serve: ", MessageOf(status)));
    return kExitUsage;
  }
  ApplyLogLevel(flags.log_level);
  AllowManyFiles();
  const Interrupts interrupts;  // Ctrl-C: what has been sent is waited for and shown
  flags.bench.is_stopped = [&] { return interrupts.seen(); };
  DI_ASSIGN_OR_RETURN(const ServeRun run, RunServeLoad(flags.bench, context));
  const ServeFigures figures = FiguresOf(run);
  if (!flags.plot.empty()) DI_RETURN_IF_ERROR(context.disk.WriteText(flags.plot, ServePlot(run)));
  if (!flags.details.empty()) {
    DI_RETURN_IF_ERROR(context.disk.WriteText(flags.details, ServeDetails(run)));
  }
  DI_RETURN_IF_ERROR(WriteStdout(flags.json ? ServeJson(run, figures) : ServeTable(run, figures)));
  if (interrupts.seen()) return kExitInterrupted;
  return figures.num_failed == 0 && figures.num_served > 0 ? kExitOk : kExitFailed;
}

}  // namespace deepinfer
