#include "apps/load_bench.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "apps/answer_collector.h"
#include "base/cpu_topology.h"
#include "base/large_block.h"
#include "base/process_memory.h"
#include "base/progress.h"
#include "base/system_cache.h"
#include "base/thread_pool.h"

namespace deepinfer {
namespace {

constexpr int64_t kChunkBytes = int64_t{4} << 20;
constexpr int kMaxRounds = 10;
constexpr double kMaxSeconds = 15;

// Until the weights are ready.
double WeightSeconds(const LoadTimes& times) {
  return times.headers_s + times.weights.cache_s + times.weights.source_s;
}

// The files and the state of the system's cache that both the load and its ceiling start from.
class Files {
 public:
  Files(Disk& disk, std::vector<std::string> paths, bool cold)
      : disk_(disk), paths_(std::move(paths)), cold_(cold) {}

  // Drops the files from the system's cache, or reads them into it.
  Status Prepare() const {
    std::vector<uint8_t> buffer(static_cast<size_t>(kChunkBytes));
    for (const std::string& path : paths_) {
      if (cold_) {
        DropFromSystemCache(path);
        continue;
      }
      DI_ASSIGN_OR_RETURN(const auto file, disk_.OpenRead(path));
      for (int64_t at = 0; at < file->size(); at += kChunkBytes) {
        DI_RETURN_IF_ERROR(file->ReadAt(at, std::span(buffer).first(static_cast<size_t>(
                                                std::min(kChunkBytes, file->size() - at)))));
      }
    }
    return OkStatus();
  }

  StatusOr<int64_t> NumBytes() const {
    int64_t bytes = 0;
    for (const std::string& path : paths_) {
      DI_ASSIGN_OR_RETURN(const auto file, disk_.OpenRead(path));
      bytes += file->size();
    }
    return bytes;
  }

  // Bytes a second of reading everything in order, into freshly mapped memory or into memory in
  // use.
  StatusOr<double> Ceiling(bool fresh, ThreadPool& pool, Clock& clock) const {
    DI_RETURN_IF_ERROR(Prepare());
    std::vector<std::unique_ptr<ReadableFile>> files;
    std::vector<Chunk> chunks;
    int64_t bytes = 0, places = 0;
    for (const std::string& path : paths_) {
      DI_ASSIGN_OR_RETURN(files.emplace_back(), disk_.OpenRead(path));
      for (int64_t at = 0; at < files.back()->size(); at += kChunkBytes, ++places) {
        chunks.push_back({files.back().get(), at, places * kChunkBytes});
      }
      bytes += files.back()->size();
    }
    const int64_t room = fresh ? places : pool.num_threads();
    DI_ASSIGN_OR_RETURN(const LargeBlock memory,
                        LargeBlock::Allocate(room * kChunkBytes, "what is read"));
    if (!fresh) std::fill_n(memory.data(), memory.num_bytes(), uint8_t{1});
    const MonotonicTime start = clock.Now();
    DI_RETURN_IF_ERROR(ReadAll(chunks, fresh, memory, pool));
    return static_cast<double>(bytes) / Seconds(clock.Now() - start);
  }

 private:
  struct Chunk {
    const ReadableFile* file;
    int64_t offset, place;  // in the file; in fresh memory
  };

  static Status ReadAll(const std::vector<Chunk>& chunks, bool fresh, const LargeBlock& memory,
                        ThreadPool& pool) {
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    Status failure;
    pool.ParallelFor(pool.num_threads(), 1, [&](int64_t thread, int64_t) {
      for (int64_t i; (i = next.fetch_add(1)) < std::ssize(chunks);) {
        const Chunk& chunk = chunks[static_cast<size_t>(i)];
        uint8_t* const to = memory.data() + (fresh ? chunk.place : thread * kChunkBytes);
        const int64_t pages = (chunk.file->size() - chunk.offset + kDirectAlign - 1) / kDirectAlign;
        const auto size = static_cast<size_t>(std::min(kChunkBytes, pages * kDirectAlign));
        const Status status = chunk.file->ReadDirect(chunk.offset, {to, size});
        std::lock_guard lock(mutex);
        if (failure.ok()) failure = status;
      }
    });
    return failure;
  }

  Disk& disk_;
  const std::vector<std::string> paths_;
  const bool cold_;
};

// What a load with these flags reads. Makes the weights cache if it is to be read.
StatusOr<std::vector<std::string>> FilesOf(const EngineFlags& flags,
                                           const CommandContext& context) {
  DI_ASSIGN_OR_RETURN(const auto engine, LoadWithProgress(flags, context));
  if (!flags.engine.weights_cache.empty()) {
    const PackedWeights* const packed = engine->packed_weights();
    if (packed == nullptr || !packed->image_file()) {
      return FailedPrecondition(flags.engine.weights_cache, ": no whole weights cache; see above");
    }
    return std::vector<std::string>{packed->image_file()->path};
  }
  std::vector<std::string> paths;
  for (const std::string& name : engine->checkpoint().file_names()) {
    paths.push_back(StrCat(engine->info().model_directory, "/", name));
  }
  return paths;
}

// Loads; keeps the times if they are the best so far.
Status LoadOnce(const EngineFlags& flags, const CommandContext& context, LoadBench* bench) {
  ForgetPeakResidentBytes();
  DI_ASSIGN_OR_RETURN(const auto engine, LoadWithProgress(flags, context));
  bench->peak_resident_bytes = PeakResidentBytes();
  bench->resident_bytes = ResidentBytes();
  bench->weight_bytes = engine->checkpoint().census().total.num_bytes;
  const LoadTimes& times = engine->load_times();
  if (bench->num_rounds++ == 0 || WeightSeconds(times) < bench->LoadSeconds()) {
    bench->times = times;
  }
  return OkStatus();
}

}  // namespace

double LoadBench::LoadSeconds() const { return WeightSeconds(times); }

StatusOr<LoadBench> BenchLoad(const EngineFlags& flags, bool cold, const CommandContext& context) {
  DI_ASSIGN_OR_RETURN(std::vector<std::string> paths, FilesOf(flags, context));
  const Files files(context.disk, std::move(paths), cold);
  LoadBench bench{.cold = cold, .from_cache = !flags.engine.weights_cache.empty()};
  bench.num_threads = flags.engine.num_threads > 0 ? flags.engine.num_threads : DefaultNumThreads();
  ThreadPool pool(bench.num_threads);
  DI_ASSIGN_OR_RETURN(bench.file_bytes, files.NumBytes());
  const MonotonicTime start = context.clock.Now();
  while (bench.num_rounds == 0 ||
         (bench.num_rounds < kMaxRounds && Seconds(context.clock.Now() - start) < kMaxSeconds)) {
    DI_ASSIGN_OR_RETURN(const double fresh, files.Ceiling(true, pool, context.clock));
    double ceiling = fresh;
    if (cold) {
      DI_ASSIGN_OR_RETURN(ceiling, files.Ceiling(false, pool, context.clock));
    }
    bench.fresh_ceiling_bytes_per_s = std::max(bench.fresh_ceiling_bytes_per_s, fresh);
    bench.ceiling_bytes_per_s = std::max(bench.ceiling_bytes_per_s, ceiling);
    DI_RETURN_IF_ERROR(files.Prepare());
    DI_RETURN_IF_ERROR(LoadOnce(flags, context, &bench));
  }
  return bench;
}

std::string LoadTable(const LoadBench& bench) {
  char text[640];
  const auto mb = [](int64_t bytes) { return static_cast<double>(bytes) * 1e-6; };
  std::snprintf(
      text, sizeof text,
      "%s, %s, %d threads, best of %d: %.1f MB read in %.3f s, %.2f GB/s\n"
      "  headers %.3f s, from the cache %.3f s, read+checked+packed %.3f s, rest %.3f s\n"
      "  ceiling %.2f GB/s (%s), fraction %.2f; into fresh memory %.2f GB/s, fraction %.2f\n"
      "  resident %.1f MB, at most %.1f MB; weights %.1f MB\n",
      bench.from_cache ? "weights cache" : "checkpoint", bench.cold ? "cold" : "warm",
      bench.num_threads, bench.num_rounds, mb(bench.read_bytes()), bench.LoadSeconds(),
      bench.BytesPerSecond() * 1e-9, bench.times.headers_s, bench.times.weights.cache_s,
      bench.times.weights.source_s, bench.times.total_s - bench.LoadSeconds(),
      bench.ceiling_bytes_per_s * 1e-9,
      bench.cold ? "direct reads of the same files" : "pread into fresh memory", bench.Fraction(),
      bench.fresh_ceiling_bytes_per_s * 1e-9, bench.FreshFraction(), mb(bench.resident_bytes),
      mb(bench.peak_resident_bytes), mb(bench.weight_bytes));
  return text;
}

std::string LoadJson(const LoadBench& bench) {
  JsonValue out = JsonValue::Object();
  out.Set("from_cache", JsonValue{.kind = JsonValue::Kind::kBool, .boolean = bench.from_cache});
  out.Set("cold", JsonValue{.kind = JsonValue::Kind::kBool, .boolean = bench.cold});
  out.Set("threads", JsonNumber(int64_t{bench.num_threads}));
  out.Set("rounds", JsonNumber(int64_t{bench.num_rounds}));
  out.Set("load_fraction", JsonNumber(bench.Fraction()));
  out.Set("load_bytes_per_s", JsonNumber(bench.BytesPerSecond()));
  out.Set("ceiling_bytes_per_s", JsonNumber(bench.ceiling_bytes_per_s));
  out.Set("fresh_fraction", JsonNumber(bench.FreshFraction()));
  out.Set("fresh_ceiling_bytes_per_s", JsonNumber(bench.fresh_ceiling_bytes_per_s));
  out.Set("read_bytes", JsonNumber(bench.read_bytes()));
  out.Set("file_bytes", JsonNumber(bench.file_bytes));
  out.Set("weight_bytes", JsonNumber(bench.weight_bytes));
  out.Set("headers_s", JsonNumber(bench.times.headers_s));
  out.Set("cache_s", JsonNumber(bench.times.weights.cache_s));
  out.Set("source_s", JsonNumber(bench.times.weights.source_s));
  out.Set("total_s", JsonNumber(bench.times.total_s));
  out.Set("resident_bytes", JsonNumber(bench.resident_bytes));
  out.Set("peak_resident_bytes", JsonNumber(bench.peak_resident_bytes));
  return DumpJson(out) + "\n";
}

}  // namespace deepinfer
