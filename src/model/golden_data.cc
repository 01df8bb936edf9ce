#include "model/golden_data.h"

#include "base/check.h"

namespace deepinfer {

StatusOr<std::unique_ptr<GoldenData>> GoldenData::Open(Disk& disk, const std::string& path) {
  auto data = std::make_unique<GoldenData>();
  DI_ASSIGN_OR_RETURN(data->file_, disk.OpenRead(path));
  auto tensors = ReadSafetensorsHeader(*data->file_, 0);
  if (!tensors.ok()) return Annotate(tensors.status(), path);
  data->tensors_ = *std::move(tensors);
  DI_ASSIGN_OR_RETURN(data->mapped_, data->file_->Map());
  for (const StoredTensor& tensor : data->tensors_) {
    if (tensor.offset + tensor.num_bytes > data->file_->size()) {
      return DataLoss(path, ": cut off inside ", tensor.name);
    }
  }
  return data;
}

const StoredTensor* GoldenData::Find(const std::string& name) const {
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

const std::vector<int64_t>& GoldenData::Shape(const std::string& name) const {
  const StoredTensor* const tensor = Find(name);
  CHECK(tensor != nullptr);
  return tensor->shape;
}

std::span<const uint8_t> GoldenData::Bytes(const std::string& name) const {
  const StoredTensor* const tensor = Find(name);
  if (tensor == nullptr) CheckFailed(__FILE__, __LINE__, "golden data lacks " + name);
  return mapped_.subspan(static_cast<size_t>(tensor->offset),
                         static_cast<size_t>(tensor->num_bytes));
}

}  // namespace deepinfer
