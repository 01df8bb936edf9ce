// model/golden_data.h: typed access to outputs.safetensors of a golden folder.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "kernels/formats/number_formats.h"
#include "model/safetensors.h"

namespace deepinfer {

class GoldenData {
 public:
  static StatusOr<std::unique_ptr<GoldenData>> Open(Disk& disk, const std::string& path);

  bool Has(const std::string& name) const { return Find(name) != nullptr; }
  // Shape of a tensor. Requires: Has(name).
  const std::vector<int64_t>& Shape(const std::string& name) const;
  // Elements as T (float, int32_t, uint8_t, bf16). Requires: Has(name) with that element type.
  template <typename T>
  std::span<const T> Get(const std::string& name) const {
    const std::span<const uint8_t> bytes = Bytes(name);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  const StoredTensor* Find(const std::string& name) const;
  std::span<const uint8_t> Bytes(const std::string& name) const;

  std::unique_ptr<ReadableFile> file_;
  std::vector<StoredTensor> tensors_;
  std::span<const uint8_t> mapped_;
};

}  // namespace deepinfer
