// `deepinfer eval tasks`: what a model can do, on exercises that its training never saw.
#include <memory>
#include <sstream>

#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/task_evaluation.h"
#include "apps/task_items.h"
#include "apps/task_report.h"
#include "apps/terminal.h"
#include "base/log.h"

namespace deepinfer {
namespace {

struct EvalTasksFlags {
  EngineFlags engine;
  std::string tasks, text, published_tools, wrong;
  std::optional<uint64_t> seed;
  int32_t items = 0, draft_items = 0, max_answer_tokens = 512;
  bool json = false;

  void AddTo(OptionSet& options);
};

void EvalTasksFlags::AddTo(OptionSet& options) {
  options.Add({.flag = "tasks",
               .help = "only these, separated by commas; a name that does not exist lists all",
               .unit = "NAMES"},
              &tasks);
  options.Add({.flag = "items",
               .help = "exercises of each task; 0: 200, of needle tasks (a long context each) 100",
               .min = 0},
              &items);
  options.Add({.flag = "draft-items",
               .help = "of each task's exercises, how many are answered again with drafts; 0: all, "
                       "of needle tasks a quarter",
               .min = 0},
              &draft_items);
  options.Add({.flag = "seed",
               .help = "of the draw; not given: of the weights' SHA-256, so that nobody could "
                       "choose it before they were final"},
              &seed);
  options.Add({.flag = "max-answer-tokens",
               .help = "longer answers are cut, and wrong",
               .unit = "tokens",
               .min = 1},
              &max_answer_tokens);
  options.Add({.flag = "text",
               .help = "held-out text for the perplexity, UTF-8; not given: stories that the "
                       "evaluation makes up",
               .unit = "FILE"},
              &text);
  options.Add({.flag = "published-tools",
               .help = "tool definitions for the task tools_real, one JSON object a line "
                       "(tools/nano/corpus.py: held_tools.jsonl); not given: not asked",
               .unit = "FILE"},
              &published_tools);
  options.Add({.flag = "wrong",
               .help = "where wrong answers (exact replay) go, with prompt and right answer, JSONL",
               .unit = "FILE"},
              &wrong);
  options.Add({.flag = "json", .help = "one JSON object instead of tables"}, &json);
  engine.AddLoadingTo(options);
  engine.AddServingTo(options);
}

std::vector<std::string> SplitNames(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ',');) names.push_back(name);
  return names;
}

}  // namespace

StatusOr<int> RunEvalTasksCommand(const CommandContext& context) {
  EvalTasksFlags flags;
  OptionSet options(
      "eval tasks",
      "Asks the model held-out exercises, greedily, in exact and in bounded replay; then once more "
      "with its drafts. Exit code 1: an exercise was in training, or drafts changed an answer.");
  flags.AddTo(options);
  if (const auto code = ParseOptions(options, context)) return *code;
  TaskEvaluationOptions wanted = {.tasks = SplitNames(flags.tasks),
                                  .num_items = flags.items,
                                  .num_draft_items = flags.draft_items,
                                  .max_answer_tokens = flags.max_answer_tokens,
                                  .text_name = flags.text};
  if (const Status known = CheckTaskNames(wanted.tasks); !known.ok()) {
    PrintError(StrCat("deepinfer eval tasks: ", MessageOf(known)));
    return kExitUsage;
  }
  if (!flags.text.empty()) {
    DI_ASSIGN_OR_RETURN(wanted.text, context.disk.ReadText(flags.text));
    if (wanted.text.empty()) return InvalidArgument(flags.text, ": empty, expected a text");
  }
  if (!flags.published_tools.empty()) {
    DI_ASSIGN_OR_RETURN(wanted.published_tools, context.disk.ReadText(flags.published_tools));
  }
  std::unique_ptr<WritableFile> wrong;
  if (!flags.wrong.empty()) {
    DI_ASSIGN_OR_RETURN(wrong, context.disk.Create(flags.wrong));
    wanted.wrong = wrong.get();
  }
  flags.engine.engine.replay = "exact";
  DI_ASSIGN_OR_RETURN(const auto engine, LoadWithProgress(flags.engine, context));
  if (flags.seed) {
    wanted.seed = *flags.seed;
  } else {
    DI_ASSIGN_OR_RETURN(wanted.seed, SeedOfWeights(engine->checkpoint()));
  }
  LogInfo("seed ", wanted.seed, flags.seed ? "" : " (of the weights)");
  DI_ASSIGN_OR_RETURN(Evaluation evaluation,
                      EvaluateTasks(*engine, context.disk, context.clock, wanted));
  evaluation.seed_of_weights = !flags.seed;
  DI_RETURN_IF_ERROR(
      WriteStdout(flags.json ? EvaluationJson(evaluation) : EvaluationTable(evaluation)));
  return evaluation.IsSound() ? kExitOk : kExitFailed;
}

}  // namespace deepinfer
