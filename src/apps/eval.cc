// `deepinfer eval ppl FILE`: perplexity of a text. `eval tasks` has a file of its own.
#include <cmath>

#include "apps/answer_collector.h"
#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/perplexity.h"
#include "apps/terminal.h"
#include "base/log.h"
#include "base/progress.h"

namespace deepinfer {
namespace {

struct EvalFlags {
  EngineFlags engine;
  std::string file;
  int32_t window = 0, stride = 0;
  int64_t max_text_tokens = 0;
  bool json = false;
};

std::string Report(const EvalFlags& flags, const PerplexityResult& result, int64_t num_bytes,
                   double seconds) {
  const double bits = result.negative_log_likelihood / std::log(2.0);
  const double bits_per_byte = bits / static_cast<double>(num_bytes);
  const double rate = static_cast<double>(result.num_computed) / seconds;
  if (flags.json) {
    JsonValue out = JsonValue::Object();
    out.Set("file", JsonValue::String(flags.file));
    out.Set("perplexity", JsonNumber(result.perplexity()));
    out.Set("bits_per_byte", JsonNumber(bits_per_byte));
    out.Set("tokens", JsonNumber(result.num_tokens));
    out.Set("bytes", JsonNumber(num_bytes));
    out.Set("window", JsonNumber(int64_t{flags.window}));
    out.Set("stride", JsonNumber(int64_t{flags.stride}));
    out.Set("computed_tokens", JsonNumber(result.num_computed));
    out.Set("seconds", JsonNumber(seconds));
    out.Set("tokens_per_second", JsonNumber(rate));
    return DumpJson(out) + "\n";
  }
  return StrCat("perplexity       ", result.perplexity(), "\nbits per byte    ", bits_per_byte,
                "\nscored           ", result.num_tokens, " tokens, ", num_bytes,
                " bytes\nwindow, stride   ", flags.window, ", ", flags.stride,
                " tokens\nspeed            ", rate, " tokens/s (", result.num_computed,
                " computed in ", seconds, " s)\n");
}

StatusOr<int> RunPerplexity(EvalFlags flags, const CommandContext& context) {
  DI_ASSIGN_OR_RETURN(const std::string text, context.disk.ReadText(flags.file));
  DI_ASSIGN_OR_RETURN(const auto engine, LoadWithProgress(flags.engine, context));
  const int32_t limit = engine->info().max_model_len;
  if (flags.window == 0) flags.window = std::min(2048, limit);
  if (flags.stride == 0) flags.stride = std::max(1, flags.window / 2);
  if (flags.window > limit) {
    return InvalidArgument("--window: found ", flags.window, ", the model takes ", limit);
  }
  if (flags.stride >= flags.window) {
    return InvalidArgument("--stride: found ", flags.stride, ", expected less than --window, ",
                           flags.window);
  }
  DI_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, engine->EncodeText(text));
  tokens.erase(tokens.begin());  // every window has its own BOS
  auto num_bytes = static_cast<int64_t>(text.size());
  if (flags.max_text_tokens > 0 && flags.max_text_tokens < std::ssize(tokens)) {
    tokens.resize(static_cast<size_t>(flags.max_text_tokens));
    num_bytes = 0;
    for (const int32_t id : tokens) num_bytes += std::ssize(engine->tokenizer()->BytesOf(id));
  }

  Progress progress("scoring", "tokens", std::ssize(tokens), context.clock);
  const MonotonicTime start = context.clock.Now();
  const auto result = MeasurePerplexity(engine->core(), tokens,
                                        {.bos_id = engine->config().bos_token_id,
                                         .window = flags.window,
                                         .stride = flags.stride,
                                         .progress = [&](int64_t n) { progress.Add(n); }});
  if (!result.ok()) return Annotate(result.status(), flags.file);
  const double seconds = Seconds(context.clock.Now() - start);
  DI_RETURN_IF_ERROR(WriteStdout(Report(flags, *result, num_bytes, seconds)));
  return kExitOk;
}

}  // namespace

StatusOr<int> RunEvalCommand(const CommandContext& context) {
  if (!context.arguments.empty() && context.arguments.front() == "tasks") {
    CommandContext rest = context;
    rest.arguments.erase(rest.arguments.begin());
    return RunEvalTasksCommand(rest);
  }
  EvalFlags flags;
  std::string what;
  OptionSet options("eval",
                    "Perplexity of a text file: deepinfer eval ppl FILE. Accuracy on exercises has "
                    "options of its own: deepinfer eval tasks --help");
  options.Add({.flag = "what",
               .help = "what to measure: ppl, or tasks with options of its own",
               .choices = {"ppl", "tasks"},
               .positional = true},
              &what);
  options.Add({.flag = "file", .help = "the text, UTF-8", .unit = "FILE", .positional = true},
              &flags.file);
  options.Add(
      {.flag = "window",
       .help = "tokens that are scored together, BOS included; 0: 2048 or the model's limit",
       .unit = "tokens",
       .min = 0},
      &flags.window);
  options.Add({.flag = "stride",
               .help = "from the start of a window to the start of the next; 0: half a window",
               .unit = "tokens",
               .min = 0},
              &flags.stride);
  options.Add({.flag = "max-text-tokens",
               .help = "scores only the beginning of the text; 0: all",
               .unit = "tokens",
               .min = 0},
              &flags.max_text_tokens);
  options.Add({.flag = "json", .help = "one JSON object instead of text"}, &flags.json);
  flags.engine.AddTo(options);
  if (const auto code = ParseOptions(options, context)) return *code;
  if (what == "tasks") {
    PrintError("deepinfer eval: tasks comes first: deepinfer eval tasks [options]");
    return kExitUsage;
  }
  if (what.empty() || flags.file.empty() || flags.window == 1) {
    PrintError(flags.window == 1
                   ? "deepinfer eval: --window: found 1, expected at least 2"
                   : "deepinfer eval: expected: deepinfer eval ppl FILE or deepinfer eval tasks");
    return kExitUsage;
  }
  return RunPerplexity(std::move(flags), context);
}

}  // namespace deepinfer
