#include "model/safetensors.h"

#include <map>

#include "base/check.h"
#include "model/header_json.h"

namespace deepinfer {
namespace {

constexpr int64_t kLengthBytes = 8;                      // of the header, little-endian
constexpr int64_t kMaxHeaderBytes = int64_t{100} << 20;  // the format's own limit
constexpr int64_t kMaxIndexBytes = int64_t{1} << 30;
constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSingleName = "model.safetensors";

std::string_view WithoutModelPrefix(std::string_view name) {
  constexpr std::string_view kPrefix = "model.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

// Bytes of a shape, or nothing when it is negative or overflows.
std::optional<int64_t> ShapeBytes(const std::vector<int64_t>& shape, Dtype dtype) {
  int64_t bytes = DtypeBytes(dtype);
  for (const int64_t side : shape) {
    if (side < 0 || __builtin_mul_overflow(bytes, side, &bytes)) return {};
  }
  return bytes;
}

// `payload` is the first payload byte's place in the file.
StatusOr<StoredTensor> ToTensor(HeaderEntry&& entry, int64_t payload) {
  const std::optional<Dtype> known = DtypeFromName(entry.dtype);
  if (!known) {
    return InvalidArgument("header entry ", entry.name, ": unknown element type ", entry.dtype);
  }
  const std::vector<int64_t>& offsets = entry.data_offsets;
  constexpr int64_t kMaxEnd = INT64_MAX / 2;  // so that places in the file do not overflow
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > kMaxEnd) {
    return InvalidArgument("header entry ", entry.name,
                           ": data_offsets must be [begin, end], found [", Join(offsets, ", "),
                           "]");
  }
  StoredTensor tensor{.shape = std::move(entry.shape)};
  tensor.name = std::string(WithoutModelPrefix(entry.name));
  tensor.dtype = *known;
  tensor.offset = payload + offsets[0];
  tensor.num_bytes = offsets[1] - offsets[0];
  const std::optional<int64_t> expected = ShapeBytes(tensor.shape, tensor.dtype);
  if (expected != tensor.num_bytes) {
    return InvalidArgument("header entry ", entry.name, ": ",
                           DescribeTensor(tensor.dtype, tensor.shape), " does not have the ",
                           tensor.num_bytes, " bytes of its data_offsets");
  }
  return tensor;
}

// The payload is exactly the tensors, one after the other: no overlap, no hole.
Status CheckLayout(std::vector<StoredTensor>& tensors, int64_t payload) {
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.offset, a.num_bytes) < std::pair(b.offset, b.num_bytes);
  });
  int64_t end = payload;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.offset != end) {
      return InvalidArgument("header entry ", tensor.name, ": starts at payload byte ",
                             tensor.offset - payload, ", expected ", end - payload,
                             tensor.offset < end ? " (overlaps the tensor before it)"
                                                 : " (bytes that belong to no tensor)");
    }
    end += tensor.num_bytes;
  }
  return OkStatus();
}

uint64_t LittleEndian64(const std::array<uint8_t, kLengthBytes>& bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

// Name of tensor -> name of file, from the index.
using WeightMap = std::map<std::string, std::string, std::less<>>;

bool IsPlainFileName(std::string_view name) {
  return name.ends_with(".safetensors") && name.find('/') == std::string_view::npos;
}

StatusOr<WeightMap> ReadIndex(Disk& disk, const std::string& path) {
  DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(path, kMaxIndexBytes));
  WeightMap files;
  DI_RETURN_IF_ERROR(ReadIndexJson(text, path, [&](std::string&& name, std::string&& file) {
    if (!IsPlainFileName(file)) {
      return InvalidArgument(path, ": weight_map.", name, ": \"", file,
                             "\" is not the name of a .safetensors file in this directory");
    }
    files.emplace(WithoutModelPrefix(name), std::move(file));
    return OkStatus();
  }));
  return files;
}

// No index: one file with the usual name is a whole checkpoint.
StatusOr<std::vector<std::string>> FilesWithoutIndex(Disk& disk, const std::string& directory) {
  if (disk.IsFile(StrCat(directory, "/", kSingleName))) {
    return std::vector<std::string>{std::string(kSingleName)};
  }
  DI_ASSIGN_OR_RETURN(const std::vector<std::string> names, disk.List(directory));
  const auto shards = std::count_if(names.begin(), names.end(), IsPlainFileName);
  if (shards == 0) {
    return NotFound(directory, ": no weights: neither ", kIndexName, " nor ", kSingleName);
  }
  return InvalidArgument(directory, ": ", shards, " .safetensors files but no ", kIndexName);
}

class Opener {
 public:
  Opener(Disk& disk, TensorFiles* out) : disk_(disk), out_(*out) {}

  void Open(const std::string& name) {
    const int32_t number = static_cast<int32_t>(out_.files.size());
    TensorFile& file = out_.files.emplace_back();
    file.name = name;
    StatusOr<std::unique_ptr<ReadableFile>> source =
        disk_.OpenRead(StrCat(out_.directory, "/", name));
    if (!source.ok()) return FileProblem(name, "a readable file", MessageOf(source.status()));
    file.source = std::move(*source);
    StatusOr<std::vector<StoredTensor>> tensors = ReadSafetensorsHeader(*file.source, number);
    if (!tensors.ok())
      return FileProblem(name, "a safetensors header", MessageOf(tensors.status()));
    file.readable = true;
    CheckEnd(file, *tensors);
    for (StoredTensor& tensor : *tensors) Take(std::move(tensor));
  }

  // Header and index must agree on which tensor lies where.
  void CompareWithIndex(const WeightMap& map) {
    std::map<std::string_view, bool> readable;
    for (const TensorFile& file : out_.files) readable[file.name] = file.readable;
    for (const auto& [name, file] : map) {
      const auto at = owner_.find(name);
      if (at != owner_.end() && FileName(at->second) == file) continue;
      if (at == owner_.end()) out_.explained.insert(name);
      if (at != owner_.end() || readable[file]) {
        Problem(name, StrCat("in ", file, " (by the index)"),
                at == owner_.end() ? "not in it" : StrCat("in ", FileName(at->second)), file);
      }
    }
    for (const auto& [name, file] : owner_) {
      if (!map.contains(name)) {
        Problem(name, StrCat("an entry in ", kIndexName), "none", FileName(file));
      }
    }
  }

 private:
  const std::string& FileName(int32_t file) const {
    return out_.files[static_cast<size_t>(file)].name;
  }
  void Problem(std::string_view tensor, std::string expected, std::string found, std::string file,
               std::string hint = "") {
    out_.problems.push_back({std::string(tensor), std::move(expected), std::move(found),
                             std::move(file), std::move(hint)});
  }
  void FileProblem(const std::string& name, std::string expected, std::string found) {
    Problem("", std::move(expected), std::move(found), name);
  }

  // `tensors` are in file order.
  void CheckEnd(const TensorFile& file, const std::vector<StoredTensor>& tensors) {
    const int64_t size = file.source->size();
    const auto ends = [](const StoredTensor& tensor) { return tensor.offset + tensor.num_bytes; };
    const auto cut = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const StoredTensor& tensor) { return ends(tensor) > size; });
    if (cut != tensors.end()) {
      return Problem(cut->name, StrCat("bytes ", cut->offset, " to ", ends(*cut), " of the file"),
                     StrCat("a file of ", size, " bytes"), file.name,
                     StrCat("the file is cut short by ", ends(tensors.back()) - size, " bytes, ",
                            tensors.end() - cut, " tensors are incomplete: copy it again"));
    }
    if (!tensors.empty() && ends(tensors.back()) != size) {
      FileProblem(file.name, StrCat(ends(tensors.back()), " bytes (by its header)"),
                  StrCat(size, " bytes"));
    }
  }

  void Take(StoredTensor tensor) {
    const auto [at, fresh] = owner_.emplace(tensor.name, tensor.file);
    if (!fresh) {
      return Problem(tensor.name, StrCat("once, in ", FileName(at->second)), "a second time",
                     FileName(tensor.file));
    }
    out_.tensors.push_back(std::move(tensor));
  }

  Disk& disk_;
  TensorFiles& out_;
  std::map<std::string, int32_t, std::less<>> owner_;  // tensor -> file number
};

}  // namespace

std::string ToLine(const TensorProblem& problem) {
  std::string line = problem.tensor.empty() ? problem.file : problem.tensor;
  line += StrCat(": expected ", problem.expected, ", found ", problem.found);
  if (!problem.tensor.empty() && !problem.file.empty()) line += StrCat(", file ", problem.file);
  if (!problem.hint.empty()) line += StrCat("; ", problem.hint);
  return OneLine(line);
}

StatusOr<std::vector<StoredTensor>> ReadSafetensorsHeader(const ReadableFile& source,
                                                          int32_t file) {
  std::array<uint8_t, kLengthBytes> length_bytes;
  if (source.size() < kLengthBytes) {
    return DataLoss("the file has ", source.size(), " bytes, a header length alone takes ",
                    kLengthBytes);
  }
  DI_RETURN_IF_ERROR(source.ReadAt(0, length_bytes));
  const uint64_t length = LittleEndian64(length_bytes);
  const uint64_t room = static_cast<uint64_t>(source.size() - kLengthBytes);
  if (length > room || length > uint64_t{kMaxHeaderBytes}) {
    return DataLoss("the header length says ", length, " bytes, the file has ", room,
                    " after it and the format allows ", kMaxHeaderBytes);
  }
  std::string text(length, '\0');
  DI_RETURN_IF_ERROR(
      source.ReadAt(kLengthBytes, std::span(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  DI_ASSIGN_OR_RETURN(std::vector<HeaderEntry> entries, ReadHeaderJson(text));
  const int64_t payload = kLengthBytes + static_cast<int64_t>(length);
  std::vector<StoredTensor> tensors;
  tensors.reserve(entries.size());
  for (HeaderEntry& entry : entries) {
    DI_ASSIGN_OR_RETURN(StoredTensor tensor, ToTensor(std::move(entry), payload));
    tensor.file = file;
    tensors.push_back(std::move(tensor));
  }
  DI_RETURN_IF_ERROR(CheckLayout(tensors, payload));
  return tensors;
}

bool TensorFiles::IsWhole(const StoredTensor& tensor) const {
  return tensor.offset + tensor.num_bytes <= files[static_cast<size_t>(tensor.file)].source->size();
}

StatusOr<std::span<const uint8_t>> TensorFiles::Bytes(const StoredTensor& tensor) const {
  const TensorFile& file = files[static_cast<size_t>(tensor.file)];
  CHECK(IsWhole(tensor));
  DI_ASSIGN_OR_RETURN(const std::span<const uint8_t> mapped, file.source->Map());
  return mapped.subspan(static_cast<size_t>(tensor.offset), static_cast<size_t>(tensor.num_bytes));
}

StatusOr<TensorFiles> OpenTensorFiles(Disk& disk, const std::string& directory) {
  TensorFiles files;
  files.directory = directory;
  Opener opener(disk, &files);
  const std::string index_path = StrCat(directory, "/", kIndexName);
  if (!disk.IsFile(index_path)) {
    DI_ASSIGN_OR_RETURN(const std::vector<std::string> names, FilesWithoutIndex(disk, directory));
    for (const std::string& name : names) opener.Open(name);
    return files;
  }
  DI_ASSIGN_OR_RETURN(const WeightMap map, ReadIndex(disk, index_path));
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  for (const std::string& name : names) opener.Open(name);
  opener.CompareWithIndex(map);
  return files;
}

}  // namespace deepinfer
