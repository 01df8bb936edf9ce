// The input is config.json.
#include <limits>
#include <set>

#include "fuzz.h"
#include "model/config_check.h"
#include "model/kv_shape.h"
#include "model/memory_plan.h"
#include "model/tensor_spec.h"

namespace deepinfer::fuzz {
namespace {

// Above this the list of tensors is long enough to make a fuzzer slow.
constexpr int64_t kMaxExperts = 512;

void CheckLayers(const ModelConfig& config) {
  CHECK(CheckModelConfig(config).ok());
  CHECK_EQ(static_cast<int64_t>(config.compress_ratios.size()),
           int64_t{config.num_hidden_layers} + config.num_nextn_predict_layers);
  for (int32_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (config.ratio(layer) == 0) continue;
    CHECK(config.IsKvSource(config.KvSource(layer)));
    CHECK(config.IsIndexSource(config.IndexSource(layer)));
    CHECK_LE(config.KvSource(layer), config.IndexSource(layer));
    CHECK_LE(config.IndexSource(layer), layer);
  }
}

void CheckTensors(const std::vector<TensorSpec>& tensors) {
  std::set<std::string_view> names;
  for (const TensorSpec& tensor : tensors) {
    CHECK(names.insert(tensor.name).second);
    int64_t bytes = DtypeBytes(tensor.dtype);
    for (const int64_t side : tensor.shape) {
      CHECK_GT(side, 0);
      CHECK(!__builtin_mul_overflow(bytes, side, &bytes));
    }
    CHECK_EQ(bytes, tensor.num_bytes());
  }
}

void CheckPlan(const ModelConfig& config, const std::vector<TensorSpec>& tensors) {
  const KvShape kv = MakeKvShape(config);
  CHECK_GT(kv.RingBytes(), 0);
  const auto machine = ParseMachine("ram=512GiB,gpus=8x139GiB");
  CHECK(machine.ok());
  const EngineMemory engine = {
      .parts = {{"kv_pages", "KV pages", 1 << 20, EngineMemory::Place::kDevice, ""}},
      .kv_page_bytes = 1 << 20};
  const MemoryPlan plan = PlanMemory(config, CountTensors(tensors), *machine, engine);
  CHECK_GT(plan.resident_bytes, 0);
  CHECK_GT(plan.sequence_bytes, 0);
  CHECK(!plan.rows.empty());
  for (const PlanRow& row : plan.rows) {
    CHECK_GT(row.gpu_bytes, 0);
    CHECK_GE(row.kv_tokens, 0);
  }
  CHECK(!PlanAsText(plan).empty());
}

}  // namespace
}  // namespace deepinfer::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  const std::string_view text = fuzz::AsText(data, size);
  const auto strict = ParseModelConfig(text, "config.json");
  const auto lax = ParseModelConfig(text, "config.json", /*strict=*/false);
  if (!strict.ok()) fuzz::CheckRefusal(strict.status());
  if (!lax.ok()) {
    fuzz::CheckRefusal(lax.status());
    CHECK(!strict.ok());
    return 0;
  }
  fuzz::CheckLayers(*lax);
  const int64_t blocks = int64_t{lax->num_hidden_layers} + lax->num_nextn_predict_layers +
                         lax->vision.num_hidden_layers;
  if (blocks * std::max(lax->n_routed_experts, lax->dspark_n_routed_experts) > fuzz::kMaxExperts) {
    return 0;
  }
  const std::vector<TensorSpec> tensors = ExpectedTensors(*lax);
  fuzz::CheckTensors(tensors);
  fuzz::CheckPlan(*lax, tensors);
  return 0;
}
