// model/model_impl.h: the pieces of Model, one .cc file a piece. Private to model/.
#pragma once

#include <optional>

#include "kernels/linear/linear.h"
#include "kernels/sparse_attention/sparse_attention.h"
#include "model/expert_rounds.h"
#include "model/kv_shape.h"
#include "model/model.h"
#include "model/scratch.h"

namespace deepinfer {

// cos/sin of one rope table for the rows of a pass.
struct RopeRows {
  const float* cos = nullptr;  // [T, rope_dim/2]
  const float* sin = nullptr;
};

class Model::Impl {
 public:
  Impl(const ModelConfig& config, const ModelWeights& weights, std::vector<int32_t> token_classes,
       const ModelOptions& options);

  StatusOr<std::span<const float>> Forward(const ForwardBatch& batch, ForwardObserver* observer);
  Status Propose(std::span<const DraftRequest> requests, DraftChooser choose,
                 std::span<Draft> drafts);
  void WriteDraftRows(const RowSet& rows, const bf16* main_hidden);

  static ScratchPlan PlanScratch(const ModelConfig& config, const ScratchOptions& options,
                                 const ReserveShape& shape);
  void Reserve(const ReserveShape& shape);

  const ModelConfig config_;
  const KvShape shape_;

 private:
  // ---- scratch_plan.cc
  // visit(member, elements) for every member that grows with the pass.
  template <typename Visit>
  static void VisitScratch(const ModelConfig& config, const ReserveShape& shape,
                           const Visit& visit);

  // ---- model.cc: the order of things
  void MakeRows(const ForwardBatch& batch, bool decoder, RowSet& rows) const;
  void Embed(const RowSet& rows);
  Status RunLayer(int32_t layer, const RowSet& rows);
  void EnterDecoder(const RowSet& all, const RowSet& kept);
  void RecordMainHidden(int32_t target, const RowSet& rows);
  std::span<const float> Logits(const RowSet& rows);
  RopeRows MakeRopeRows(const std::vector<float>& freqs, const std::vector<int32_t>& positions,
                        Scratch<float>& cos, Scratch<float>& sin) const;
  void SetRopeRows(const RowSet& rows);

  // ---- attention.cc: streams -> attention sub-layer -> streams
  // Collapses the streams with pre_ and normalises: x_ [T, D].
  void SublayerInput(const HyperWeights& hyper, const bf16* norm, int32_t num_rows, bool mix);
  void Rotate(bf16* x, int32_t num_rows, int32_t num_heads, int32_t head_dim, const RopeRows& rope,
              bool inverse = false) const;
  void FinishSublayer(int32_t num_rows, const bf16* y);
  void QueryInput(const BlockWeights& block, int32_t num_rows);
  void AttentionSublayer(int32_t layer, const RowSet& rows);
  void ProduceGlobalKv(int32_t layer, const RowSet& rows);
  void ListEntries(int32_t source, const RowSet& rows);
  void PlaceEntries(int32_t source);
  void KeepOpenGroup(int32_t source, const RowSet& rows);
  void SelectEntries(int32_t layer, const RowSet& rows);
  // Shared by text layers and draft blocks: x_ -> y_. `ring` = the layer's ring; selection may be
  // null.
  void Attend(const BlockWeights& block, int32_t ring, const RowSet& rows, const RopeRows& rope,
              const int32_t* selection, const std::optional<int32_t>& kv_source, bool draft);
  // FP8 records of own KV rows from quantised input xq [T, D] -> fresh [T, record].
  void MakeSwaRecords(const BlockWeights& block, const bf16* xq, int32_t num_rows,
                      const RopeRows& rope, uint8_t* fresh);
  void StoreRing(int32_t ring, const RowSet& rows, const uint8_t* fresh);
  int32_t FirstStored(int32_t ring, const RowSet::Segment& segment) const;
  void TakeSnapshot(int32_t ring, const RowSet::Segment& segment, const uint8_t* fresh) const;
  void OutputProjection(const BlockWeights& block, bf16* o, int32_t num_rows, const RopeRows& rope);

  // ---- feed_forward.cc
  // `block`: a text layer, or num_hidden_layers + a draft block.
  Status FeedForwardSublayer(int32_t block, const RowSet& rows);
  void SharedExpert(const ExpertWeights& shared, const bf16* xq, int32_t num_rows, bf16* out);

  // ---- draft.cc
  void MakeDraftRows(std::span<const DraftRequest> requests);
  void ChooseTokens(std::span<const DraftRequest> requests, const bf16* hidden, float* logits,
                    DraftChooser choose, std::span<Draft> drafts);

  // ---- memory.cc
  // Computes the row ids of every table for the rows that its layer will run on, and asks for them.
  void AnnounceEngramRows(const RowSet& all, const RowSet& kept);
  void HashRows(int32_t table, const RowSet& rows, int32_t* ids);
  StatusOr<EngramRows> RowsOfTable(int32_t table);
  Status EngramLayer(int32_t table, const RowSet& rows);

  // ---- helpers
  void Project(const Matrix& weight, const bf16* x, int32_t num_rows, bf16* out) const;
  void ProjectF32(const Matrix& weight, const bf16* x, int32_t num_rows, float* out) const;
  void Normalise(const bf16* x, const bf16* gain, int32_t dim, int32_t num_rows, bf16* out) const;
  int64_t StreamElements() const { return int64_t{config_.hc_mult} * config_.hidden_size; }
  float eps() const { return static_cast<float>(config_.rms_norm_eps); }

  const ModelWeights& weights_;
  const std::vector<int32_t> token_classes_;
  const Backend backend_;
  const IndexScores index_scores_;
  const int64_t index_scratch_bytes_;
  EngramSource* const engram_source_;          // may be null
  std::optional<ExpertRounds> expert_rounds_;  // over the source of experts, if there is one
  std::optional<EngramHash> engram_hash_;
  std::vector<float> plain_freqs_;     // ratio 0 and draft
  std::vector<float> compress_freqs_;  // ratio > 0
  ForwardObserver* observer_ = nullptr;

  // Rows of the pass, for the two halves, and of a proposal.
  RowSet all_, kept_, draft_rows_;

  // The state that flows from layer to layer, [T, ...].
  Scratch<bf16> streams_, main_hidden_;
  Scratch<float> pre_, pre_next_, post_, comb_;
  Scratch<int32_t> selection_, blocks_;
  RopeRows plain_rope_, compress_rope_;
  Scratch<float> plain_cos_, plain_sin_, compress_cos_, compress_sin_;

  // Scratch of one sub-layer.
  Scratch<bf16> collapsed_, x_, xq_, qr_, qrq_, q_, kv_, o_, z_, y_;
  Scratch<uint8_t> fresh_;
  Scratch<float> ab_, entry_cos_, entry_sin_;
  Scratch<bf16> latent_, index_key_, index_q_, index_w_;
  Scratch<bf16> shared_gate_, shared_up_, shared_out_, expert_y_;
  std::vector<LinearParams> products_;  // that run together
  Scratch<float> index_scores_scratch_, gate_logits_, route_weights_, route_gap_;
  Scratch<int32_t> route_experts_;
  std::vector<Scratch<int32_t>> engram_ids_;  // one a table
  Scratch<bf16> engram_x_, engram_kv_;
  Scratch<float> logits_, draft_logits_, markov_logits_, confidence_;
  Scratch<bf16> head_x_, draft_x_, bigram_, confidence_x_;

  // Lists of one call each; they keep their memory.
  struct Entry {  // of global KV
    SequenceKv* kv;
    int32_t idx;
  };
  std::vector<Entry> entries_;            // completed by the rows of the pass
  std::vector<const float*> group_rows_;  // [entries, ratio]
  std::vector<int32_t> entry_positions_;  // [entries]
  std::vector<uint8_t*> entry_records_, entry_keys_, entry_scales_;  // [entries] where they go
  std::vector<PagedSource> pages_;                                   // [segments]
  std::vector<const PagedSource*> row_sources_;                      // [T]
  std::vector<int32_t> num_visible_;                                 // [T]
  std::vector<AttentionSegment> attention_segments_;
  std::vector<const bf16*> overrides_;               // [T]
  std::vector<uint8_t> live_;                        // [T]
  std::vector<std::span<const int32_t>> announced_;  // [tables]
  std::vector<int32_t> history_;                     // [n-gram]
  std::vector<float> equal_;                         // [T, hc]
  std::vector<ForwardSegment> draft_segments_;       // [requests]
  std::vector<int32_t> previous_;                    // [requests] the token before the next guess
};

}  // namespace deepinfer
