// model/hf_cache.h: from a model argument to a checkpoint directory on this machine. Nothing is
// fetched.
#pragma once

#include <string>
#include <string_view>

#include "base/disk.h"
#include "base/status.h"

namespace deepinfer {

// Values of the environment, read by apps/. Empty = not set.
struct CacheEnvironment {
  std::string hf_hub_cache;    // HF_HUB_CACHE: the folder of models--org--name folders
  std::string hf_home;         // HF_HOME: that folder is hub/ in it
  std::string xdg_cache_home;  // XDG_CACHE_HOME
  std::string home;            // HOME
};

// The Hugging Face hub folder by the hub client's own rules: HF_HUB_CACHE, else HF_HOME/hub, else
// XDG_CACHE_HOME/huggingface/hub, else HOME/.cache/huggingface/hub. Empty if none can be formed.
std::string HubCacheFolder(const CacheEnvironment& environment);

// `argument` is a directory, or `org/name` of a model in the local Hugging Face cache (its snapshot
// of refs/main). Errors: kNotFound saying where it looked and which command fetches the model
// elsewhere.
StatusOr<std::string> LocateModel(Disk& disk, const std::string& argument,
                                  const CacheEnvironment& environment);

}  // namespace deepinfer
