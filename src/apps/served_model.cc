#include "apps/served_model.h"

#include <algorithm>

#include "base/sha256.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{64} << 20;
constexpr std::string_view kFamilyName = "deepseek-flash";

std::string LastPart(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

// org/name stays as it is; of a directory, its own name.
std::string CheckpointName(const std::string& model, Disk& disk) {
  return disk.IsDirectory(model) ? LastPart(model) : model;
}

// Of the files that say which weights these are, and of the options that change results.
std::string Fingerprint(const LoadedEngine& engine, Disk& disk) {
  Sha256 all;
  const auto add = [&all](std::string_view text) {
    const Sha256Digest digest = Sha256Of(text);
    all.Update(digest);
  };
  const std::string& directory = engine.info().model_directory;
  for (const char* name : {"config.json", "model.safetensors.index.json", "tokenizer.json"}) {
    const auto text = disk.ReadText(StrCat(directory, "/", name), kMaxFileBytes);
    add(text.ok() ? *text : "");
  }
  const SchedulerOptions& options = engine.core_options().scheduler;
  add(StrCat(static_cast<int>(options.replay), " ", options.max_model_len));
  const Sha256Digest digest = all.Finish();
  return StrCat("fp_", ToHex(digest).substr(0, 12));
}

}  // namespace

StatusOr<Thinking> ParseThinking(const std::string& text) {
  if (text == "on") return ParseEffort("high");
  return ParseEffort(text == "off" ? "none" : text);
}

StatusOr<Thinking> CheckpointThinking(const std::string& directory, Disk& disk) {
  const std::string path = directory + "/generation_config.json";
  if (!disk.IsFile(path)) return ParseEffort("high");
  DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(path, kMaxFileBytes));
  const auto config = ParseJson(text);
  if (!config.ok()) return Annotate(config.status(), path);
  const JsonValue* effort = config->Find("reasoning_effort");
  if (effort == nullptr || effort->IsNull()) return ParseEffort("high");
  const auto thinking = ParseEffort(effort->text);
  if (!thinking.ok()) return Annotate(thinking.status(), path, ": reasoning_effort");
  return thinking;
}

StatusOr<ServedModel> DescribeModel(const LoadedEngine& engine, const ServedModelOptions& options,
                                    Disk& disk) {
  ServedModel model;
  model.names = options.served_names;
  if (model.names.empty()) {
    model.names = {std::string(kFamilyName)};
    const std::string own = CheckpointName(options.model, disk);
    if (own != kFamilyName) model.names.push_back(own);
  }
  if (options.thinking) {
    const auto thinking = ParseThinking(*options.thinking);
    if (!thinking.ok()) return Annotate(thinking.status(), "--default-thinking (on, off, or)");
    model.thinking = *thinking;
  } else {
    DI_ASSIGN_OR_RETURN(model.thinking, CheckpointThinking(engine.info().model_directory, disk));
  }
  // A request never needs more than the KV cache holds.
  const int64_t cache_tokens = int64_t{engine.kv_sizes().num_pages} * kTokensPerPage;
  model.fingerprint = Fingerprint(engine, disk);
  model.created = options.created;
  model.max_model_len =
      static_cast<int32_t>(std::min<int64_t>(engine.info().max_model_len, cache_tokens));
  model.vocab_size = engine.info().vocab_size;
  model.tokenizer = engine.tokenizer();
  model.texts = engine.prompt_texts();
  return model;
}

}  // namespace deepinfer
