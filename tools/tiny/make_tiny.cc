// make_tiny: writes a synthetic test checkpoint. Usage:
//   make_tiny tiny|stress_a|stress_b OUT_DIR    with the seed and the digest that tests rely on
//   make_tiny CONFIG_JSON OUT_DIR SEED          any configuration, any seed
//
// Its own main because it runs before there is any model to start the engine with.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <vector>

#include "base/cpu_topology.h"
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

StatusOr<SyntheticReport> Make(const std::string& config_path, uint64_t seed,
                               std::string_view digest, const std::string& out_dir) {
  ThreadPool pool(DefaultNumThreads());
  DI_ASSIGN_OR_RETURN(const std::string config, RealDisk().ReadText(config_path));
  return WriteSyntheticCheckpoint(RealDisk(), config, seed, out_dir,
                                  {.pool = &pool, .expected_digest = std::string(digest)});
}

StatusOr<SyntheticReport> MakeVariant(const Variant& variant, const std::string& out_dir) {
  DI_ASSIGN_OR_RETURN(
      const SyntheticReport report,
      Make(StrCat(DI_TINY_DIR, "/", variant.name, ".json"), variant.seed, variant.digest, out_dir));
  if (variant.has_tokenizer) DI_RETURN_IF_ERROR(CopyTexts(RealDisk(), out_dir));
  return report;
}

int Usage() {
  std::fprintf(stderr,
               "usage: make_tiny tiny|stress_a|stress_b OUT_DIR\n"
               "       make_tiny CONFIG_JSON OUT_DIR SEED\n");
  return 2;
}

int Main(const std::vector<std::string>& arguments) {
  StatusOr<SyntheticReport> report = InvalidArgument("nothing to make");
  if (arguments.size() == 2) {
    const auto variant = std::find_if(std::begin(kVariants), std::end(kVariants),
                                      [&](const Variant& v) { return v.name == arguments[0]; });
    if (variant == std::end(kVariants)) return Usage();
    report = MakeVariant(*variant, arguments[1]);
  } else if (arguments.size() == 3) {
    const std::string& text = arguments[2];
    uint64_t seed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (error != std::errc() || end != text.data() + text.size()) return Usage();
    report = Make(arguments[0], seed, "", arguments[1]);
  } else {
    return Usage();
  }
  if (!report.ok()) {
    std::fprintf(stderr, "make_tiny: %s\n", MessageOf(report.status()).c_str());
    return 1;
  }
  std::printf("%s: %lld tensors, %lld bytes, digest %s\n", arguments[1].c_str(),
              static_cast<long long>(report->num_tensors),
              static_cast<long long>(report->payload_bytes), report->digest.c_str());
  return 0;
}

}  // namespace
}  // namespace deepinfer

int main(int argc, char** argv) { return deepinfer::Main({argv + 1, argv + argc}); }
