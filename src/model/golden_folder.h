// model/golden_folder.h: the checkpoint of a folder in the golden layout, and a sequence to run
// through it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cache/standalone_kv.h"
#include "model/checkpoint.h"
#include "model/model.h"
#include "model/packed_weights.h"

namespace deepinfer {

struct GoldenFolder {
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<PackedWeights> packed;  // the checkpoint's, for the fast forms too
  std::vector<int32_t> classes;  // [vocab_size] token classes; empty if the config has no engram
};

// Opens golden_dir/checkpoint. One without shards is generated into work_dir first, from
// tensors.tsv or by the generator's own plan; the caller removes work_dir. `threads` may be null.
// Errors: what is missing, unreadable or has another digest.
StatusOr<GoldenFolder> OpenGoldenFolder(Disk& disk, const std::string& golden_dir,
                                        const std::string& work_dir, ThreadPool* threads);

// Tokens with their KV, computed bit by bit.
class GoldenSequence {
 public:
  // `model` outlives the object. Reserves KV for all of `tokens`.
  GoldenSequence(Model& model, std::vector<int32_t> tokens);

  // Computes positions [begin, end). Returns logits [end - begin, V], valid until the model runs
  // again. `observer` may be null.
  std::span<const float> Run(int32_t begin, int32_t end, ForwardObserver* observer);

  SequenceKv& kv() const { return kv_->kv(); }

  // Decoded KV: a row of a ring [head_dim], an entry of a kv source layer [head_dim], its index key
  // [index_head_dim]. Requires: it was computed, and the ring still has it.
  std::vector<float> SwaRow(int32_t ring, int32_t position) const;
  std::vector<float> GlobalEntry(int32_t layer, int32_t entry) const;
  std::vector<float> IndexKey(int32_t layer, int32_t entry) const;

  std::vector<int32_t> tokens;
  std::vector<uint8_t> image_mask;      // [tokens], or empty: no image
  std::vector<const bf16*> image_rows;  // [tokens], or empty

 private:
  Model& model_;
  std::unique_ptr<StandaloneKv> kv_;
};

}  // namespace deepinfer
