#include "engine/engine_instance.h"

#include "engine/start_plan.h"

namespace deepinfer {
namespace {

// See EngineCoreOptions::min_pass_time.
ForwardFn ForwardOf(Model* model, Duration min_pass_time) {
  if (min_pass_time <= Duration::zero()) {
    return [model](const ForwardBatch& batch) { return model->Forward(batch); };
  }
  return [model, min_pass_time](const ForwardBatch& batch) {
    const MonotonicTime start = RealClock().Now();
    auto logits = model->Forward(batch);
    RealClock().SleepUntil(start + min_pass_time);
    return logits;
  };
}

}  // namespace

StatusOr<std::unique_ptr<EngineInstance>> EngineInstance::Create(const InstanceParts& parts,
                                                                 const EngineCoreOptions& options,
                                                                 const KvMemorySizes& sizes) {
  auto instance = std::unique_ptr<EngineInstance>(new EngineInstance());
  instance->model_ = std::make_unique<Model>(
      *parts.config, *parts.weights, *parts.token_classes,
      ModelOptions{.backend = {.variant = parts.variant, .threads = parts.threads},
                   .engram_source = parts.engram_source,
                   .expert_source = parts.expert_source,
                   .index_scratch_bytes = parts.index_scratch_bytes});
  Model* const model = instance->model_.get();
  const ReserveShape shape = ScratchShape(options.scheduler);
  DI_ASSIGN_OR_RETURN(instance->memory_, KvMemory::Create(model->kv_shape(), sizes));
  instance->core_ = std::make_unique<EngineCore>(
      EngineBackend{.forward = ForwardOf(model, options.min_pass_time),
                    .prepare = [model, shape] { model->Reserve(shape); },
                    .threads = parts.threads,
                    .memory = instance->memory_.get(),
                    .drafter = parts.drafter,
                    .grammars = parts.grammars,
                    .tokenizer = parts.tokenizer,
                    .rng = parts.rng,
                    .clock = &RealClock(),
                    .vocab_size = parts.config->vocab_size,
                    .eos_id = parts.config->eos_token_id,
                    .model_fingerprint = parts.fingerprint},
      options);
  return instance;
}

}  // namespace deepinfer
