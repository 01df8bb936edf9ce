// Which kind of elements, of which size, each tensor of a synthetic checkpoint gets.
#include <cmath>

#include "model/synthetic_checkpoint.h"

namespace deepinfer {
namespace {

// Nominal root mean squares of the code distributions. Only used to choose exponents.
constexpr double kFp8Rms = 3.0, kFp4Rms = 2.926, kBf16Rms = 73.6, kF32Max = 32768;
constexpr int32_t kEngramScaleBase = 125;
constexpr int32_t kE8m0One = 127;

int32_t RoundedLog2(double x) { return static_cast<int32_t>(std::nearbyint(std::log2(x))); }

// How strongly a tensor amplifies: its entries are about gain / sqrt(columns), or gain alone where
// the tensor is not summed over (rows that are looked up, biases). The first ending that fits
// counts.
struct GainRule {
  std::string_view ending;
  double gain;
  bool summed = true;
};

constexpr GainRule kQuantisedGains[] = {
    {"indexer.wq_b.scale", 1}, {"attn.wq_b.scale", 1.5},  {"attn.wo_a.scale", 1.5},
    {"attn.wo_b.scale", 0.5},  {"engram.wkv.scale", 0.4}, {".w1.scale", 4},
    {".w3.scale", 4},          {".w2.scale", 0.06},       {"", 1},
};

constexpr GainRule kBf16Gains[] = {
    {"markov_head.embed.weight", 1, false},
    {"embed.weight", 16, false},
    {"markov_head.head.weight", 2},
    {"head.weight", 4},
    {"image_start", 16, false},
    {"image_end", 16, false},
    {"image_newline", 16, false},
    {"confidence_head.proj.weight", 0.1},
    {".bias", 0.1, false},
    {"wqkv.weight", 1.5},
    {"aligner.w1.weight", 1.5},
    {"aligner.w2.weight", 24},
    {"", 1},
};

const GainRule& RuleFor(std::span<const GainRule> rules, std::string_view name) {
  return *std::find_if(rules.begin(), rules.end(),
                       [&](const GainRule& rule) { return name.ends_with(rule.ending); });
}

bool IsNorm(std::string_view name) {
  for (const std::string_view ending :
       {"norm.weight", "norm1.weight", "norm2.weight", "engram.q_weight", "engram.k_weight"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

void PlanScale(SyntheticTensor* tensor) {
  const std::string& name = tensor->spec.name;
  tensor->kind = ElementKind::kE8m0;
  if (name.ends_with("engram.embed.scale")) {
    tensor->base = kEngramScaleBase;
    return;
  }
  const double rms = name.find(".experts.") != std::string::npos ? kFp4Rms : kFp8Rms;
  const double columns = static_cast<double>(tensor->spec.shape[1] * 32);
  tensor->base =
      kE8m0One + RoundedLog2(RuleFor(kQuantisedGains, name).gain / (rms * std::sqrt(columns)));
}

void PlanBf16(SyntheticTensor* tensor) {
  if (IsNorm(tensor->spec.name)) {
    tensor->kind = ElementKind::kNorm;
    return;
  }
  const GainRule& rule = RuleFor(kBf16Gains, tensor->spec.name);
  const double columns = rule.summed ? static_cast<double>(tensor->spec.shape.back()) : 1.0;
  tensor->kind = ElementKind::kBf16;
  tensor->exponent = RoundedLog2(rule.gain / (kBf16Rms * std::sqrt(columns)));
}

void PlanF32(SyntheticTensor* tensor) {
  const std::string& name = tensor->spec.name;
  double amplitude = 1.0;  // sinks and hyper-connection bases
  if (name.ends_with("_fn"))
    amplitude = 1.7 / std::sqrt(static_cast<double>(tensor->spec.shape[1]));
  if (name.ends_with("gate.bias")) amplitude = 0.25;
  if (name.ends_with("gate.bias_vl")) amplitude = 0.5;
  if (name.ends_with("_scale")) {
    amplitude = 0.25;
    tensor->offset = 1.25;
  }
  tensor->kind = ElementKind::kF32;
  tensor->exponent = RoundedLog2(amplitude / kF32Max);
}

}  // namespace

std::vector<SyntheticTensor> PlanSyntheticTensors(const ModelConfig& config) {
  std::vector<SyntheticTensor> plan;
  for (TensorSpec& spec : ExpectedTensors(config)) {
    SyntheticTensor& tensor = plan.emplace_back();
    tensor.spec = std::move(spec);
    switch (tensor.spec.dtype) {
      case Dtype::kF8E4m3:
        tensor.kind = ElementKind::kFp8;
        break;
      case Dtype::kI8:
        tensor.kind = ElementKind::kFp4;
        break;
      case Dtype::kF8E8m0:
        PlanScale(&tensor);
        break;
      case Dtype::kBf16:
        PlanBf16(&tensor);
        break;
      default:
        PlanF32(&tensor);
        break;
    }
  }
  return plan;
}

}  // namespace deepinfer
