// make_tiny: writes one of the synthetic test checkpoints. Usage: make_tiny tiny|stress_a|stress_b
// OUT_DIR
//
// Its own main because it runs before there is any model to start the engine with.
#include <cstdio>

#include "base/disk.h"
#include "base/thread_pool.h"
#include "model/synthetic_checkpoint.h"

namespace deepinfer {
namespace {

struct Variant {
  std::string_view name;
  uint64_t seed;
  std::string_view digest;  // over all tensors
  bool has_tokenizer;
};

constexpr Variant kVariants[] = {
    {"tiny", 101, "8ea3cbf21f000437a4350f1fb81d040560ed94750b352d4669e72137fc9334b3", true},
    {"stress_a", 202, "009455b3fcbb6d828bab800eb861095300e42ddb84ccceb8423a00045f79206b", false},
    {"stress_b", 303, "ee9116b86b5595d12315018c3046e9db40e130f2624ce61124a31ae207548e9b", false},
};

// Text files beside the weights: name in this folder, name in the checkpoint.
constexpr std::pair<std::string_view, std::string_view> kTexts[] = {
    {"tokenizer.json", "tokenizer.json"},
    {"tokenizer_config.json", "tokenizer_config.json"},
    {"prompt_texts.json", "encoding/prompt_texts.json"},
};

Status CopyTexts(Disk& disk, const std::string& out_dir) {
  DI_RETURN_IF_ERROR(disk.CreateDirectories(out_dir + "/encoding"));
  for (const auto& [from, to] : kTexts) {
    DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(StrCat(DI_TINY_DIR, "/", from)));
    DI_RETURN_IF_ERROR(disk.WriteText(StrCat(out_dir, "/", to), text));
  }
  return OkStatus();
}

StatusOr<SyntheticReport> Make(const Variant& variant, const std::string& out_dir) {
  Disk& disk = RealDisk();
  ThreadPool pool(NumUsableCpus());
  DI_ASSIGN_OR_RETURN(const std::string config,
                      disk.ReadText(StrCat(DI_TINY_DIR, "/", variant.name, ".json")));
  DI_ASSIGN_OR_RETURN(
      const SyntheticReport report,
      WriteSyntheticCheckpoint(disk, config, variant.seed, out_dir,
                               {.pool = &pool, .expected_digest = std::string(variant.digest)}));
  if (variant.has_tokenizer) DI_RETURN_IF_ERROR(CopyTexts(disk, out_dir));
  return report;
}

int Main(int argc, char** argv) {
  const std::string_view name = argc == 3 ? argv[1] : "";
  const auto variant = std::find_if(std::begin(kVariants), std::end(kVariants),
                                    [&](const Variant& v) { return v.name == name; });
  if (variant == std::end(kVariants)) {
    std::fprintf(stderr, "usage: make_tiny tiny|stress_a|stress_b OUT_DIR\n");
    return 2;
  }
  const StatusOr<SyntheticReport> report = Make(*variant, argv[2]);
  if (!report.ok()) {
    std::fprintf(stderr, "make_tiny: %s\n", MessageOf(report.status()).c_str());
    return 1;
  }
  std::printf("%s: %lld tensors, %lld bytes, digest %s\n", argv[2],
              static_cast<long long>(report->num_tensors),
              static_cast<long long>(report->payload_bytes), report->digest.c_str());
  return 0;
}

}  // namespace
}  // namespace deepinfer

int main(int argc, char** argv) { return deepinfer::Main(argc, argv); }
