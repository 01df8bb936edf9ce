#include "model/golden_folder.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "kernels/kv_records/kv_records.h"
#include "model/json_object.h"
#include "model/kv_shape.h"
#include "model/synthetic_checkpoint.h"

namespace deepinfer {
namespace {

StatusOr<std::vector<int32_t>> ReadClasses(Disk& disk, const std::string& path) {
  DI_ASSIGN_OR_RETURN(const std::string bytes, disk.ReadText(path));
  std::vector<int32_t> classes(bytes.size() / sizeof(int32_t));
  std::memcpy(classes.data(), bytes.data(), classes.size() * sizeof(int32_t));
  return classes;
}

// Writes the folder's checkpoint to work_dir.
Status Generate(Disk& disk, const std::string& golden_dir, const std::string& work_dir,
                ThreadPool* threads) {
  if (disk.IsFile(golden_dir + "/tensors.tsv")) {
    return WriteGoldenCheckpoint(disk, golden_dir, work_dir, {.pool = threads}).status();
  }
  const std::string path = golden_dir + "/checkpoint/generator.json";
  nlohmann::json json;
  DI_RETURN_IF_ERROR(ReadJsonObject(disk, path, &json));
  Status status;
  JsonObject generator(json, path, &status);
  int64_t seed = 0;
  std::string digest;
  generator.Read("seed", &seed, 0, INT64_MAX);
  generator.Read("sha256_of_sorted_tensor_sha256", &digest);
  DI_RETURN_IF_ERROR(status);
  DI_ASSIGN_OR_RETURN(const std::string config,
                      disk.ReadText(golden_dir + "/checkpoint/config.json"));
  return WriteSyntheticCheckpoint(disk, config, static_cast<uint64_t>(seed), work_dir,
                                  {.pool = threads, .expected_digest = digest})
      .status();
}

}  // namespace

StatusOr<GoldenFolder> OpenGoldenFolder(Disk& disk, const std::string& golden_dir,
                                        const std::string& work_dir, ThreadPool* threads) {
  std::string directory = golden_dir + "/checkpoint";
  if (!disk.IsFile(directory + "/model.safetensors.index.json")) {
    DI_RETURN_IF_ERROR(Generate(disk, golden_dir, work_dir, threads));
    directory = work_dir;
  }
  GoldenFolder folder;
  DI_ASSIGN_OR_RETURN(folder.checkpoint, Checkpoint::Open(disk, directory));
  DI_ASSIGN_OR_RETURN(folder.packed,
                      PackedWeights::Load(*folder.checkpoint, {.pool = threads, .scan = false}));
  if (!folder.checkpoint->config().engram_layer_ids.empty()) {
    DI_ASSIGN_OR_RETURN(folder.classes, ReadClasses(disk, directory + "/engram_classes.bin"));
  }
  return folder;
}

GoldenSequence::GoldenSequence(Model& model, std::vector<int32_t> ids)
    : tokens(std::move(ids)), model_(model) {
  kv_ = std::make_unique<StandaloneKv>(model.kv_shape(), static_cast<int64_t>(tokens.size()));
}

std::span<const float> GoldenSequence::Run(int32_t begin, int32_t end, ForwardObserver* observer) {
  ForwardBatch batch;
  batch.segments.push_back({.kv = &kv(),
                            .tokens = tokens.data(),
                            .image_mask = image_mask.empty() ? nullptr : image_mask.data(),
                            .image_rows = image_rows.empty() ? nullptr : image_rows.data() + begin,
                            .begin = begin,
                            .end = end,
                            .logits_begin = begin});
  return model_.Forward(batch, observer).value();  // all weights are in memory
}

std::vector<float> GoldenSequence::SwaRow(int32_t ring, int32_t position) const {
  const int32_t dim = model_.config().head_dim;
  std::vector<float> row(static_cast<size_t>(dim));
  const int64_t at = position % kv().shape().ring_rows * SwaRecordBytes(dim);
  DecodeSwaRecord(kv().Ring(ring) + at, dim, row.data());
  return row;
}

std::vector<float> GoldenSequence::GlobalEntry(int32_t layer, int32_t entry) const {
  const int32_t dim = model_.config().head_dim;
  std::vector<float> row(static_cast<size_t>(dim));
  const PagedSource source = kv().Source(KvSourceIndex(model_.config(), layer));
  DecodeGlobalRecord(source.GlobalRecord(entry, dim), dim, row.data());
  return row;
}

std::vector<float> GoldenSequence::IndexKey(int32_t layer, int32_t entry) const {
  const int32_t dim = model_.config().index_head_dim;
  std::vector<float> row(static_cast<size_t>(dim));
  const PagedSource source = kv().Source(KvSourceIndex(model_.config(), layer));
  DecodeIndexKey(source.IndexKey(entry, dim), source.IndexScale(entry, dim), dim, row.data());
  return row;
}

}  // namespace deepinfer
