#include "model/testing/tiny_checkpoint.h"

#include "base/check.h"
#include "model/safetensors.h"
#include "model/synthetic_checkpoint.h"

namespace deepinfer {
namespace {

struct Original {
  std::string config_json;
  std::vector<LooseTensor> tensors;
};

Original MakeOriginal() {
  Original original;
  SimulatedDisk disk;
  original.config_json =
      RealDisk().ReadText(std::string(DI_SOURCE_DIR) + "/tools/tiny/tiny.json").value();
  CHECK(WriteSyntheticCheckpoint(disk, original.config_json, 101, "model").ok());
  const TensorFiles files = OpenTensorFiles(disk, "model").value();
  for (const StoredTensor& tensor : files.tensors) {
    const std::span<const uint8_t> bytes = files.Bytes(tensor).value();
    original.tensors.push_back({tensor.name, std::string(DtypeName(tensor.dtype)), tensor.shape,
                                std::vector<uint8_t>(bytes.begin(), bytes.end()),
                                files.files[static_cast<size_t>(tensor.file)].name});
  }
  return original;
}

}  // namespace

TinyCheckpoint::TinyCheckpoint() {
  static const Original original = MakeOriginal();
  config_json = original.config_json;
  tensors = original.tensors;
}

LooseTensor& TinyCheckpoint::At(const std::string& name) {
  for (LooseTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  CheckFailed(__FILE__, __LINE__, "no tensor " + name);
}

void TinyCheckpoint::Remove(const std::string& name) {
  At(name);
  std::erase_if(tensors, [&](const LooseTensor& tensor) { return tensor.name == name; });
}

void TinyCheckpoint::Write() {
  std::map<std::string, std::vector<LooseTensor>> files;
  std::map<std::string, std::string> weight_map;
  for (const LooseTensor& tensor : tensors) {
    files[tensor.file].push_back(tensor);
    weight_map[tensor.name] = tensor.file;
  }
  for (const auto& [tensor, file] : index_says) weight_map[tensor] = file;
  for (const auto& [name, contents] : files) {
    CHECK(disk.WriteText("model/" + name, SafetensorsText(contents)).ok());
  }
  CHECK(disk.WriteText("model/config.json", config_json).ok());
  if (!write_index) return;
  std::string index;
  for (const auto& [tensor, file] : weight_map) {
    index += StrCat(index.empty() ? "" : ",", "\"", tensor, "\":\"", file, "\"");
  }
  CHECK(
      disk.WriteText("model/model.safetensors.index.json", StrCat("{\"weight_map\":{", index, "}}"))
          .ok());
}

std::string SafetensorsText(const std::vector<LooseTensor>& tensors) {
  std::string header, payload;
  for (const LooseTensor& tensor : tensors) {
    const size_t begin = payload.size();
    payload.append(tensor.bytes.begin(), tensor.bytes.end());
    header += StrCat(header.empty() ? "{" : ",", "\"", tensor.name, "\":{\"dtype\":\"",
                     tensor.dtype, "\",\"shape\":[", Join(tensor.shape, ","),
                     "],\"data_offsets\":[", begin, ",", payload.size(), "]}");
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string text;
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(header.size() >> shift);
  return text + header + payload;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) CheckFailed(__FILE__, __LINE__, StrCat("no ", from));
  return text.replace(at, from.size(), to);
}

}  // namespace deepinfer
