// model/golden_writer.h: collects a run of this engine in the golden layout.
//
// Names and shapes are those of the golden data (tests/golden/README.md). "official" in a name
// means the arithmetic of the index scores, not whose run it is. Image tensors and the run with the
// other index arithmetic are left out.
#pragma once

#include <string>

#include "model/config.h"
#include "model/forward_batch.h"
#include "model/tensor_set.h"

namespace deepinfer {

inline constexpr int32_t kGoldenDecodeSteps = 24;
inline constexpr int32_t kGoldenFirstEntries = 8;                // stored of every kv source
inline constexpr int32_t kGoldenDraftTop = 5;                    // best corrected draft logits
inline constexpr int32_t kGoldenDraftLogitSteps[] = {0, 9, 23};  // with full draft logits

// Rows of a pass are all positions of the prompt, or one decode step. Everything that a hook of the
// forward pass sees is put here; the rest (logits, records, drafts) by the caller.
class GoldenWriter : public ForwardObserver {
 public:
  // Declares every tensor that the config has. `config` outlives the object.
  GoldenWriter(const ModelConfig& config, int32_t num_prompt_tokens);

  void Begin(int32_t step) { step_ = step; }  // < 0 = the prompt
  TensorSet& tensors() { return tensors_; }

  bool wants_details() const override { return true; }
  void LayerInput(int32_t layer, const RowSet& rows, bf16* streams, float* pre) override;
  void EngramRows(int32_t table, const RowSet& rows, const int32_t* ids) override;
  void EngramOutput(int32_t layer, const RowSet& rows, const bf16* streams) override;
  void AttentionOutput(int32_t layer, const RowSet& rows, const bf16* streams,
                       const float* pre) override;
  void Selection(int32_t layer, const RowSet& rows, int32_t* selection,
                 const float* scores) override;
  void CandidateBlocks(int32_t layer, const RowSet& rows, int32_t* blocks) override;
  void Routes(int32_t layer, const RowSet& rows, const int32_t* experts, const float* gap) override;
  void MainHidden(const RowSet& rows, bf16* main_hidden) override;

 private:
  void DeclareStreams();
  void DeclareSelections();
  void DeclareRecords();
  void DeclareDraft();

  // Rows from `first_row` on of a tensor whose rows have `width` elements.
  template <typename T>
  void PutRows(const std::string& name, int64_t first_row, const T* rows, int64_t num_rows,
               int64_t width) {
    tensors_.Put<T>(name, first_row * width, {rows, static_cast<size_t>(num_rows * width)});
  }

  const ModelConfig& config_;
  const int64_t num_prompt_tokens_;
  const int64_t stream_width_;  // hc_mult x hidden_size
  TensorSet tensors_;
  int32_t step_ = -1;
};

}  // namespace deepinfer
