#include "model/engram_source.h"

#include <algorithm>

#include "base/check.h"
#include "base/large_block.h"

namespace deepinfer {
namespace {

// More wishes than these take longer than the page faults they save.
constexpr size_t kMaxRangesAdvised = 8192;
constexpr std::string_view kRamName = "engram tables in memory (engram ram)";  // for messages
constexpr int kNumReaders = 16;
// Of a table that is read as a whole; a round lies between two calls of `progress`.
constexpr size_t kPieceBytes = size_t{8} << 20, kPiecesPerRound = 32;
constexpr uintptr_t kPageBytes = 4096;  // the least there are

int64_t ScaleBytes(const EngramTable& table) { return table.dim / 32; }

int64_t TableBytes(const EngramTable& table) {
  return table.rows * (table.dim + ScaleBytes(table));
}

// Pages on which a row lies, wherever it begins.
int64_t MostPagesOfARow(const EngramTable& table) {
  constexpr auto kPage = static_cast<int64_t>(kPageBytes);
  return (table.dim + kPage - 2) / kPage + 1;
}

template <typename T>
int64_t CapacityBytes(const std::vector<T>& list) {
  return static_cast<int64_t>(list.capacity() * sizeof(T));
}

// Tables that are memory as a whole: announced ids are ids of the table.
class WholeTables : public EngramSource {
 public:
  void Reserve(int64_t) override { ids_.reserve(tables_.size()); }
  StatusOr<EngramRows> Rows(int32_t table) override {
    const auto at = static_cast<size_t>(table);
    return EngramRows{tables_[at], ids_[at].data()};
  }

 protected:
  void Remember(std::span<const std::span<const int32_t>> rows_of_tables) {
    CHECK_EQ(rows_of_tables.size(), tables_.size());
    ids_.assign(rows_of_tables.begin(), rows_of_tables.end());
    for (const auto& ids : ids_) counts_.rows += std::ssize(ids);
  }

  std::vector<EngramTable> tables_;
  std::vector<std::span<const int32_t>> ids_;
};

class RamTables : public WholeTables {
 public:
  Status Load(const std::vector<StoredEngramTable>& stored, const ProgressFn& progress) {
    std::vector<FileRead> reads;
    for (const StoredEngramTable& table : stored) {
      const EngramTable& view = table.view;
      const int64_t data = view.rows * view.dim, scale = view.rows * ScaleBytes(view);
      DI_ASSIGN_OR_RETURN(LargeBlock block, LargeBlock::Allocate(TableBytes(view), kRamName));
      tables_.push_back({view.rows, view.dim, block.data(), block.data() + data});
      AddReads(table.data, {block.data(), static_cast<size_t>(data)}, reads);
      AddReads(table.scale, {block.data() + data, static_cast<size_t>(scale)}, reads);
      blocks_.push_back(std::move(block));
    }
    return Read(reads, progress);
  }

  void Announce(std::span<const std::span<const int32_t>> rows_of_tables) override {
    Remember(rows_of_tables);
  }
  int64_t memory_bytes() const override {
    int64_t bytes = 0;
    for (const LargeBlock& block : blocks_) bytes += block.num_bytes();
    return bytes;
  }

 private:
  static void AddReads(const FilePlace& place, std::span<uint8_t> out,
                       std::vector<FileRead>& reads) {
    for (size_t at = 0; at < out.size(); at += kPieceBytes) {
      reads.push_back({.file = place.file,
                       .offset = place.offset + static_cast<int64_t>(at),
                       .out = out.subspan(at, std::min(kPieceBytes, out.size() - at))});
    }
  }

  Status Read(const std::vector<FileRead>& reads, const ProgressFn& progress) const {
    ReadQueue queue(kNumReaders);
    int64_t done = 0;
    for (size_t first = 0; first < reads.size(); first += kPiecesPerRound) {
      const size_t last = std::min(reads.size(), first + kPiecesPerRound);
      const auto begin = reads.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = reads.begin() + static_cast<std::ptrdiff_t>(last);
      ReadBatch batch({begin, end});
      queue.Start(batch);
      DI_RETURN_IF_ERROR(Annotate(batch.Wait(), kRamName));
      for (size_t i = first; i < last; ++i) done += std::ssize(reads[i].out);
      if (progress) progress(done, memory_bytes());
    }
    return OkStatus();
  }

  std::vector<LargeBlock> blocks_;
};

class MappedTables : public WholeTables {
 public:
  explicit MappedTables(const std::vector<StoredEngramTable>& stored) {
    for (const StoredEngramTable& table : stored) tables_.push_back(table.view);
  }

  void Reserve(int64_t max_rows) override {
    WholeTables::Reserve(max_rows);
    pages_.reserve(static_cast<size_t>(MostPages(tables_, max_rows)));
  }
  static int64_t MostPages(std::span<const EngramTable> tables, int64_t max_rows) {
    int64_t pages = 0;
    for (const EngramTable& table : tables) {
      pages = std::max(pages, max_rows * MostPagesOfARow(table));
    }
    return pages;
  }

  void Announce(std::span<const std::span<const int32_t>> rows_of_tables) override {
    Remember(rows_of_tables);
    size_t left = kMaxRangesAdvised;
    for (size_t i = 0; i < tables_.size(); ++i) {
      left = Advise(tables_[i].data, tables_[i].dim, ids_[i], left);
      left = Advise(tables_[i].scale, ScaleBytes(tables_[i]), ids_[i], left);
    }
  }
  int64_t memory_bytes() const override { return CapacityBytes(pages_); }

 private:
  // Asks for the pages of the rows, each page once, neighbours together. Returns what is left.
  size_t Advise(const uint8_t* table, int64_t row_bytes, std::span<const int32_t> ids,
                size_t left) {
    const auto first = reinterpret_cast<uintptr_t>(table);
    const auto page_of = [&](int64_t byte) {
      return (first + static_cast<uintptr_t>(byte)) / kPageBytes;
    };
    pages_.clear();
    for (const int64_t id : ids) {
      const uintptr_t last = page_of((id + 1) * row_bytes - 1);
      for (uintptr_t page = page_of(id * row_bytes); page <= last; ++page) pages_.push_back(page);
    }
    std::sort(pages_.begin(), pages_.end());
    for (size_t begin = 0, end; begin < pages_.size() && left > 0; begin = end, --left) {
      end = begin + 1;
      while (end < pages_.size() && pages_[end] <= pages_[end - 1] + 1) ++end;
      const uintptr_t bytes = (pages_[end - 1] - pages_[begin] + 1) * kPageBytes;
      AskForPages({reinterpret_cast<const uint8_t*>(pages_[begin] * kPageBytes), bytes});
      ++counts_.ranges_advised;
    }
    return left;
  }

  std::vector<uintptr_t> pages_;  // addresses / kPageBytes
};

// Rows are read into a staging table without duplicates. Its memory is what the largest pass takes.
// Reads go through the system's page cache: n-grams repeat, and it gives their memory back.
class DiskTables : public EngramSource {
 public:
  explicit DiskTables(std::vector<StoredEngramTable> stored)
      : stored_(std::move(stored)), stages_(stored_.size()) {}

  void Reserve(int64_t max_rows) override {
    for (size_t i = 0; i < stages_.size(); ++i) {
      const EngramTable& view = stored_[i].view;
      const auto rows = static_cast<size_t>(std::min(max_rows, view.rows));
      Stage& stage = stages_[i];
      stage.reads.Wait().IgnoreError();
      stage.rows.reserve(static_cast<size_t>(max_rows));
      stage.ids.reserve(static_cast<size_t>(max_rows));
      stage.data.reserve(rows * static_cast<size_t>(view.dim));
      stage.scale.reserve(rows * static_cast<size_t>(ScaleBytes(view)));
      stage.reads.reads().reserve(2 * rows);
    }
  }
  // Of one table, after Reserve.
  static int64_t StageBytes(const EngramTable& table, int64_t max_rows) {
    constexpr auto kId = static_cast<int64_t>(sizeof(int32_t));
    constexpr auto kRead = static_cast<int64_t>(sizeof(FileRead));
    return 2 * max_rows * kId +
           std::min(max_rows, table.rows) * (table.dim + ScaleBytes(table) + 2 * kRead);
  }

  void Announce(std::span<const std::span<const int32_t>> rows_of_tables) override {
    CHECK_EQ(rows_of_tables.size(), stored_.size());
    for (size_t i = 0; i < stages_.size(); ++i) Start(stored_[i], rows_of_tables[i], stages_[i]);
  }

  StatusOr<EngramRows> Rows(int32_t table) override {
    Stage& stage = stages_[static_cast<size_t>(table)];
    if (const Status status = stage.reads.Wait(); !status.ok()) {
      return Annotate(status, "engram table ", table);
    }
    const EngramTable& view = stored_[static_cast<size_t>(table)].view;
    return EngramRows{{.rows = std::ssize(stage.rows),
                       .dim = view.dim,
                       .data = stage.data.data(),
                       .scale = stage.scale.data()},
                      stage.ids.data()};
  }

  int64_t memory_bytes() const override {
    int64_t bytes = 0;
    for (const Stage& stage : stages_) {
      bytes += CapacityBytes(stage.rows) + CapacityBytes(stage.ids) + CapacityBytes(stage.data) +
               CapacityBytes(stage.scale) + CapacityBytes(stage.reads.reads());
    }
    return bytes;
  }

 private:
  struct Stage {
    std::vector<int32_t> rows;  // of the stored table, ascending, each once
    std::vector<int32_t> ids;   // announced rows as places in `rows`
    std::vector<uint8_t> data, scale;
    ReadBatch reads;  // into data and scale
  };

  void Start(const StoredEngramTable& table, std::span<const int32_t> ids, Stage& stage) {
    stage.reads.Wait().IgnoreError();  // of a pass that ended early
    stage.rows.assign(ids.begin(), ids.end());
    std::sort(stage.rows.begin(), stage.rows.end());
    stage.rows.erase(std::unique(stage.rows.begin(), stage.rows.end()), stage.rows.end());
    stage.ids.clear();
    for (const int32_t id : ids) {
      const auto at = std::lower_bound(stage.rows.begin(), stage.rows.end(), id);
      stage.ids.push_back(static_cast<int32_t>(at - stage.rows.begin()));
    }
    std::vector<FileRead>& reads = stage.reads.reads();
    reads.clear();
    AddReads(table.data, table.view.dim, stage.rows, stage.data, reads);
    AddReads(table.scale, ScaleBytes(table.view), stage.rows, stage.scale, reads);
    counts_.rows += std::ssize(ids);
    counts_.rows_read += std::ssize(stage.rows);
    counts_.bytes_read += std::ssize(stage.data) + std::ssize(stage.scale);
    queue_.Start(stage.reads);
  }

  static void AddReads(const FilePlace& place, int64_t row_bytes, const std::vector<int32_t>& rows,
                       std::vector<uint8_t>& out, std::vector<FileRead>& reads) {
    out.resize(rows.size() * static_cast<size_t>(row_bytes));
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto bytes = static_cast<size_t>(row_bytes);
      reads.push_back({.file = place.file,
                       .offset = place.offset + rows[i] * row_bytes,
                       .out = std::span(out).subspan(i * bytes, bytes)});
    }
  }

  const std::vector<StoredEngramTable> stored_;
  ReadQueue queue_{kNumReaders};
  std::vector<Stage> stages_;  // their reads end before the queue
};

}  // namespace

int64_t EngramMemoryBytes(WeightPlace place, std::span<const EngramTable> tables,
                          int64_t max_rows) {
  if (place == WeightPlace::kMmap) {
    return MappedTables::MostPages(tables, max_rows) * static_cast<int64_t>(sizeof(uintptr_t));
  }
  int64_t bytes = 0;
  for (const EngramTable& table : tables) {
    bytes +=
        place == WeightPlace::kRam ? TableBytes(table) : DiskTables::StageBytes(table, max_rows);
  }
  return bytes;
}

StatusOr<std::unique_ptr<EngramSource>> MakeEngramSource(WeightPlace place,
                                                         std::vector<StoredEngramTable> tables,
                                                         const ProgressFn& progress) {
  if (place == WeightPlace::kDisk) return std::make_unique<DiskTables>(std::move(tables));
  if (place == WeightPlace::kMmap) return std::make_unique<MappedTables>(tables);
  auto ram = std::make_unique<RamTables>();
  DI_RETURN_IF_ERROR(ram->Load(tables, progress));
  return ram;
}

}  // namespace deepinfer
