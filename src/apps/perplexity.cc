#include "apps/perplexity.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace deepinfer {

double PerplexityResult::perplexity() const {
  return std::exp(negative_log_likelihood / static_cast<double>(num_tokens));
}

StatusOr<PerplexityResult> MeasurePerplexity(EngineCore& core, std::span<const int32_t> tokens,
                                             const PerplexityOptions& options) {
  if (tokens.empty()) return InvalidArgument("the text has no tokens, expected at least one");
  const auto total = static_cast<int64_t>(tokens.size());
  const int64_t payload = options.window - 1;
  std::map<RequestId, int64_t> num_new;  // scored tokens of a window: its last ones
  std::map<RequestId, double> sums;  // added in window order, so that the result is reproducible
  PerplexityResult result;
  Status failed;
  const auto step = [&] {
    for (const Event& event : core.Step()) {
      if (const auto* ready = std::get_if<ReadyEvent>(&event)) {
        const auto& values = ready->prompt_logprobs;
        const int64_t count = num_new.at(ready->request);
        double sum = 0;
        for (auto i = std::ssize(values) - count; i < std::ssize(values); ++i) {
          sum -= values[static_cast<size_t>(i)].token.logprob;
        }
        sums[ready->request] = sum;
        if (options.progress) options.progress(count);
      } else if (const auto* failure = std::get_if<FailureEvent>(&event)) {
        if (failed.ok()) failed = DataLoss(failure->error.message);
      }
    }
  };
  for (int64_t begin = 0, scored = 0; scored < total; begin += options.stride) {
    const int64_t end = std::min(begin + payload, total);
    Request request{.max_tokens = 0, .prompt_logprobs = 0};
    request.prompt_ids = {options.bos_id};
    request.prompt_ids.insert(request.prompt_ids.end(), tokens.begin() + begin,
                              tokens.begin() + end);
    result.num_computed += std::ssize(request.prompt_ids);
    while (core.queue_room() == 0) step();
    DI_ASSIGN_OR_RETURN(const RequestId id, core.Submit(std::move(request)));
    num_new[id] = end - scored;
    scored = end;
  }
  while (core.HasWork()) step();
  DI_RETURN_IF_ERROR(failed);
  result.num_tokens = total;
  for (const auto& [id, sum] : sums) result.negative_log_likelihood += sum;
  return result;
}

}  // namespace deepinfer
