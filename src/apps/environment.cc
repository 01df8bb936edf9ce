#include "apps/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/strings.h"

namespace deepinfer {
namespace {

constexpr std::string_view kPrefix = "DEEPINFER_";

// DeepInfer's names, without the prefix, sorted. Source: the release's source, version 0.1.0.
constexpr std::array kKnownNames = std::to_array<std::string_view>({
    "ACCELERATOR",
    "BATCH_INVARIANT",
    "COMPUTE_SUM_SMALLER_PROBS",
    "CUDAGRAPH_BATCH_SIZE_INTERVAL",
    "DECODE_PERF_CACHE_DIR",
    "DECODE_PERF_CACHE_TTL_SEC",
    "DECODE_TOKEN_BLACKLIST",
    "DFLASH_CONFIDENCE_HEAD_TEMPERATURE",
    "DFLASH_CUDAGRAPH_BATCH_SIZE_INTERVAL",
    "DFLASH_ENFORCE_EAGER",
    "ENABLE_MTP_VARLEN",
    "ENFORCE_EAGER",
    "ENGRAM_FORCE_GPU_STORAGE",
    "ENGRAM_PAD_TOKEN",
    "EXPERT_COUNT_WINDOW_SIZE",
    "EXPERT_REARRANGEMENT_STEP_INTERVAL",
    "GLOO_TIMEOUT",
    "HF_MODEL_DIR",
    "INDEX_ATTN_MEMORY_LIMIT",
    "JIT_CACHE_DIR",
    "LOGGING_INTERVAL_STEP",
    "MAX_BACKTRACKING_TOKENS",
    "MOE_LB_STAT_INTERVAL",
    "MULTIMODAL_POOL_SIZE_GB",
    "MULTI_MODAL_BUFFER_SIZE",
    "MULTI_MODAL_WORKER_TIMEOUT",
    "NCCL_NUM_SMS",
    "NUM_STATE_SLOTS_RATIO",
    "OVERRIDE_NUM_EXTRA_EXPERTS",
    "PREFILL_ANY_ATTEMPT_INTERVAL",
    "PREFILL_ATTEMPT_INTERVAL",
    "PREFILL_MAX_SUM_SEQLEN_K",
    "PREFILL_STORE_EXTRA_SIZE",
    "PREFILL_STORE_EXTRA_STATE",
    "PROFILE_HTTP_ENABLE",
    "PROFILE_HTTP_PORT_BASE",
    "REARRANGE_AFTER_PREFILL_IN_NORMAL_ENGINE",
    "SAMPLER_FORCE_TOPK",
    "SO_BUILDER_CPUS",
    "USERBUFFER_COMM_SMS",
    "USE_MULTIMODAL_POOL",
    "USE_NEXTN_DECODE",
    "XGRAMMAR_CACHE_LIMIT_BYTES",
    "XGRAMMAR_DISABLE_CACHE",
    "XGRAMMAR_TIMEOUT",
    "YOCO_PREFILL_KEEP_TOKENS",
    "YOCO_PREFILL_TRUNCATION_MODE",
    "ZERO_OVERHEAD_SCHEDULING",
});
static_assert(std::is_sorted(kKnownNames.begin(), kKnownNames.end()));

}  // namespace

Environment ProcessEnvironment() {
  Environment all;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view line = *at;
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
      all.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
  }
  return all;
}

bool ParseSwitch(std::string_view text) {
  return !text.empty() && text != "0" && text != "false" && text != "False";
}

std::set<std::string> ReportUnusedNames(const Environment& environment,
                                        const std::set<std::string>& used) {
  std::set<std::string> idle, unknown;
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(kPrefix) || used.contains(name)) continue;
    const std::string_view rest = std::string_view(name).substr(kPrefix.size());
    const bool known = std::binary_search(kKnownNames.begin(), kKnownNames.end(), rest);
    (known ? idle : unknown).insert(name);
  }
  if (!idle.empty()) LogDebug("environment: without effect on this command: ", Join(idle, ", "));
  if (!unknown.empty()) {
    LogWarning("environment: no such name, ignored: ", Join(unknown, ", "));
  }
  return unknown;
}

}  // namespace deepinfer
