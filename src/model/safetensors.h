// model/safetensors.h: the tensors stored in a checkpoint directory, as the files state them.
//
// Reads model.safetensors.index.json and its shards, or a single model.safetensors. Nothing is
// compared with a model here beyond what makes a file readable: headers, bounds, overlaps, element
// types, the index. Faults are collected, not returned at the first, so that `inspect` can show
// them all.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "model/tensor_spec.h"

namespace deepinfer {

// One fault of a checkpoint. `tensor` is empty when a file as a whole is at fault.
struct TensorProblem {
  std::string tensor;
  std::string expected;
  std::string found;
  std::string file;  // name in the directory
  std::string hint;  // what to do or what it may be; may be empty
};
std::string ToLine(const TensorProblem& problem);  // one line of text

struct StoredTensor {
  std::string name;  // a leading "model." is taken off
  Dtype dtype = Dtype::kBf16;
  std::vector<int64_t> shape;
  int32_t file = -1;   // index into TensorFiles::files
  int64_t offset = 0;  // first byte, from the start of the file
  int64_t num_bytes = 0;
};

// The header of one safetensors file: u64 length, JSON, payload. `file` numbers the tensors' file.
// Errors: kInvalidArgument or kDataLoss in one line without the file's name (the caller knows it).
// Tensors that end behind the file's last byte are returned: a truncated file still says what it
// had.
StatusOr<std::vector<StoredTensor>> ReadSafetensorsHeader(const ReadableFile& source, int32_t file);

struct TensorFile {
  std::string name;                      // in the directory
  std::unique_ptr<ReadableFile> source;  // null when it could not be opened
  bool readable = false;                 // opened, and its header was understood
};

// Owns the opened files; views into their mappings live as long as this object.
struct TensorFiles {
  std::string directory;
  std::vector<TensorFile> files;
  std::vector<StoredTensor> tensors;  // of the readable files, names unique
  std::vector<TensorProblem> problems;
  // Tensors that are absent for a reason that `problems` already states: their file cannot be read,
  // or the index places them where they are not.
  std::set<std::string, std::less<>> explained;

  bool IsWhole(const StoredTensor& tensor) const;  // ends inside its file
  // The tensor's bytes in the mapped file. Requires: IsWhole(tensor).
  StatusOr<std::span<const uint8_t>> Bytes(const StoredTensor& tensor) const;
};

// Errors: kNotFound if the directory has no safetensors file at all, kInvalidArgument for a broken
// index.
StatusOr<TensorFiles> OpenTensorFiles(Disk& disk, const std::string& directory);

}  // namespace deepinfer
