#include "model/packed_weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "base/read_queue.h"
#include "kernels/formats/panels.h"
#include "model/load_plan.h"

namespace deepinfer {
namespace {

// Of the image: what a thread packs before it turns to the next. Part of the cache's format.
constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr int64_t kRunBytes = int64_t{4} << 20;  // of the cache that are read together
// Smaller reads go through the system's cache: what it reads ahead is what comes next.
constexpr int64_t kSmallRead = int64_t{64} << 10;
constexpr int kReaders = 4;  // that wait for the disk while the threads pack

// Memory for direct reads; only grows, contents are not kept.
class DirectBuffer {
 public:
  uint8_t* Get(int64_t bytes) {
    if (bytes > bytes_) {
      bytes_ = RoundUp(bytes);
      memory_.reset(static_cast<uint8_t*>(
          std::aligned_alloc(static_cast<size_t>(kDirectAlign), static_cast<size_t>(bytes_))));
      CHECK(memory_ != nullptr);
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory_;
  int64_t bytes_ = 0;
};

struct Finding {
  size_t item;
  int64_t begin;
  ScanFinding found;
};

// A group whose bytes are on their way.
struct Fetch {
  const LoadGroup* group = nullptr;
  bool is_cached = false;  // by the system: nothing is on its way
  DirectBuffer memory;
  ReadBatch batch;  // last: ends before the memory goes
};

// What one thread has for itself.
struct Worker {
  DirectBuffer panels;
  DirectBuffer copies;           // of groups that the system has: one, which stays in the cache
  std::array<Fetch, 2> fetches;  // one on its way while the other is packed
  int64_t num_fetches = 0;       // begun
  std::vector<Finding> findings;
};

// Asks the queue for what the group needs, unless the system has it: that is copied right before it
// is packed.
void Begin(const LoadGroup& group, bool direct, ReadQueue& queue, Fetch* fetch) {
  fetch->group = &group;
  fetch->is_cached = std::all_of(group.reads.begin(), group.reads.end(), [](const LoadRead& read) {
    return read.source->IsCached(read.offset, read.bytes);
  });
  if (fetch->is_cached) return;
  uint8_t* const buffer = fetch->memory.Get(group.buffer_bytes);
  std::vector<FileRead>& reads = fetch->batch.reads();
  reads.clear();
  for (const LoadRead& read : group.reads) {
    if (!direct || read.again || read.bytes < kSmallRead) {
      reads.push_back({.file = read.source,
                       .offset = read.offset,
                       .out = {buffer + read.at, static_cast<size_t>(read.bytes)}});
      continue;
    }
    const int64_t before = read.offset % kDirectAlign;
    reads.push_back({.file = read.source,
                     .offset = read.offset - before,
                     .out = {buffer + read.at - before,
                             static_cast<size_t>(RoundUp(before + read.bytes))},
                     .direct = true});
  }
  queue.Start(fetch->batch);
}

}  // namespace

// One run of Load.
class PackedLoader {
 public:
  PackedLoader(const Checkpoint& checkpoint, const PackOptions& options, PackedWeights* out)
      : checkpoint_(checkpoint),
        options_(options),
        out_(*out),
        matrices_(PackedMatrices(out->weights_)),
        pieces_(out->layout_.Cut(kPieceBytes)) {
    for (const Matrix* m : matrices_) {
      const size_t codes = checkpoint.ItemAt(m->data);
      sources_.push_back({m, codes, m->scale == nullptr ? codes : checkpoint.ItemAt(m->scale)});
    }
  }

  Status Run() {
    DI_RETURN_IF_ERROR(OpenCache());
    const PackedLayout& layout = out_.layout_;
    DI_ASSIGN_OR_RETURN(out_.memory_,
                        LargeBlock::Allocate(options_.keep_experts ? layout.image_bytes()
                                                                   : layout.routed_experts_begin(),
                                             "packed weights"));
    const MonotonicTime start = options_.clock->Now();
    DI_RETURN_IF_ERROR(ReadCache());
    const MonotonicTime middle = options_.clock->Now();
    out_.times_.cache_s = Seconds(middle - start);
    DI_RETURN_IF_ERROR(ReadSource());
    DI_RETURN_IF_ERROR(FinishCache());
    out_.times_.source_s = Seconds(options_.clock->Now() - middle);
    return Judge();
  }

 private:
  using Task = std::function<Status(int64_t index, Worker& worker)>;

  // The cache is a help: without it the checkpoint is read. Unless the experts are to stay in it.
  Status CacheTrouble(const Status& status, std::string_view consequence) {
    if (status.ok()) return status;
    if (!options_.keep_experts) return Annotate(status, "weights cache");
    LogWarning("weights cache: ", MessageOf(status), "; ", consequence);
    return OkStatus();
  }

  Status OpenCache() {
    if (options_.cache_directory.empty()) {
      CHECK(options_.keep_experts);
      return OkStatus();
    }
    DI_ASSIGN_OR_RETURN(const Sha256Digest key, WeightsCacheKey(checkpoint_.files(), out_.layout_));
    StatusOr<std::unique_ptr<WeightsCache>> cache =
        WeightsCache::Open(*options_.disk, options_.cache_directory, key, pieces_, options_.scan);
    if (cache.ok()) cache_ = std::move(*cache);
    return CacheTrouble(cache.status(), "weights are packed from the checkpoint, nothing is kept");
  }

  Status FinishCache() {
    if (cache_ == nullptr || is_damaged_) return OkStatus();
    const Status status = cache_->Finish(LooksAtPlainItems());
    if (status.ok() && cache_->is_complete()) out_.image_file_ = cache_->image();
    return CacheTrouble(status, "the next start packs the weights again");
  }

  // Tasks in order of index, on all threads; `finish` on each when none is left. Errors: the first
  // that came.
  Status ForEach(int64_t count, const Task& task,
                 const std::function<Status(Worker& worker)>& finish = {}) {
    std::atomic<int64_t> next{0};
    std::atomic<bool> failed{false};
    std::mutex mutex;  // of `first` and findings_
    Status first;
    const auto caller = std::this_thread::get_id();
    const auto work = [&](int64_t, int64_t) {
      Worker worker;
      const auto note = [&](const Status& status) {
        if (status.ok()) return;
        std::lock_guard lock(mutex);
        if (!failed.exchange(true)) first = status;
      };
      for (int64_t i; !failed && (i = next.fetch_add(1)) < count;) {
        note(task(i, worker));
        if (std::this_thread::get_id() == caller) ReportProgress();
      }
      if (!failed && finish) note(finish(worker));
      if (std::this_thread::get_id() == caller) ReportProgress();
      std::lock_guard lock(mutex);
      findings_.insert(findings_.end(), worker.findings.begin(), worker.findings.end());
    };
    if (options_.pool != nullptr) {
      options_.pool->ParallelFor(options_.pool->num_threads(), 1, work);
    } else {
      work(0, 1);
    }
    return first;
  }

  void ReportProgress() {
    if (options_.progress && total_bytes_ > 0) options_.progress(done_bytes_, total_bytes_);
  }

  bool InMemory(const PackedPiece& piece) const { return piece.range.offset < out_.num_bytes(); }

  // Pieces [first, end) of the cache, side by side.
  struct CachedRun {
    int32_t first, end;
  };

  // What the cache has and memory needs. A piece that stays in a whole cache is believed: to look
  // at all of them would take as long as loading them.
  std::vector<CachedRun> CachedRuns() {
    std::vector<CachedRun> runs;
    int64_t run_begin = 0;
    for (int32_t i = 0; i < std::ssize(pieces_); ++i) {
      const PackedPiece& piece = pieces_[static_cast<size_t>(i)];
      if (!cache_->Has(i)) continue;
      if (cache_->was_complete() && !InMemory(piece)) {
        AddUnusual(i, &findings_);
        continue;
      }
      total_bytes_ += piece.range.bytes;
      const bool joins = !runs.empty() && runs.back().end == i &&
                         piece.range.end() - run_begin <= kRunBytes &&
                         InMemory(piece) == InMemory(pieces_[static_cast<size_t>(i) - 1]);
      if (!joins) {
        runs.push_back({i, i});
        run_begin = piece.range.offset;
      }
      runs.back().end = i + 1;
    }
    return runs;
  }

  Status ReadCache() {
    if (cache_ == nullptr) return OkStatus();
    const std::vector<CachedRun> runs = CachedRuns();
    std::atomic<int64_t> num_damaged{0};
    DI_RETURN_IF_ERROR(ForEach(std::ssize(runs), [&](int64_t i, Worker& worker) {
      num_damaged += ReadRun(runs[static_cast<size_t>(i)], worker);
      return OkStatus();
    }));
    if (num_damaged == 0) return OkStatus();
    LogWarning("weights cache: ", cache_->image().path, ": ", num_damaged.load(), " of ",
               std::ssize(pieces_),
               " pieces are damaged; they are packed again from the checkpoint");
    return OkStatus();
  }

  // Returns how many of its pieces are damaged.
  int64_t ReadRun(const CachedRun& run, Worker& worker) {
    const PackedRange& first = pieces_[static_cast<size_t>(run.first)].range;
    const PackedRange& last = pieces_[static_cast<size_t>(run.end) - 1].range;
    const PackedRange range = {first.offset, RoundUp(last.end()) - first.offset};
    uint8_t* const to = range.offset < out_.num_bytes() ? out_.memory_.data() + range.offset
                                                        : worker.panels.Get(range.bytes);
    const bool was_read = cache_->Read(range, {to, static_cast<size_t>(range.bytes)}).ok();
    int64_t num_damaged = 0;
    for (int32_t i = run.first; i < run.end; ++i) {
      const PackedRange& piece = pieces_[static_cast<size_t>(i)].range;
      const uint8_t* const bytes = to + piece.offset - range.offset;
      if (!was_read) cache_->Forget(i);
      const bool good = was_read && cache_->Check(i, {bytes, static_cast<size_t>(piece.bytes)});
      if (good) {
        cache_bytes_ += piece.bytes;
        AddUnusual(i, &worker.findings);
      }
      num_damaged += !good;
      done_bytes_ += piece.bytes;
    }
    return num_damaged;
  }

  // What was found in the scales when the piece was packed.
  void AddUnusual(int32_t index, std::vector<Finding>* findings) {
    const uint32_t num_unusual = cache_->NumUnusual(index);
    if (num_unusual == 0) return;
    const PackedPiece& piece = pieces_[static_cast<size_t>(index)];
    findings->push_back({sources_[static_cast<size_t>(piece.entry)].scales,
                         piece.first_panel,
                         {.num_unusual = num_unusual}});
  }

  Status ReadSource() {
    std::vector<int32_t> wanted;
    for (int32_t i = 0; i < std::ssize(pieces_); ++i) {
      const bool there = cache_ != nullptr && cache_->Has(i);
      const bool useful = cache_ != nullptr || InMemory(pieces_[static_cast<size_t>(i)]);
      if (!there && useful) wanted.push_back(i);
    }
    const std::vector<LoadGroup> groups =
        PlanLoad(checkpoint_.items(), sources_, pieces_, wanted, PlainItems());
    for (const LoadGroup& group : groups) total_bytes_ += group.source_bytes;
    ReadQueue queue(kReaders);
    return ForEach(
        std::ssize(groups),
        [&](int64_t i, Worker& worker) {
          Begin(groups[static_cast<size_t>(i)], options_.direct, queue,
                &worker.fetches[worker.num_fetches++ % 2]);
          return worker.num_fetches == 1 ? OkStatus()
                                         : Take(worker.fetches[worker.num_fetches % 2], worker);
        },
        [&](Worker& worker) {
          return worker.num_fetches == 0
                     ? OkStatus()
                     : Take(worker.fetches[(worker.num_fetches - 1) % 2], worker);
        });
  }

  Status Take(Fetch& fetch, Worker& worker) {
    const LoadGroup& group = *fetch.group;
    DirectBuffer& memory = fetch.is_cached ? worker.copies : fetch.memory;
    uint8_t* const buffer = memory.Get(group.buffer_bytes);
    DI_RETURN_IF_ERROR(fetch.is_cached ? Copy(group, buffer) : fetch.batch.Wait());
    for (const LoadPiece& piece : group.pieces) {
      DI_RETURN_IF_ERROR(TakePiece(piece, buffer, worker));
    }
    source_bytes_ += group.source_bytes;
    done_bytes_ += group.source_bytes;
    return OkStatus();
  }

  static Status Copy(const LoadGroup& group, uint8_t* buffer) {
    for (const LoadRead& read : group.reads) {
      DI_RETURN_IF_ERROR(read.source->ReadAt(
          read.offset, {buffer + read.at, static_cast<size_t>(read.bytes)}));
    }
    return OkStatus();
  }

  // Whether tensors that are not packed have to be looked at: not again if the cache says that
  // they were. Pieces do not say it: a run may have ended between them and the rest.
  bool LooksAtPlainItems() const {
    return options_.scan && (cache_ == nullptr || !cache_->plain_was_scanned());
  }

  std::vector<size_t> PlainItems() const {
    if (!LooksAtPlainItems()) return {};
    std::vector<bool> packed(checkpoint_.items().size());
    for (const MatrixSource& source : sources_) packed[source.codes] = packed[source.scales] = true;
    std::vector<size_t> plain;
    for (size_t i = 0; i < packed.size(); ++i) {
      if (!packed[i]) plain.push_back(i);
    }
    return plain;
  }

  // Looks at a part of a tensor. Returns what it found.
  ScanFinding Look(const LoadPart& part, const uint8_t* buffer, Worker& worker) {
    const Dtype dtype = checkpoint_.items()[part.item].spec->dtype;
    if (part.begin == part.end || (!options_.scan && dtype != Dtype::kF8E8m0)) return {};
    ScanFinding found =
        ScanBytes(dtype, {buffer + part.at, static_cast<size_t>(part.end - part.begin)});
    if (!options_.scan) found.first_bad = ScanFinding::kNone;
    worker.findings.push_back({part.item, part.begin, found});
    if (found.first_bad != ScanFinding::kNone) is_damaged_ = true;
    return found;
  }

  Status TakePiece(const LoadPiece& part, const uint8_t* buffer, Worker& worker) {
    const ScanFinding codes = Look(part.codes, buffer, worker);
    const ScanFinding scales = Look(part.scales, buffer, worker);
    if (part.piece == LoadPiece::kNone) return OkStatus();
    const PackedPiece& piece = pieces_[static_cast<size_t>(part.piece)];
    Matrix rows = *matrices_[static_cast<size_t>(piece.entry)];
    rows.rows = std::min(rows.rows - piece.first_panel * kPanelRows, piece.num_panels * kPanelRows);
    rows.data = buffer + part.codes.at;
    rows.scale = buffer + part.scales.at;
    uint8_t* const to = InMemory(piece) ? out_.memory_.data() + piece.range.offset
                                        : worker.panels.Get(piece.range.bytes);
    PackPanels(rows, 0, piece.num_panels, to);
    const bool good =
        codes.first_bad == ScanFinding::kNone && scales.first_bad == ScanFinding::kNone;
    if (cache_ == nullptr || !good) return OkStatus();
    return CacheTrouble(cache_->Write(part.piece, {to, static_cast<size_t>(piece.range.bytes)},
                                      static_cast<uint32_t>(scales.num_unusual)),
                        "nothing is kept");
  }

  // Adds the findings up and hands out the panels.
  Status Judge() {
    std::sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
      return std::tie(a.item, a.begin) < std::tie(b.item, b.begin);
    });
    ScanTally tally(checkpoint_.items());
    for (const Finding& f : findings_) tally.Add(f.item, f.begin, f.found);
    StatusOr<ScanReport> report = tally.Finish();
    if (!report.ok()) return Annotate(report.status(), checkpoint_.directory());
    out_.scan_ = std::move(*report);
    out_.scan_.done = LooksAtPlainItems();
    if (options_.scan) ReportUnusual(out_.scan_);
    for (size_t i = 0; i < matrices_.size(); ++i) {
      const PackedRange& range = out_.layout_.entries()[i];
      matrices_[i]->usual_scales = out_.scan_.has_unusual[sources_[i].scales] == 0;
      if (range.offset >= out_.num_bytes()) continue;
      if (matrices_[i]->usual_scales) {
        matrices_[i]->panels = out_.memory_.data() + range.offset;
      } else {
        ::madvise(out_.memory_.data() + range.offset, static_cast<size_t>(RoundUp(range.bytes)),
                  MADV_DONTNEED);
      }
    }
    out_.times_.cache_bytes = cache_bytes_;
    out_.times_.source_bytes = source_bytes_;
    return OkStatus();
  }

  const Checkpoint& checkpoint_;
  const PackOptions& options_;
  PackedWeights& out_;
  const std::vector<Matrix*> matrices_;
  const std::vector<PackedPiece> pieces_;
  std::vector<MatrixSource> sources_;  // by matrix
  std::unique_ptr<WeightsCache> cache_;
  std::vector<Finding> findings_;
  std::atomic<bool> is_damaged_{false};
  std::atomic<int64_t> done_bytes_{0}, cache_bytes_{0}, source_bytes_{0};
  int64_t total_bytes_ = 0;
};

StatusOr<std::unique_ptr<PackedWeights>> PackedWeights::Load(const Checkpoint& checkpoint,
                                                             const PackOptions& options) {
  std::unique_ptr<PackedWeights> packed(new PackedWeights(checkpoint.weights()));
  DI_RETURN_IF_ERROR(PackedLoader(checkpoint, options, packed.get()).Run());
  return packed;
}

}  // namespace deepinfer
