// model/tensor_set.h: tensors in memory that fill up piece by piece, then become one file.
#pragma once

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/disk.h"
#include "base/status.h"
#include "kernels/formats/number_formats.h"
#include "model/tensor_spec.h"

namespace deepinfer {

template <typename T>
inline constexpr Dtype kDtypeOf = Dtype::kBool;  // no other element type is used
template <>
inline constexpr Dtype kDtypeOf<float> = Dtype::kF32;
template <>
inline constexpr Dtype kDtypeOf<int32_t> = Dtype::kI32;
template <>
inline constexpr Dtype kDtypeOf<uint8_t> = Dtype::kU8;
template <>
inline constexpr Dtype kDtypeOf<bf16> = Dtype::kBf16;

class TensorSet {
 public:
  // Declares a tensor of elements T. Requires: a new name.
  template <typename T>
  void Add(const std::string& name, std::vector<int64_t> shape) {
    static_assert(kDtypeOf<T> != Dtype::kBool);
    Tensor tensor;
    tensor.spec = {.name = name, .dtype = kDtypeOf<T>, .shape = std::move(shape)};
    tensor.bytes.resize(static_cast<size_t>(tensor.spec.num_bytes()));
    CHECK(tensors_.emplace(name, std::move(tensor)).second);
  }

  bool Has(const std::string& name) const { return tensors_.contains(name); }

  // Copies elements to places [first, first + elements.size()). Requires: declared, with room.
  template <typename T>
  void Put(const std::string& name, int64_t first, std::span<const T> elements) {
    Tensor& tensor = At(name, kDtypeOf<T>);
    const size_t begin = static_cast<size_t>(first) * sizeof(T);
    CHECK_LE(begin + elements.size_bytes(), tensor.bytes.size());
    std::memcpy(tensor.bytes.data() + begin, elements.data(), elements.size_bytes());
    tensor.filled_bytes += elements.size_bytes();
  }

  template <typename T>
  std::span<const T> Get(const std::string& name) {
    const Tensor& tensor = At(name, kDtypeOf<T>);
    return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
  }

  size_t size() const { return tensors_.size(); }

  // Writes all of them as one safetensors file. Requires: every element was put once.
  // Errors: as the disk's; then no file is left.
  Status Write(Disk& disk, const std::string& path) const;

 private:
  struct Tensor {
    TensorSpec spec;
    std::vector<uint8_t> bytes;
    size_t filled_bytes = 0;
  };
  Tensor& At(const std::string& name, Dtype dtype);

  std::map<std::string, Tensor> tensors_;
};

}  // namespace deepinfer
