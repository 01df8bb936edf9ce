#include "model/tensor_set.h"

#include "model/shard_writer.h"

namespace deepinfer {

TensorSet::Tensor& TensorSet::At(const std::string& name, Dtype dtype) {
  const auto at = tensors_.find(name);
  if (at == tensors_.end()) CheckFailed(__FILE__, __LINE__, "undeclared tensor " + name);
  CHECK(at->second.spec.dtype == dtype);
  return at->second;
}

Status TensorSet::Write(Disk& disk, const std::string& path) const {
  std::vector<TensorSpec> specs;
  std::vector<const Tensor*> order;
  for (const auto& [name, tensor] : tensors_) {
    if (tensor.filled_bytes != tensor.bytes.size()) {
      CheckFailed(__FILE__, __LINE__,
                  StrCat(name, " is not complete: ", tensor.filled_bytes, " of ",
                         tensor.bytes.size(), " bytes"));
    }
    specs.push_back(tensor.spec);
    order.push_back(&tensor);
  }
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, disk.Create(path));
  const auto bytes_of = [&](size_t i) { return order[i]->bytes; };
  DI_RETURN_IF_ERROR(WriteTensorFile(specs, bytes_of, nullptr, file.get()));
  return file->Commit();
}

}  // namespace deepinfer
