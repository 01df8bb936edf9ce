// model/model.h: DeepSeek-V4.1-Flash: one forward pass over ragged rows, and the draft's proposal.
//
// The same code computes whole prompts, chunks, replays, verifications and single tokens: a row's
// result depends on its own sequence alone, never on what else is in the pass or how the prompt was
// cut. Layers follow model.md 3 in paper order (attention.cc, feed_forward.cc, memory.cc,
// draft.cc). Threads: the step loop only. Owns scratch that grows to the largest pass seen.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

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
  std::vector<int32_t> tokens;     // [g]
  std::vector<float> confidences;  // [g] logits; sigmoid = P(accepted | earlier ones accepted)
};

// Chooses a draft token from corrected logits [V]; k = 0..g-1.
using DraftChooser =
    std::function<int32_t(int32_t request, int32_t k, std::span<const float> logits)>;

class Model {
 public:
  // `weights` and what they view outlive the model. token_classes: [vocab_size], empty if config
  // has no engram.
  Model(const ModelConfig& config, const ModelWeights& weights, std::vector<int32_t> token_classes,
        const ModelOptions& options);
  ~Model();

  const ModelConfig& config() const;
  const KvShape& kv_shape() const;

  // Runs the pass, updates every segment's KV, and returns logits [rows that asked, V], in row
  // order; the memory is valid until the next call. `observer` may be null.
  // Errors: as the sources of ModelOptions, never without one. What the pass has written to its
  // sequences' KV is then useless; other sequences and later passes are not touched.
  StatusOr<std::span<const float>> Forward(const ForwardBatch& batch,
                                           ForwardObserver* observer = nullptr);

  // Proposes for several sequences at once. Requires: the config has draft blocks.
  // Errors: as Forward; KV is not touched.
  StatusOr<std::vector<Draft>> Propose(std::span<const DraftRequest> requests,
                                       const DraftChooser& choose);

  // Test instrument: writes draft KV rows for positions [begin, begin + rows) of a sequence from
  // given main_hidden [rows, targets * D], as Forward does from its own.
  void WriteDraftRows(SequenceKv* kv, int32_t begin, int32_t rows, const bf16* main_hidden);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deepinfer
