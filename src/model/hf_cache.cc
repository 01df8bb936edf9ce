#include "model/hf_cache.h"

namespace deepinfer {
namespace {

// The hub's rule for organisation and model names: letters, digits, '-', '_', '.'.
bool IsHubName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

struct HubModel {
  std::string organisation, name;
};

std::optional<HubModel> ParseHubModel(std::string_view argument) {
  const size_t slash = argument.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view organisation = argument.substr(0, slash),
                         name = argument.substr(slash + 1);
  if (!IsHubName(organisation) || !IsHubName(name)) return {};
  return HubModel{std::string(organisation), std::string(name)};
}

std::string WithoutSpaceAtEnd(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

Status NotCached(const std::string& argument, const std::string& looked_at) {
  return NotFound(argument, ": no such directory, and not in the Hugging Face cache (looked at ",
                  looked_at,
                  "); this program fetches nothing: on a machine with network run `hf download ",
                  argument, "` and bring the cache folder here, or give a directory");
}

}  // namespace

std::string HubCacheFolder(const CacheEnvironment& environment) {
  if (!environment.hf_hub_cache.empty()) return environment.hf_hub_cache;
  if (!environment.hf_home.empty()) return environment.hf_home + "/hub";
  if (!environment.xdg_cache_home.empty()) return environment.xdg_cache_home + "/huggingface/hub";
  if (!environment.home.empty()) return environment.home + "/.cache/huggingface/hub";
  return "";
}

StatusOr<std::string> LocateModel(Disk& disk, const std::string& argument,
                                  const CacheEnvironment& environment) {
  if (disk.IsDirectory(argument)) return argument;
  if (disk.IsFile(argument)) {
    return FailedPrecondition(argument, ": is a file; expected a checkpoint directory or org/name");
  }
  const std::optional<HubModel> model = ParseHubModel(argument);
  if (!model) {
    return NotFound(argument,
                    ": no such directory; expected a checkpoint directory or org/name of a model "
                    "in the Hugging Face cache");
  }
  const std::string hub = HubCacheFolder(environment);
  if (hub.empty()) {
    return NotCached(argument,
                     "nothing: none of HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, HOME is set");
  }
  const std::string folder = StrCat(hub, "/models--", model->organisation, "--", model->name);
  const std::string ref = folder + "/refs/main";
  if (!disk.IsFile(ref)) return NotCached(argument, ref);
  DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(ref, 4096));
  const std::string revision = WithoutSpaceAtEnd(text);
  if (!IsHubName(revision)) {
    return DataLoss(ref, ": expected the name of a revision, found ", revision.size(),
                    " other bytes");
  }
  const std::string snapshot = StrCat(folder, "/snapshots/", revision);
  if (!disk.IsDirectory(snapshot)) return NotCached(argument, snapshot);
  return snapshot;
}

}  // namespace deepinfer
