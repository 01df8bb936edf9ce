// The input is a shard: u64 header length, header, payload.
#include "base/simulated_disk.h"
#include "fuzz.h"
#include "tensor_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::CheckUsualJson(text);
  if (size > 8) fuzz::CheckUsualJson(text.substr(8));
  SimulatedDisk disk;
  CHECK(disk.WriteText("m/model.safetensors", fuzz::AsText(data, size)).ok());
  const auto files = OpenTensorFiles(disk, "m");
  CHECK(files.ok());  // a broken shard is among the problems
  CHECK_EQ(files->files.size(), 1u);
  CHECK(files->files[0].readable || !files->problems.empty());
  fuzz::CheckTensorFiles(*files);
  if (files->problems.empty()) {  // then the tensors are all of the payload
    int64_t begin = files->files[0].source->size(), payload_bytes = 0;
    const int64_t end = begin;
    for (const StoredTensor& tensor : files->tensors) {
      begin = std::min(begin, tensor.offset);
      payload_bytes += tensor.num_bytes;
    }
    if (!files->tensors.empty()) CHECK_EQ(begin + payload_bytes, end);
  }
  return 0;
}
