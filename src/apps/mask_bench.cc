#include "apps/mask_bench.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "apps/bench_service.h"
#include "apps/bench_traffic.h"
#include "base/cpu_time.h"

namespace deepinfer {
namespace {

class TimedConstraint : public TokenConstraint {
 public:
  explicit TimedConstraint(double seconds) : seconds_(seconds) {}

  bool FillMask(std::span<uint32_t> mask) override {
    const double end = ThreadCpuSeconds() + seconds_;
    std::fill(mask.begin(), mask.end(), ~0u);
    while (ThreadCpuSeconds() < end) {
    }
    return true;
  }
  bool Accept(int32_t) override { return true; }
  void Rollback(int32_t) override {}

 private:
  const double seconds_;
};

// The text of a "grammar" is its kind: "slow" or "quick".
class TimedConstraints : public ConstraintSource {
 public:
  void Build(const StructuredOutput& structured, Done done) override {
    const double seconds =
        structured.text == "slow" ? kSlowMaskBenchSeconds : kQuickMaskBenchSeconds;
    done(ConstraintMaker([seconds] { return std::make_unique<TimedConstraint>(seconds); }));
  }
};

class MaskBench {
 public:
  MaskBench(LoadedEngine& loaded, const MaskBenchOptions& options, Clock& clock, Rng& rng)
      : loaded_(loaded), options_(options), clock_(clock), rng_(rng) {}

  StatusOr<MaskFigures> Run() {
    DI_ASSIGN_OR_RETURN(instance_, loaded_.NewInstance(loaded_.core_options(), loaded_.kv_sizes(),
                                                       nullptr, &constraints_));
    const int32_t most = loaded_.core_options().scheduler.max_num_seqs;
    MaskFigures figures{.num_requests = std::min(options_.num_requests, most)};
    std::vector<double> free_s, slow_s, quick_s, slow_request_s;
    for (int32_t round = 0; round <= options_.rounds; ++round) {  // the first does not count
      DI_ASSIGN_OR_RETURN(const Times free, Serve("", ""));
      DI_ASSIGN_OR_RETURN(const Times slow, Serve("", "slow"));
      DI_ASSIGN_OR_RETURN(const Times quick, Serve("quick", "quick"));
      if (round == 0) continue;
      free_s.push_back(free.others);
      slow_s.push_back(slow.others);
      quick_s.push_back(quick.others);
      slow_request_s.push_back(slow.last);
      figures.slow_late = slow.late;
      figures.quick_late = quick.late;
    }
    figures.free_s = Median(free_s);
    figures.slow_s = Median(slow_s);
    figures.quick_s = Median(quick_s);
    figures.slow_request_s = Median(slow_request_s);
    return figures;
  }

 private:
  struct Times {
    double others = 0, last = 0;  // seconds an output token
    int64_t late = 0;
  };

  Request Ask(const std::string& grammar, int32_t num_tokens) {
    Request request =
        FixedRequest(DrawIds(options_.prompt_tokens, loaded_.info().vocab_size, rng_), num_tokens);
    if (!grammar.empty()) {
      request.structured = {.kind = StructuredOutput::Kind::kGrammar, .text = grammar};
    }
    return request;
  }

  // One request by the grammar `last`, the others by `others`.
  StatusOr<Times> Serve(const std::string& others, const std::string& last) {
    std::vector<Request> requests;
    const int32_t num =
        std::min(options_.num_requests, loaded_.core_options().scheduler.max_num_seqs);
    for (int32_t i = 1; i < num; ++i) requests.push_back(Ask(others, options_.decode_tokens));
    requests.push_back(Ask(last, options_.decode_tokens));
    const int64_t late = instance_->core().stats().masks_late;
    DI_ASSIGN_OR_RETURN(const Service service,
                        ServeAtOnce(instance_->core(), clock_, std::move(requests)));
    Times times{.last = service.requests.back().Tpot(),
                .late = instance_->core().stats().masks_late - late};
    for (int32_t i = 1; i < num; ++i) {
      times.others += service.requests[static_cast<size_t>(i - 1)].Tpot() / (num - 1);
    }
    return times;
  }

  LoadedEngine& loaded_;
  const MaskBenchOptions& options_;
  Clock& clock_;
  Rng& rng_;
  TimedConstraints constraints_;
  std::unique_ptr<EngineInstance> instance_;
};

}  // namespace

StatusOr<MaskFigures> BenchMasks(LoadedEngine& loaded, const MaskBenchOptions& options,
                                 Clock& clock, Rng& rng) {
  return MaskBench(loaded, options, clock, rng).Run();
}

}  // namespace deepinfer
