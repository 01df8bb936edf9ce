// `deepinfer inspect`: the command around apps/inspect.h.
#include <functional>

#include "apps/bundled_model.h"
#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/inspect.h"
#include "apps/terminal.h"
#include "base/cpu_topology.h"

namespace deepinfer {

StatusOr<int> RunInspectCommand(const CommandContext& context) {
  InspectOptions inspect;
  EngineFlags flags;
  OptionSet options("inspect",
                    "Reads a checkpoint: census by type and part, differences from the "
                    "specification; with --plan, what an engine with these flags takes of memory "
                    "at its start and where weights can lie. Exit code 1: it has problems.");
  options.Add({.flag = "model",
               .environment = "DEEPINFER_HF_MODEL_DIR",
               .help = "checkpoint directory, config.json, or org/name in the local Hugging Face "
                       "cache; none: the bundled model",
               .unit = "DIR",
               .positional = true},
              &inspect.model);
  options.Add({.flag = "json", .help = "one JSON object instead of tables"}, &inspect.json);
  options.Add(
      {.flag = "plan", .help = "a machine to plan memory for, such as ram=512GiB,gpus=8x139GiB"},
      &inspect.plan);
  options.Add({.flag = "scan-weights", .help = "look at every weight for NaN and unusual scales"},
              &inspect.scan);
  options.Add({.flag = "strict", .help = "unknown configuration keys are problems"},
              &inspect.strict);
  flags.AddSizesTo(options);  // what --plan plans for
  flags.AddServingTo(options);
  flags.AddReplayTo(options);
  AddLogOption(options, &flags.log_level);
  if (const auto code = ParseOptions(options, context)) return *code;
  ApplyLogLevel(flags.log_level);
  DI_RETURN_IF_ERROR(ChooseModel(context.disk, &inspect.model));
  inspect.engine = flags.engine;
  inspect.num_threads =
      flags.engine.num_threads > 0 ? flags.engine.num_threads : DefaultNumThreads();
  WeightProgress progress(context.clock);
  const auto result =
      RunInspect(inspect, context.disk, HubEnvironment(context.environment), std::ref(progress));
  if (!result.ok()) return result.status();
  DI_RETURN_IF_ERROR(WriteStdout(result->output));
  return result->exit_code;
}

}  // namespace deepinfer
