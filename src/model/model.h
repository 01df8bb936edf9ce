// model/model.h: DeepSeek-V4.1-Flash: one forward pass over ragged rows, and the draft's proposal.
//
// The same code computes whole prompts, chunks, replays, verifications and single tokens: a row's
// result depends on its own sequence alone, never on what else is in the pass or how the prompt was
// cut. Layers follow model.md 3 in paper order (attention.cc, feed_forward.cc, memory.cc,
// draft.cc). Threads: the step loop only. Owns scratch that grows to the largest pass seen, or is
// taken ahead by Reserve().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "kernels/backend.h"
#include "kernels/indexer/indexer.h"
#include "model/config.h"
#include "model/engram_hash.h"
#include "model/engram_source.h"
#include "model/expert_source.h"
#include "model/forward_batch.h"
#include "model/weights.h"

namespace deepinfer {

struct ModelOptions {
  Backend backend;
  IndexScores index_scores = IndexScores::kOfficial;
  // Where weights come from that are not in memory as a whole; null: from `weights`, as they are.
  // They outlive the model.
  EngramSource* engram_source = nullptr;
  ExpertSource* expert_source = nullptr;
  // What choosing index entries may take of memory on the CPU, over all threads, however long the
  // context: longer ones are chosen from in tiles, with the same result.
  int64_t index_scratch_bytes = int64_t{64} << 20;
};

// The largest passes that are to come.
struct ReserveShape {
  int32_t max_rows = 0;            // of a pass
  int32_t max_logits_rows = 0;     // of a pass that ask for logits
  int32_t max_draft_requests = 0;  // of a Propose
  int32_t max_context = 0;         // positions of a sequence
};

// What decides about scratch besides the shapes.
struct ScratchOptions {
  VariantId variant = kCpuVariant;  // of which only the fast forms count
  int32_t num_threads = 1;
  int64_t index_scratch_bytes = ModelOptions().index_scratch_bytes;
  bool expert_rounds = false;  // experts come from an ExpertSource
};

// What a model takes besides weights and KV for passes of some shape.
struct ScratchPlan {
  int64_t rows_bytes = 0;     // arrays with a row for each of the pass
  int64_t threads_bytes = 0;  // of the threads that run ops; of all threads together
  int64_t index_bytes = 0;    // the part of threads_bytes that choosing index entries uses
  int64_t total_bytes() const { return rows_bytes + threads_bytes; }
};

// One drafting sequence: `anchor` was sampled for `position` and is not in any cache yet.
// Requires: positions below `position` were run through Forward with their rows in the decoder.
struct DraftRequest {
  SequenceKv* kv = nullptr;
  int32_t anchor = 0;
  int32_t position = 0;
};

// g = dspark_block_size proposals for positions position + 1 ... position + g.
struct Draft {
  std::vector<int32_t> tokens;  // [g]
  // [g] logits over the config's temperatures; sigmoid = P(accepted | earlier ones accepted).
  std::vector<float> confidences;
};

// Chooses a draft token from corrected logits [V]; k = 0..g-1.
using DraftChooser =
    FunctionRef<int32_t(int32_t request, int32_t k, std::span<const float> logits)>;

class Model {
 public:
  // `weights` and what they view outlive the model. token_classes: [vocab_size], empty if config
  // has no engram.
  Model(const ModelConfig& config, const ModelWeights& weights, std::vector<int32_t> token_classes,
        const ModelOptions& options);
  ~Model();

  const ModelConfig& config() const;
  const KvShape& kv_shape() const;

  // What Reserve would take, without what the sources of weights take.
  static ScratchPlan PlanScratch(const ModelConfig& config, const ScratchOptions& options,
                                 const ReserveShape& shape);
  // Rows of an engram table in the largest pass of this shape.
  static int64_t MaxEngramRows(const ModelConfig& config, const ReserveShape& shape);
  // Takes all scratch for passes up to this shape, so that none of them allocates; the sources of
  // weights do the same. Requires: called on the thread that is to run the passes; a part of the
  // scratch belongs to threads.
  void Reserve(const ReserveShape& shape);

  // Runs the pass, updates every segment's KV, and returns logits [rows that asked, V], in row
  // order; the memory is valid until the next call. `observer` may be null.
  // Errors: as the sources of ModelOptions, never without one. What the pass has written to its
  // sequences' KV is then useless; other sequences and later passes are not touched. The same rows
  // may run again where they are at most verify_width: these overwrite nothing that they read.
  StatusOr<std::span<const float>> Forward(const ForwardBatch& batch,
                                           ForwardObserver* observer = nullptr);

  // Proposes for several sequences at once into `drafts`, one a request, whose memory is reused.
  // Requires: the config has draft blocks.
  // Errors: as Forward; KV is not touched.
  Status Propose(std::span<const DraftRequest> requests, DraftChooser choose,
                 std::span<Draft> drafts);
  // The same with memory of its own.
  StatusOr<std::vector<Draft>> Propose(std::span<const DraftRequest> requests, DraftChooser choose);

  // Test instrument: writes draft KV rows for positions [begin, begin + rows) of a sequence from
  // given main_hidden [rows, targets * D], as Forward does from its own.
  void WriteDraftRows(SequenceKv* kv, int32_t begin, int32_t rows, const bf16* main_hidden);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deepinfer
