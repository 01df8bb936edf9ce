// model/synthetic_checkpoint.h: test checkpoints in the real formats whose every byte follows from
// a seed.
//
// Element i of a tensor is an integer function of (seed, tensor name, i):
//   s = FNV-1a-64(name) xor seed*G,  u = splitmix64 finaliser of s + (i+1)*G,  G =
//   0x9E3779B97F4A7C15
// and one of six element kinds turns u into a stored code (ElementKind). Two machines with the same
// seed have the same bytes; the digest over all tensors says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/tensor_spec.h"

namespace deepinfer {

enum class ElementKind : uint8_t {
  kFp8,   // sign u&1; magnitude code 0x28 + (u>>8)%0x28, 1 in 64 zero, 1 in 64 a small code
  kE8m0,  // base + u%3 - 1
  kFp4,   // u & 0xff: two codes
  kBf16,  // ((u % 255) - 127) * 2^exponent
  kNorm,  // BF16 1 + ((u % 65) - 32) / 128
  kF32,   // offset + ((u % 65535) - 32767) * 2^exponent
};

struct SyntheticTensor {
  TensorSpec spec;
  ElementKind kind = ElementKind::kBf16;
  int32_t base = 0;      // kE8m0
  int32_t exponent = 0;  // kBf16, kF32
  double offset = 0;     // kF32
};

// The tensors of a configuration with the kinds and parameters that keep activations in a useful
// range.
std::vector<SyntheticTensor> PlanSyntheticTensors(const ModelConfig& config);

// The stored bytes of one tensor.
std::vector<uint8_t> SyntheticBytes(const SyntheticTensor& tensor, uint64_t seed);

struct SyntheticReport {
  int64_t num_tensors = 0;
  int64_t payload_bytes = 0;
  // SHA-256 over the tensors' SHA-256 digests, sorted by name; hexadecimal.
  std::string digest;
};

struct SyntheticOptions {
  ThreadPool* pool = nullptr;  // null: the calling thread alone
  std::string
      expected_digest;  // when not empty, another digest is kDataLoss and nothing is written
};

// Writes config.json (as given), generator.json, engram_classes.bin, shards and their index into
// `out_dir`, which is made if needed. Nothing appears under its final name before all of it is on
// the disk.
StatusOr<SyntheticReport> WriteSyntheticCheckpoint(Disk& disk, const std::string& config_json,
                                                   uint64_t seed, const std::string& out_dir,
                                                   const SyntheticOptions& options = {});

// The same from a folder in the golden layout: tensors.tsv (kinds, parameters, digests) and
// checkpoint/{config,generator}.json. Every tensor's digest and the digest over all are checked.
StatusOr<SyntheticReport> WriteGoldenCheckpoint(Disk& disk, const std::string& golden_dir,
                                                const std::string& out_dir,
                                                const SyntheticOptions& options = {});

}  // namespace deepinfer
