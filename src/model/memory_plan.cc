#include "model/memory_plan.h"

#include <charconv>

#include "base/progress.h"
#include "model/kv_shape.h"

namespace deepinfer {
namespace {

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3},
    {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"B", 1},
};
constexpr double kMaxMachineBytes = 0x1p60;

std::optional<int64_t> ParseByteCount(std::string_view text) {
  for (const auto& [name, factor] : kUnits) {
    if (!text.ends_with(name)) continue;
    const std::string_view digits = text.substr(0, text.size() - name.size());
    double number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size()) return {};
    if (!(number > 0 && number * factor <= kMaxMachineBytes)) return {};
    return static_cast<int64_t>(number * factor);
  }
  return {};
}

// "8x139GiB"
bool ParseGpus(std::string_view text, MachineMemory* machine) {
  const size_t times = text.find('x');
  if (times == std::string_view::npos) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + times, machine->num_gpus);
  const std::optional<int64_t> bytes = ParseByteCount(text.substr(times + 1));
  if (error != std::errc() || end != text.data() + times || !bytes) return false;
  machine->gpu_bytes = *bytes;
  return machine->num_gpus >= 1 && machine->num_gpus <= 4096;
}

bool ParseMachinePart(std::string_view part, MachineMemory* machine) {
  if (part.starts_with("gpus=")) return ParseGpus(part.substr(5), machine);
  if (part.starts_with("ram=")) part.remove_prefix(4);
  const std::optional<int64_t> bytes = ParseByteCount(part);
  if (!bytes) return false;
  machine->ram_bytes = *bytes;
  return true;
}

// Pages that remain in `room` bytes, as tokens.
int64_t TokensIn(int64_t room, const MemoryPlan& plan) {
  return room / plan.page_bytes * plan.page_tokens;
}

class Planner {
 public:
  explicit Planner(MemoryPlan* plan) : plan_(*plan) {}

  void AddRow(Place experts, Place engram, int32_t ep_size) {
    const bool gpu = plan_.machine.num_gpus > 0;
    PlanRow row{.experts = experts,
                .engram = engram,
                .ep_size = ep_size,
                .ram_bytes = kRamReserveBytes + plan_.engine.BytesIn(EngineMemory::Place::kHost)};
    // Where the ranks' own share lies: on each GPU, or in RAM when there is none.
    int64_t& rank_bytes = gpu ? row.gpu_bytes : row.ram_bytes;
    rank_bytes += plan_.resident_bytes + plan_.engine.BytesIn(EngineMemory::Place::kDevice) +
                  (gpu ? kGpuReserveBytes : 0);
    Put(experts, plan_.expert_bytes, &row);
    Put(engram, plan_.engram_bytes, &row);
    row.fits = row.gpu_bytes <= plan_.machine.gpu_bytes && row.ram_bytes <= plan_.machine.ram_bytes;
    if (row.fits) {
      const int64_t rank_room = gpu ? plan_.machine.gpu_bytes : plan_.machine.ram_bytes;
      row.kv_tokens = TokensIn(rank_room - rank_bytes + plan_.engine.kv_page_bytes, plan_);
    }
    plan_.rows.push_back(row);
  }

 private:
  static void Put(Place place, int64_t bytes, PlanRow* row) {
    switch (place) {
      case Place::kDevice:  // shared out over the ranks, the last one may have less
        row->gpu_bytes += (bytes + row->ep_size - 1) / row->ep_size;
        break;
      case Place::kRam:  // one copy a machine
        row->ram_bytes += bytes;
        break;
      case Place::kDisk:
        row->disk_bytes += bytes;
        break;
    }
  }

  MemoryPlan& plan_;
};

std::vector<int32_t> EpSizes(const ModelConfig& config, int32_t num_gpus) {
  std::vector<int32_t> sizes;
  const bool draft = config.num_nextn_predict_layers > 0;
  for (int32_t size = 1; size <= std::max(num_gpus, 1); size *= 2) {
    if (config.n_routed_experts % size != 0) break;
    if (draft && config.dspark_n_routed_experts % size != 0) break;
    sizes.push_back(size);
  }
  return sizes;
}

std::string Bytes(int64_t bytes) { return BytesText(static_cast<double>(bytes)); }

std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string Verdict(const PlanRow& row, const MemoryPlan& plan) {
  if (row.fits) return StrCat("fits, KV for ", row.kv_tokens, " tokens");
  const bool gpu_short = row.gpu_bytes > plan.machine.gpu_bytes;
  const int64_t missing =
      gpu_short ? row.gpu_bytes - plan.machine.gpu_bytes : row.ram_bytes - plan.machine.ram_bytes;
  return StrCat(Bytes(missing), gpu_short ? " short on each GPU" : " of RAM short");
}

// One line for the rows of a placement, which differ in the EP size: the least that fits, else the
// largest.
std::string PlacementAsText(std::span<const PlanRow> rows, const MemoryPlan& plan) {
  std::vector<int32_t> fitting;
  for (const PlanRow& row : rows) {
    if (row.fits) fitting.push_back(row.ep_size);
  }
  const auto best =
      std::find_if(rows.begin(), rows.end(), [](const PlanRow& row) { return row.fits; });
  const PlanRow& row = best == rows.end() ? rows.back() : *best;
  std::string line = StrCat("  ", Padded(std::string(PlaceName(row.experts)), 9),
                            Padded(std::string(PlaceName(row.engram)), 8));
  if (plan.machine.num_gpus > 0) {
    line += StrCat(Padded(fitting.empty() ? "none" : Join(fitting, " "), 14),
                   Padded(StrCat(Bytes(row.gpu_bytes), " (EP ", row.ep_size, ")"), 18));
  }
  return StrCat(line, Padded(Bytes(row.ram_bytes), 10), Padded(Bytes(row.disk_bytes), 10),
                Verdict(row, plan), "\n");
}

std::string EngineAsText(const EngineMemory& engine) {
  std::string text = StrCat("at its start the engine takes (", engine.about, ")\n");
  const auto line = [&](const std::string& title, int64_t bytes, const std::string& about) {
    const std::string size = about.empty() ? Bytes(bytes) : Padded(Bytes(bytes), 11);
    text += StrCat("  ", Padded(title, 26), size, about, "\n");
  };
  for (const EngineMemory::Part& part : engine.parts) {
    if (part.num_bytes > 0) line(part.title, part.num_bytes, part.about);
  }
  line("together", engine.total_bytes(), StrCat(engine.total_bytes(), " bytes"));
  return text;
}

bool SamePlacement(const PlanRow& a, const PlanRow& b) {
  return a.experts == b.experts && a.engram == b.engram;
}

}  // namespace

int64_t EngineMemory::BytesIn(Place place) const {
  int64_t bytes = 0;
  for (const Part& part : parts) bytes += part.place == place ? part.num_bytes : 0;
  return bytes;
}

int64_t EngineMemory::total_bytes() const {
  return BytesIn(Place::kWeights) + BytesIn(Place::kDevice) + BytesIn(Place::kHost);
}

StatusOr<MachineMemory> ParseMachine(std::string_view text) {
  MachineMemory machine;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = rest.find(',');
    if (!ParseMachinePart(rest.substr(0, comma), &machine)) {
      return InvalidArgument("plan '", text,
                             "': expected RAM and GPUs such as ram=512GiB,gpus=8x139GiB, "
                             "found '",
                             rest.substr(0, comma), "'");
    }
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  if (machine.ram_bytes == 0) {
    return InvalidArgument("plan '", text, "': no RAM given; expected for example ram=512GiB");
  }
  return machine;
}

std::string_view PlaceName(Place place) {
  static constexpr std::string_view kNames[] = {"device", "ram", "disk"};
  return kNames[static_cast<size_t>(place)];
}

MemoryPlan PlanMemory(const ModelConfig& config, const Census& census, const MachineMemory& machine,
                      const EngineMemory& engine) {
  const KvShape kv = MakeKvShape(config);
  MemoryPlan plan;
  plan.machine = machine;
  plan.engine = engine;
  plan.expert_bytes =
      census.of(Part::kRoutedExperts).num_bytes + census.of(Part::kDraftExperts).num_bytes;
  plan.engram_bytes = census.of(Part::kEngramTables).num_bytes;
  plan.resident_bytes = census.total.num_bytes - plan.expert_bytes - plan.engram_bytes;
  plan.page_bytes = kv.layout.page_bytes;
  plan.page_tokens = kTokensPerPage;
  const int64_t pages = (config.max_position_embeddings + plan.page_tokens - 1) / plan.page_tokens;
  plan.sequence_bytes = pages * plan.page_bytes + kv.num_rings * kv.RingBytes();

  Planner planner(&plan);
  const bool gpu = machine.num_gpus > 0;
  for (const Place experts : {Place::kDevice, Place::kRam, Place::kDisk}) {
    for (const Place engram : {Place::kDevice, Place::kRam, Place::kDisk}) {
      if (!gpu && (experts == Place::kDevice || engram == Place::kDevice)) continue;
      for (const int32_t ep_size : EpSizes(config, machine.num_gpus)) {
        planner.AddRow(experts, engram, ep_size);
      }
    }
  }
  return plan;
}

std::string PlanAsText(const MemoryPlan& plan) {
  const bool gpu = plan.machine.num_gpus > 0;
  std::string text = StrCat(EngineAsText(plan.engine), "memory plan for ",
                            Bytes(plan.machine.ram_bytes), " of RAM");
  if (gpu)
    text += StrCat(" and ", plan.machine.num_gpus, " GPUs of ", Bytes(plan.machine.gpu_bytes));
  text += StrCat("\n  always ", gpu ? "on each GPU " : "in RAM ", Bytes(plan.resident_bytes),
                 ", one longest sequence ", Bytes(plan.sequence_bytes), ", routed experts ",
                 Bytes(plan.expert_bytes), ", engram tables ", Bytes(plan.engram_bytes),
                 "\n  experts  engram  ", gpu ? "EP that fits  on each GPU       " : "",
                 "RAM       disk\n");
  for (size_t begin = 0; begin < plan.rows.size();) {
    size_t end = begin;
    while (end < plan.rows.size() && SamePlacement(plan.rows[begin], plan.rows[end])) ++end;
    text += PlacementAsText(std::span(plan.rows).subspan(begin, end - begin), plan);
    begin = end;
  }
  return text;
}

}  // namespace deepinfer
