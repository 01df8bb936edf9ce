#include "model/placed_weights.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/large_block.h"
#include "base/progress.h"
#include "model/expert_cache.h"
#include "model/mapped_experts.h"

namespace deepinfer {
namespace {

// "experts " + this.
std::string_view Where(WeightPlace place) {
  return place == WeightPlace::kRam    ? "in memory"
         : place == WeightPlace::kMmap ? "in a mapped file"
                                       : "on disk";
}

StatusOr<int32_t> SlotsFor(const ModelConfig& config, const ExpertTotals& totals,
                           const PlacementOptions& options, int64_t free_bytes) {
  return NumExpertSlots(options.expert_cache_bytes, free_bytes, totals.slot_bytes,
                        totals.num_experts,
                        std::max(config.num_experts_per_tok, config.dspark_num_experts_per_tok));
}

}  // namespace

StatusOr<WeightMemory> PlanWeightMemory(const ModelConfig& config, bool packs,
                                        const PlacementOptions& options, int64_t free_bytes,
                                        int64_t max_engram_rows) {
  const ModelWeights shapes = WeightShapes(config);
  const PackedLayout layout(shapes);
  WeightMemory memory;
  if (packs) {
    memory.packed =
        options.experts == WeightPlace::kRam ? layout.image_bytes() : layout.routed_experts_begin();
  }
  if (options.experts == WeightPlace::kDisk) {
    const ExpertTotals totals = CountExperts(shapes, layout);
    DI_ASSIGN_OR_RETURN(
        const int32_t num_slots,
        SlotsFor(config, totals, options, std::max<int64_t>(0, free_bytes - memory.packed)));
    memory.expert_slots = num_slots * totals.slot_bytes;
  }
  std::vector<EngramTable> tables;
  for (const int32_t layer : config.engram_layer_ids) {
    tables.push_back(shapes.layers[static_cast<size_t>(layer)].engram.table);
  }
  memory.engram = EngramMemoryBytes(options.engram, tables, max_engram_rows);
  return memory;
}

std::vector<StoredEngramTable> FindEngramTables(const Checkpoint& checkpoint) {
  const auto place = [&](const uint8_t* data) {
    const ScanItem& item = checkpoint.items()[checkpoint.ItemAt(data)];
    return FilePlace{item.source, item.offset};
  };
  std::vector<StoredEngramTable> tables;
  for (const int32_t layer : checkpoint.config().engram_layer_ids) {
    const EngramTable& view = checkpoint.weights().layers[static_cast<size_t>(layer)].engram.table;
    tables.push_back({view, place(view.data), place(view.scale)});
  }
  return tables;
}

StatusOr<PlacementOptions> ParsePlacement(std::string_view experts, std::string_view engram,
                                          int64_t expert_cache_bytes, bool has_image) {
  PlacementOptions options{.expert_cache_bytes = expert_cache_bytes};
  DI_ASSIGN_OR_RETURN(options.experts, ParseWeightPlace("experts", experts));
  DI_ASSIGN_OR_RETURN(options.engram, ParseWeightPlace("engram", engram));
  if (options.experts != WeightPlace::kRam && !has_image) {
    return FailedPrecondition("experts: ", experts,
                              " reads packed weights from a file; give a directory for it "
                              "(--weights-cache DIR) and a variant other than ref");
  }
  if (expert_cache_bytes != 0 && options.experts != WeightPlace::kDisk) {
    return InvalidArgument("expert_cache: found ", expert_cache_bytes, " bytes with experts ",
                           experts, ", expected none: only experts of disk have a cache");
  }
  return options;
}

StatusOr<int32_t> NumExpertSlots(int64_t wanted_bytes, int64_t free_bytes, int64_t slot_bytes,
                                 int64_t num_experts, int32_t num_experts_per_tok) {
  const int64_t least =
      std::max<int64_t>(2, std::min<int64_t>(num_experts_per_tok + 2, num_experts));
  if (wanted_bytes != 0 && wanted_bytes < least * slot_bytes) {
    return InvalidArgument("expert_cache: found ", wanted_bytes, " bytes, expected at least ",
                           least * slot_bytes, ", the experts of one token and two more");
  }
  const int64_t bytes = wanted_bytes != 0 ? wanted_bytes : free_bytes / 4;
  return static_cast<int32_t>(std::clamp(bytes / slot_bytes, least, std::max(least, num_experts)));
}

StatusOr<std::unique_ptr<PlacedWeights>> PlacedWeights::Place(Disk& disk,
                                                              const Checkpoint& checkpoint,
                                                              const PackedWeights* packed,
                                                              const PlacementOptions& options) {
  std::unique_ptr<PlacedWeights> placed(
      new PlacedWeights(packed != nullptr ? packed->weights() : checkpoint.weights()));
  placed->options_ = options;
  if (packed != nullptr) placed->packed_bytes_ = packed->num_bytes();
  if (options.experts != WeightPlace::kRam) {
    CHECK(packed != nullptr && packed->image_file().has_value());
    DI_ASSIGN_OR_RETURN(placed->image_, disk.OpenRead(packed->image_file()->path));
    DI_RETURN_IF_ERROR(
        options.experts == WeightPlace::kMmap
            ? placed->MapExperts(*packed)
            : placed->CacheExperts(checkpoint.config(), *packed, AvailableMemoryBytes(disk)));
  }
  DI_ASSIGN_OR_RETURN(
      placed->engram_,
      MakeEngramSource(options.engram, FindEngramTables(checkpoint), options.progress));
  return placed;
}

Status PlacedWeights::MapExperts(const PackedWeights& packed) {
  DI_ASSIGN_OR_RETURN(const std::span<const uint8_t> file, image_->Map());
  const PackedLayout& layout = packed.layout();
  const ImageFile& where = *packed.image_file();
  if (where.image_offset + layout.image_bytes() > std::ssize(file)) {
    return DataLoss(where.path, ": cut short to ", file.size(), " bytes since it was opened, ",
                    where.image_offset + layout.image_bytes(), " were expected; start again");
  }
  const uint8_t* const image = file.data() + where.image_offset;
  const auto place = [&](BlockWeights& block, int32_t index) {
    for (int32_t e = 0; e < std::ssize(block.experts); ++e) {
      ExpertWeights& expert = block.experts[static_cast<size_t>(e)];
      const auto parts = layout.ExpertParts(index, e);
      Matrix* const matrices[] = {&expert.w1, &expert.w3, &expert.w2};
      for (size_t i = 0; i < parts.size(); ++i) {
        if (matrices[i]->usual_scales) matrices[i]->panels = image + parts[i].offset;
      }
    }
  };
  int32_t index = 0;
  for (BlockWeights& block : weights_.layers) place(block, index++);
  for (BlockWeights& block : weights_.mtp) place(block, index++);
  experts_ = MakeMappedExperts(weights_);
  return OkStatus();
}

Status PlacedWeights::CacheExperts(const ModelConfig& config, const PackedWeights& packed,
                                   int64_t free_bytes) {
  DI_ASSIGN_OR_RETURN(
      const int32_t num_slots,
      SlotsFor(config, CountExperts(weights_, packed.layout()), options_, free_bytes));
  const ImageFile& image = *packed.image_file();
  DI_ASSIGN_OR_RETURN(experts_,
                      ExpertCache::Create(weights_,
                                          {.layout = &packed.layout(),
                                           .path = image.path,
                                           .first_byte = {image_.get(), image.image_offset},
                                           .pieces = image.pieces},
                                          num_slots));
  return OkStatus();
}

WeightMemory PlacedWeights::memory() const {
  return {.packed = packed_bytes_,
          .expert_slots = experts_ != nullptr ? experts_->memory_bytes() : 0,
          .engram = engram_->memory_bytes()};
}

std::string PlacedWeights::Description() const {
  const auto text = [](int64_t bytes) { return BytesText(static_cast<double>(bytes)); };
  std::string line = StrCat("weights: experts ", Where(options_.experts));
  if (options_.experts == WeightPlace::kDisk) {
    line += StrCat(" (", experts_->capacity(), " of them in ", text(experts_->memory_bytes()),
                   " of memory)");
  }
  line += StrCat(", engram tables ", Where(options_.engram));
  if (options_.engram == WeightPlace::kRam)
    line += StrCat(" (", text(engram_->memory_bytes()), ")");
  return StrCat(line, ", packed in memory: ", text(packed_bytes_));
}

std::string PlacedWeights::CountsText() const {
  const auto text = [](int64_t bytes) { return BytesText(static_cast<double>(bytes)); };
  std::string line = "weights:";
  if (experts_ != nullptr) {
    const ExpertCounts& counts = experts_->counts();
    line += StrCat(" ", counts.fetched, " experts used, ", counts.read, " read (hit rate ",
                   counts.hit_rate(), ", ", text(counts.bytes_read), "),");
  }
  const EngramCounts& counts = engram_->counts();
  return StrCat(line, " ", counts.rows, " engram rows used, ", counts.rows_read, " read (",
                text(counts.bytes_read), "), ", counts.ranges_advised, " ranges asked for");
}

}  // namespace deepinfer
