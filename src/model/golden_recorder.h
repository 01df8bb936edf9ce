// model/golden_recorder.h: feeds a forward pass from stored tensors and counts what differs.
#pragma once

#include <map>
#include <string>

#include "model/forward_batch.h"
#include "model/golden_data.h"

namespace deepinfer {

// What a pass is fed with: the streams and selections of every layer, the selections alone, or
// nothing.
enum class GoldenFeed { kStreams, kSelections, kNothing };

struct FractionEqual {
  int64_t equal = 0, total = 0;
  void Add(std::span<const bf16> want, const bf16* got);
  double value() const { return static_cast<double>(equal) / static_cast<double>(total); }
};

// Rows of a pass are all positions of the prompt, or one decode step.
class GoldenRecorder : public ForwardObserver {
 public:
  // run: "official" or "f32idx". Both references outlive the object.
  GoldenRecorder(const ModelConfig& config, const GoldenData& data, GoldenFeed feed,
                 std::string run)
      : config_(config), data_(data), feed_(feed), run_(std::move(run)) {}

  // prefix: "" or "vl."; step < 0 = the prompt.
  void Begin(std::string prefix, int32_t step);

  bool wants_details() const override { return feed_ == GoldenFeed::kStreams; }
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

  std::map<int32_t, FractionEqual> prompt_attention, prompt_experts, decode_layers;  // by layer
  FractionEqual engram_out, main_hidden_out;
  int64_t engram_row_mismatches = 0;
  int64_t selection_rows = 0, selection_mismatches = 0, selection_ties = 0;
  int64_t candidate_mismatches = 0, route_mismatches = 0;
  double pre_error = 0;

 private:
  // Rows of one layer of a stored [L, T, width] tensor, or of one decode step of [steps, L, width].
  template <typename T>
  std::span<const T> StoredRows(const std::string& name, int32_t layer, int64_t rows,
                                int64_t width) const {
    const std::string full = step_ < 0 ? name : "decode_" + name;
    const int64_t layers = data_.Shape(full)[step_ < 0 ? 0 : 1];
    const int64_t first = step_ < 0 ? layer * rows : step_ * layers + layer;
    return data_.Get<T>(full).subspan(static_cast<size_t>(first * width),
                                      static_cast<size_t>(rows * width));
  }
  void CompareSelection(const RowSet& rows, std::span<const int32_t> stored,
                        std::span<const float> gaps, const int32_t* selection, const float* scores);

  const ModelConfig& config_;
  const GoldenData& data_;
  const GoldenFeed feed_;
  const std::string run_;
  std::string prefix_;
  int32_t step_ = -1;
};

// |x|, with NaN as infinity: a NaN must not pass a "<= limit" test.
inline double Magnitude(double x) { return std::isnan(x) ? HUGE_VAL : std::fabs(x); }

}  // namespace deepinfer
