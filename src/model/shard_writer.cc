#include "model/shard_writer.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr int64_t kBatchBytes = int64_t{64} << 20;  // tensors made at a time
constexpr size_t kHeaderAlignment = 8;

// "layers.3.", "mtp.0." or the first component: what must not straddle two shards.
std::string_view ShardGroup(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return name;
  const std::string_view first = name.substr(0, dot);
  if (first != "layers" && first != "mtp") return first;
  return name.substr(0, name.find('.', dot + 1));
}

using Shard = std::vector<size_t>;  // indices into the tensors

std::vector<Shard> CutIntoShards(const std::vector<TensorSpec>& tensors, int num_shards) {
  int64_t total = 0, filled = 0;
  for (const TensorSpec& tensor : tensors) total += tensor.num_bytes();
  std::vector<Shard> shards(1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool full = filled * num_shards >= total && std::ssize(shards) < num_shards;
    if (full && i > 0 && ShardGroup(tensors[i].name) != ShardGroup(tensors[i - 1].name)) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(i);
    filled += tensors[i].num_bytes();
  }
  return shards;
}

std::string ShardName(size_t shard, size_t num_shards) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", shard + 1, num_shards);
  return name;
}

// Tensor names here are our own: letters, digits, dots and underscores, nothing to escape.
std::string HeaderOf(const std::vector<TensorSpec>& tensors, const Shard& shard) {
  std::string header = "{";
  int64_t offset = 0;
  for (const size_t i : shard) {
    const TensorSpec& tensor = tensors[i];
    const int64_t end = offset + tensor.num_bytes();
    if (header.size() > 1) header += ',';
    header +=
        StrCat("\"", tensor.name, "\":{\"dtype\":\"", DtypeName(tensor.dtype), "\",\"shape\":[",
               Join(tensor.shape, ","), "],\"data_offsets\":[", offset, ",", end, "]}");
    offset = end;
  }
  header += '}';
  header.append((kHeaderAlignment - header.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  return header;
}

Status WriteHeader(const std::string& header, WritableFile* file) {
  std::array<uint8_t, 8> length;
  for (size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<uint8_t>(header.size() >> (8 * i));
  DI_RETURN_IF_ERROR(file->Append(length));
  return file->Append(std::string_view(header));
}

// Makes and writes a shard's tensors in batches, so that memory stays bounded.
Status WritePayload(const std::vector<TensorSpec>& tensors, const Shard& shard,
                    const TensorBytesFn& bytes_of, ThreadPool* pool, WritableFile* file) {
  for (size_t begin = 0; begin < shard.size();) {
    size_t end = begin;
    for (int64_t bytes = 0; end < shard.size() && bytes < kBatchBytes; ++end) {
      bytes += tensors[shard[end]].num_bytes();
    }
    std::vector<std::vector<uint8_t>> batch(end - begin);
    const auto make = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        batch[static_cast<size_t>(i)] = bytes_of(shard[begin + static_cast<size_t>(i)]);
      }
    };
    if (pool != nullptr) {
      pool->ParallelFor(std::ssize(batch), 1, make);
    } else {
      make(0, std::ssize(batch));
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      CHECK_EQ(std::ssize(batch[i]), tensors[shard[begin + i]].num_bytes());
      DI_RETURN_IF_ERROR(file->Append(batch[i]));
    }
    begin = end;
  }
  return OkStatus();
}

void SortForFile(const std::vector<TensorSpec>& tensors, Shard* shard) {
  std::sort(shard->begin(), shard->end(), [&](size_t a, size_t b) {
    return std::pair(-DtypeBytes(tensors[a].dtype), std::string_view(tensors[a].name)) <
           std::pair(-DtypeBytes(tensors[b].dtype), std::string_view(tensors[b].name));
  });
}

Status WriteSorted(const std::vector<TensorSpec>& tensors, const Shard& shard,
                   const TensorBytesFn& bytes_of, ThreadPool* pool, WritableFile* file) {
  DI_RETURN_IF_ERROR(WriteHeader(HeaderOf(tensors, shard), file));
  return WritePayload(tensors, shard, bytes_of, pool, file);
}

}  // namespace

StatusOr<WritableFile*> FileSet::Create(const std::string& path) {
  DI_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, disk_.Create(path));
  entries_.push_back({path, std::move(file)});
  return entries_.back().file.get();
}

Status FileSet::AddText(const std::string& path, std::string_view text) {
  DI_ASSIGN_OR_RETURN(WritableFile* const file, Create(path));
  return file->Append(text);
}

Status FileSet::Commit() {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Status status = entries_[i].file->Commit();
    if (status.ok()) continue;
    // The first failure is the one to report; what cannot be removed either is left.
    for (size_t made = 0; made < i; ++made) disk_.Remove(entries_[made].path).IgnoreError();
    return status;
  }
  entries_.clear();
  return OkStatus();
}

Status WriteTensorFile(const std::vector<TensorSpec>& tensors, const TensorBytesFn& bytes_of,
                       ThreadPool* pool, WritableFile* file) {
  Shard all(tensors.size());
  std::iota(all.begin(), all.end(), size_t{0});
  SortForFile(tensors, &all);
  return WriteSorted(tensors, all, bytes_of, pool, file);
}

Status WriteShards(const std::vector<TensorSpec>& tensors, const TensorBytesFn& bytes_of,
                   int num_shards, const std::string& directory, ThreadPool* pool, FileSet* files) {
  std::vector<Shard> shards = CutIntoShards(tensors, num_shards);
  std::map<std::string_view, std::string> file_of;
  int64_t total_bytes = 0;
  for (size_t s = 0; s < shards.size(); ++s) {
    Shard& shard = shards[s];
    SortForFile(tensors, &shard);
    const std::string name = ShardName(s, shards.size());
    DI_ASSIGN_OR_RETURN(WritableFile* const file, files->Create(StrCat(directory, "/", name)));
    DI_RETURN_IF_ERROR(WriteSorted(tensors, shard, bytes_of, pool, file));
    for (const size_t i : shard) {
      file_of[tensors[i].name] = name;
      total_bytes += tensors[i].num_bytes();
    }
  }
  std::string index =
      StrCat("{\n\"metadata\": {\n\"total_size\": ", total_bytes, "\n},\n\"weight_map\": {\n");
  bool first = true;
  for (const auto& [tensor, file] : file_of) {
    index += StrCat(first ? "" : ",\n", "\"", tensor, "\": \"", file, "\"");
    first = false;
  }
  index += "\n}\n}";
  return files->AddText(directory + "/model.safetensors.index.json", index);
}

}  // namespace deepinfer
