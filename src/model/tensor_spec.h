// model/tensor_spec.h: which tensors a checkpoint of a given shape has: name, element type, shape,
// part.
//
// Computed from ModelConfig alone, so every stored tensor can be checked against it and every size
// is known before a byte of weights is read. Source: model.md 2.1, 2.2 (tensor list of
// DeepSeek-V4.1-Flash).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace deepinfer {

// Element types of the safetensors format. A V4.1 checkpoint has the first five only (FP4 pairs are
// I8).
enum class Dtype : uint8_t {
  kF8E4m3,
  kF8E8m0,
  kI8,
  kBf16,
  kF32,
  kBool,
  kU8,
  kF8E5m2,
  kI16,
  kU16,
  kF16,
  kI32,
  kU32,
  kF64,
  kI64,
  kU64,
};
inline constexpr int kNumModelDtypes = 5;

std::string_view DtypeName(Dtype dtype);  // as the format spells it: "F8_E4M3"
std::optional<Dtype> DtypeFromName(std::string_view name);
int DtypeBytes(Dtype dtype);

// What a tensor belongs to, for the census and the memory plan.
enum class Part : uint8_t {
  kEmbedHead,  // embedding, head, last norm, image delimiters
  kDense,      // attention, compressors, indexers, shared experts, gates, hyper-connections, norms
  kRoutedExperts,
  kEngramTables,
  kEngramProjections,
  kDraftDense,  // draft blocks without their routed experts
  kDraftExperts,
  kVision,  // vision tower and aligner
};
inline constexpr int kNumParts = 8;
std::string_view PartName(Part part);

struct TensorSpec {
  std::string name;  // without "model." in front
  Dtype dtype = Dtype::kBf16;
  std::vector<int64_t>
      shape;  // 1 or 2 dimensions, the stored ones: packed FP4 has half the columns
  Part part = Part::kDense;

  int64_t num_elements() const;
  int64_t num_bytes() const { return num_elements() * DtypeBytes(dtype); }
};

// All tensors in file order: globals, text layers, draft blocks, vision tower, aligner.
std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config);

// "F8_E4M3 [64, 128]"
std::string DescribeTensor(Dtype dtype, std::span<const int64_t> shape);

struct CensusRow {
  int64_t num_tensors = 0;
  int64_t num_bytes = 0;  // payload: headers not counted
};

struct Census {
  CensusRow total;
  std::array<CensusRow, kNumModelDtypes> by_dtype;
  std::array<CensusRow, kNumParts> by_part;

  const CensusRow& of(Dtype dtype) const { return by_dtype[static_cast<size_t>(dtype)]; }
  const CensusRow& of(Part part) const { return by_part[static_cast<size_t>(part)]; }
};

Census CountTensors(std::span<const TensorSpec> tensors);

}  // namespace deepinfer
