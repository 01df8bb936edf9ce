// kernels/cpu/scratch_sizes.h: what the fast CPU forms take of their threads' scratch, for a plan.
//
// Ops that are not listed take none, and the oracle's forms are not counted: they take what they
// want from the heap. Of the params only sizes are looked at, never pointers. `variant`: a fast
// one.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/backend.h"
#include "kernels/cpu/scratch.h"
#include "kernels/experts/experts.h"
#include "kernels/hyper_connection/hyper_connection.h"
#include "kernels/indexer/indexer.h"
#include "kernels/linear/linear.h"
#include "kernels/router/router.h"
#include "kernels/sparse_attention/sparse_attention.h"

namespace deepinfer {

// With weights in panels or not, and whatever their scales.
ScratchBytes LinearsScratchBytes(VariantId variant, std::span<const LinearParams> products);
ScratchBytes ExpertsScratchBytes(VariantId variant, WeightFormat format,
                                 const ExpertsParams& params);
ScratchBytes CombineScratchBytes(const CombineParams& params);
ScratchBytes HyperMixScratchBytes(const HyperMixParams& params);
// max_visible: the largest num_visible.
ScratchBytes IndexSelectScratchBytes(int32_t num_threads, const IndexSelectParams& params,
                                     int32_t max_visible);
ScratchBytes RouterScratchBytes(const RouterParams& params);
// num_slots: of a row: window, selection and, in a draft block, the block's rows.
ScratchBytes SparseAttentionScratchBytes(VariantId variant, const SparseAttentionParams& params,
                                         int32_t num_slots);

}  // namespace deepinfer
