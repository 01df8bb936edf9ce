// model/mapped_experts.h: routed experts in a mapped file, whose pages the system brings in and
// drops.
#pragma once

#include <memory>

#include "model/expert_source.h"
#include "model/weights.h"

namespace deepinfer {

// Experts are used where `weights` has them; a fetch asks for the pages of their panels, so that
// they come in together and not fault by fault. `weights` outlives the source.
std::unique_ptr<ExpertSource> MakeMappedExperts(const ModelWeights& weights);

}  // namespace deepinfer
