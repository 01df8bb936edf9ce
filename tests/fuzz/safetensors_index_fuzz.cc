// The input is model.safetensors.index.json beside two shards that are whole and one that is cut.
#include "base/simulated_disk.h"
#include "fuzz.h"
#include "tensor_files.h"

namespace deepinfer::fuzz {
namespace {

std::string Shard(std::string_view header, size_t payload_bytes) {
  std::string text(8, '\0');
  for (size_t i = 0, length = header.size(); i < 8; ++i, length >>= 8) {
    text[i] = static_cast<char>(length & 0xff);
  }
  return StrCat(text, header, std::string(payload_bytes, '\x40'));
}

void WriteShards(SimulatedDisk& disk) {
  const auto write = [&disk](std::string_view name, const std::string& text) {
    CHECK(disk.WriteText(StrCat("m/", name), text).ok());
  };
  write("a.safetensors",
        Shard(R"({"model.a.weight":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}})", 8));
  write("b.safetensors",
        Shard(R"({"b.scale":{"dtype":"F8_E8M0","shape":[3],"data_offsets":[0,3]}})", 3));
  write("c.safetensors",
        Shard(R"({"c.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 2));
}

}  // namespace
}  // namespace deepinfer::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  fuzz::CheckUsualJson({reinterpret_cast<const char*>(data), size});
  SimulatedDisk disk;
  fuzz::WriteShards(disk);
  CHECK(disk.WriteText("m/model.safetensors.index.json", fuzz::AsText(data, size)).ok());
  const auto files = OpenTensorFiles(disk, "m");
  if (!files.ok()) {
    fuzz::CheckRefusal(files.status());
    return 0;
  }
  CHECK(!files->files.empty());
  fuzz::CheckTensorFiles(*files);
  return 0;
}
