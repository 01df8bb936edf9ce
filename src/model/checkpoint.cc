#include "model/checkpoint.h"

#include "base/check.h"
#include "base/log.h"
#include "model/tensor_table.h"

namespace deepinfer {
namespace {

constexpr int64_t kMaxConfigBytes = 1 << 20;
constexpr std::string_view kSupported =
    "supported: a Hugging Face directory of DeepSeek-V4.1-Flash (config.json of model_type "
    "deepseek_v41 "
    "and safetensors)";

// Why a directory without config.json is no checkpoint.
std::string DescribeOtherDirectory(const std::vector<std::string>& names) {
  const auto any = [&](std::string_view ending) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return name.ends_with(ending); });
  };
  if (names.empty()) return "the directory is empty";
  if (any("adapter_config.json")) return "a LoRA adapter, not a whole model (adapter_config.json)";
  if (any(".gguf")) return "GGUF files, another format";
  if (any(".bin") || any(".pt") || any(".pth")) return "no config.json beside PyTorch files";
  return "no config.json";
}

Status FirstOf(const std::vector<TensorProblem>& problems, const std::string& directory) {
  if (problems.empty()) return OkStatus();
  std::string line = StrCat(directory, ": ", ToLine(problems.front()));
  if (problems.size() > 1) {
    line +=
        StrCat(" (and ", problems.size() - 1, " more differences, `deepinfer inspect` lists them)");
  }
  return DataLoss(line);
}

bool IsAligned(const uint8_t* data, Dtype dtype) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<size_t>(DtypeBytes(dtype)) == 0;
}

}  // namespace

void ReportUnusual(const ScanReport& scan) {
  if (scan.num_unusual_scales == 0) return;
  LogWarning(scan.num_unusual_scales, " scale bytes outside [", int{kUsualScaleMin}, ", ",
             int{kUsualScaleMax}, "] in ", scan.num_unusual_tensors, " tensors, the first is ",
             scan.first_unusual_tensor, "; these matrices take the exact slow path");
}

StatusOr<ModelConfig> ReadModelConfig(Disk& disk, const std::string& directory, bool strict) {
  const std::string path = directory + "/config.json";
  if (!disk.IsFile(path)) {
    DI_ASSIGN_OR_RETURN(const std::vector<std::string> names, disk.List(directory));
    return NotFound(directory, ": ", DescribeOtherDirectory(names), "; ", kSupported);
  }
  DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(path, kMaxConfigBytes));
  return ParseModelConfig(text, path, strict);
}

StatusOr<std::vector<ScanItem>> MakeScanItems(const std::vector<TensorSpec>& expected,
                                              const TensorFiles& files) {
  std::unordered_map<std::string_view, const StoredTensor*> stored;
  for (const StoredTensor& tensor : files.tensors) stored.emplace(tensor.name, &tensor);
  std::vector<ScanItem> items;
  items.reserve(expected.size());
  for (const TensorSpec& spec : expected) {
    const auto at = stored.find(spec.name);
    if (at == stored.end()) continue;
    const StoredTensor& tensor = *at->second;
    if (tensor.dtype != spec.dtype || tensor.shape != spec.shape || !files.IsWhole(tensor))
      continue;
    DI_ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes, files.Bytes(tensor));
    const TensorFile& file = files.files[static_cast<size_t>(tensor.file)];
    items.push_back({.spec = &spec,
                     .bytes = bytes,
                     .file = file.name,
                     .source = file.source.get(),
                     .offset = tensor.offset});
  }
  return items;
}

StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(Disk& disk, const std::string& directory,
                                                       const CheckpointOptions& options) {
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint);
  DI_ASSIGN_OR_RETURN(checkpoint->config_, ReadModelConfig(disk, directory, options.strict_config));
  DI_ASSIGN_OR_RETURN(checkpoint->files_, OpenTensorFiles(disk, directory));
  const std::vector<TensorSpec>& expected = checkpoint->expected_;
  checkpoint->expected_ = ExpectedTensors(checkpoint->config_);
  DI_RETURN_IF_ERROR(FirstOf(FindDifferences(expected, checkpoint->files_), directory));
  checkpoint->census_ = CountTensors(expected);
  DI_ASSIGN_OR_RETURN(checkpoint->items_, MakeScanItems(expected, checkpoint->files_));
  CHECK_EQ(checkpoint->items_.size(), expected.size());
  if (options.scan_weights) {
    StatusOr<ScanReport> scan = ScanWeights(checkpoint->items_, options.pool, options.progress);
    if (!scan.ok()) return Annotate(scan.status(), directory);
    checkpoint->scan_ = std::move(*scan);
    ReportUnusual(checkpoint->scan_);
  }
  checkpoint->Bind();
  return checkpoint;
}

void Checkpoint::Bind() {
  TensorTable table;
  for (size_t i = 0; i < items_.size(); ++i) {
    const ScanItem& item = items_[i];
    const uint8_t* data = item.bytes.data();
    if (!IsAligned(data, item.spec->dtype)) {
      data = copies_.emplace_back(item.bytes.begin(), item.bytes.end()).data();
    }
    // Without a scan nothing is known about the scales, so nothing is promised.
    const bool usual = scan_.done && scan_.has_unusual[i] == 0;
    table.Add({item.spec, data, usual});
    item_at_.emplace(data, i);
  }
  weights_ = BindWeights(config_, table);
}

size_t Checkpoint::ItemAt(const void* data) const {
  const auto at = item_at_.find(data);
  CHECK(at != item_at_.end());
  return at->second;
}

std::vector<std::string> Checkpoint::file_names() const {
  std::vector<std::string> names;
  for (const TensorFile& file : files_.files) names.push_back(file.name);
  return names;
}

}  // namespace deepinfer
