// model/shard_writer.h: writes a set of tensors as safetensors shards with their index.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/thread_pool.h"
#include "model/tensor_spec.h"

namespace deepinfer {

// Files that appear together: each is complete under a temporary name before the first one is
// renamed, and when a rename fails, those already made are taken back. Without Commit() nothing
// stays.
class FileSet {
 public:
  explicit FileSet(Disk& disk) : disk_(disk) {}
  StatusOr<WritableFile*> Create(const std::string& path);  // owned by the set
  Status AddText(const std::string& path, std::string_view text);
  Status Commit();

 private:
  struct Entry {
    std::string path;
    std::unique_ptr<WritableFile> file;
  };
  Disk& disk_;
  std::vector<Entry> entries_;
};

// Makes the stored bytes of tensor i. Called from the pool's threads, once per tensor.
using TensorBytesFn = std::function<std::vector<uint8_t>(size_t tensor)>;

// Appends one safetensors file of all `tensors`. Wider elements come first, then names ascend, so
// that every tensor is aligned to its element size. `pool` may be null.
Status WriteTensorFile(const std::vector<TensorSpec>& tensors, const TensorBytesFn& bytes_of,
                       ThreadPool* pool, WritableFile* file);

// Cuts `tensors` (in file order) into about `num_shards` equal shards, at layer borders only, and
// writes them, each as WriteTensorFile, and model.safetensors.index.json into `directory`.
Status WriteShards(const std::vector<TensorSpec>& tensors, const TensorBytesFn& bytes_of,
                   int num_shards, const std::string& directory, ThreadPool* pool, FileSet* files);

}  // namespace deepinfer
