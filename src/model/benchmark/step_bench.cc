#include "model/benchmark/step_bench.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "base/large_block.h"
#include "base/process_memory.h"
#include "cache/standalone_kv.h"
#include "kernels/formats/panels.h"
#include "model/kv_shape.h"
#include "model/model.h"
#include "model/packed_layout.h"

namespace deepinfer {
namespace {

constexpr int32_t kTimedLayer = 1;
constexpr int64_t kFlushBytes = int64_t{1536} << 20;  // four times a cache of 384 MiB

ModelConfig BenchConfig(const StepBenchOptions& options) {
  ModelConfig c;
  c.vocab_size = 1024;  // embedding and head are outside the layer
  c.hidden_size = 5120;
  c.moe_intermediate_size = 2304;
  c.num_hidden_layers = 2;
  c.num_attention_heads = 64;
  c.head_dim = 512;
  c.qk_rope_head_dim = 64;
  c.q_lora_rank = 1280;
  c.o_lora_rank = 1024;
  c.o_groups = 8;
  c.swiglu_limit = 10;
  c.rms_norm_eps = 1e-20;
  c.max_position_embeddings = 1048576;
  c.rope_theta = 10000;
  c.compress_rope_theta = 160000;
  c.yarn = {
      .factor = 16, .beta_fast = 32, .beta_slow = 1, .original_max_position_embeddings = 65536};
  c.n_routed_experts = options.num_experts;
  c.n_shared_experts = 1;
  c.num_experts_per_tok = 6;
  c.routed_scaling_factor = 1.5;
  c.sliding_window = 128;
  c.compress_ratios = {1, 1};
  c.kv_source_layer_ids = {0};
  c.index_source_layer_ids = {0, kTimedLayer};
  c.index_n_heads = 32;
  c.index_head_dim = 128;
  c.index_topk = 512;
  c.candidate_source_layer_id = 0;
  c.candidate_topk_blocks = 2048;
  c.candidate_block_size = 8;
  c.hc_mult = 4;
  c.hc_sinkhorn_iters = 20;
  c.hc_eps = 1e-6;
  return c;
}

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Eight bytes of codes: signs and mantissas are random, exponents are around one.
uint64_t RandomCodes(WeightFormat format, uint64_t seed) {
  const uint64_t u = Mix(seed);
  if (format == WeightFormat::kFp8) return (u & 0x8f8f8f8f8f8f8f8fu) | 0x3030303030303030u;
  if (format == WeightFormat::kBf16) return (u & 0x80ff80ff80ff80ffu) | 0x3c003c003c003c00u;
  return u;
}

// Memory of weights, and the matrices in it.
class WeightArena {
 public:
  explicit WeightArena(LargeBlock memory) : memory_(std::move(memory)) {}

  const uint8_t* data() const { return memory_.data(); }
  int64_t used_bytes() const { return used_; }

  // A matrix in panels; its plain view has the right shape and the wrong weights.
  Matrix Add(const Backend& backend, WeightFormat format, int32_t rows, int32_t cols) {
    const int64_t panel_bytes = PanelBytes(format, cols);
    uint8_t* const panels = Take(NumPanels(rows) * panel_bytes);
    const int64_t codes = NumGroups(cols) * PanelGroupBytes(format);
    backend.ParallelFor(NumPanels(rows), 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        uint8_t* const panel = panels + p * panel_bytes;
        for (int64_t i = 0; i < codes; i += 8) {
          const auto at = static_cast<uint64_t>(panel + i - memory_.data());
          const uint64_t word = RandomCodes(format, at);
          std::memcpy(panel + i, &word, sizeof word);
        }
        // Scales keep sums of thousands of products near one.
        std::memset(panel + codes, 119, static_cast<size_t>(panel_bytes - codes));
      }
    });
    return {.format = format,
            .rows = rows,
            .cols = cols,
            .data = panels,
            .scale = panels,
            .panels = panels};
  }

 private:
  uint8_t* Take(int64_t bytes) {
    uint8_t* const taken = memory_.data() + used_;
    used_ += RoundUp(bytes, kPackedAlign);
    CHECK_LE(used_, memory_.num_bytes());
    return taken;
  }

  const LargeBlock memory_;
  int64_t used_ = 0;
};

// The two layers, which share every matrix.
class BenchWeights {
 public:
  BenchWeights(const Backend& backend, const ModelConfig& c, WeightArena& arena)
      : ones_(1 << 15, ToBf16(1.0f)), zeros_(1 << 10, 0.0f), hyper_scale_(3, 1.0f) {
    const int32_t dim = c.hidden_size, inner = c.moe_intermediate_size, hc = c.hc_mult;
    const int32_t width = c.num_attention_heads * c.head_dim;
    const auto fp8 = [&](int32_t rows, int32_t cols) {
      return arena.Add(backend, WeightFormat::kFp8, rows, cols);
    };
    const auto bf16s = [&](int32_t rows, int32_t cols) {
      return arena.Add(backend, WeightFormat::kBf16, rows, cols);
    };
    const auto expert = [&](WeightFormat format) {
      return ExpertWeights{arena.Add(backend, format, inner, dim),
                           arena.Add(backend, format, inner, dim),
                           arena.Add(backend, format, dim, inner)};
    };
    hyper_fn_.resize(static_cast<size_t>((2 + hc) * hc) * static_cast<size_t>(hc * dim));
    for (size_t i = 0; i < hyper_fn_.size(); ++i) {
      hyper_fn_[i] = (static_cast<float>(Mix(i) % 255) - 127.0f) * 0x1p-14f;
    }
    const HyperWeights hyper = {hyper_fn_.data(), zeros_.data(), hyper_scale_.data()};
    BlockWeights b;
    b.attn_norm = b.ffn_norm = b.q_norm = b.kv_norm = ones_.data();
    b.compressor_norm = b.indexer_k_norm = ones_.data();
    b.hc_attn = b.hc_ffn = hyper;
    b.attn_sink = b.gate_bias = b.gate_bias_vl = zeros_.data();
    b.wq_a = fp8(c.q_lora_rank, dim);
    b.wq_b = fp8(width, c.q_lora_rank);
    b.wkv = fp8(c.head_dim, dim);
    b.wo_a = fp8(c.o_groups * c.o_lora_rank, width / c.o_groups);
    b.wo_b = fp8(dim, c.o_groups * c.o_lora_rank);
    b.compressor_wkv = bf16s(c.head_dim, dim);
    b.indexer_wk = bf16s(c.index_head_dim, c.head_dim);
    b.indexer_wq_b = fp8(c.index_n_heads * c.index_head_dim, c.q_lora_rank);
    b.indexer_weights_proj = bf16s(c.index_n_heads, dim);
    b.gate = bf16s(c.n_routed_experts, dim);
    b.shared_experts = expert(WeightFormat::kFp8);
    for (int32_t e = 0; e < c.n_routed_experts; ++e) {
      b.experts.push_back(expert(WeightFormat::kFp4));
    }
    weights.layers = {b, b};
    weights.norm = ones_.data();
    weights.head = bf16s(c.vocab_size, dim);
    weights.embed = weights.head;
    weights.embed.panels = nullptr;  // looked up by rows: any of its bytes are numbers
  }

  ModelWeights weights;

 private:
  const std::vector<bf16> ones_;
  const std::vector<float> zeros_, hyper_scale_;
  std::vector<float> hyper_fn_;
};

int64_t ArenaBytes(const ModelConfig& c) {
  const int64_t expert =
      2 * PackedBytes(WeightFormat::kFp4, c.moe_intermediate_size, c.hidden_size) +
      PackedBytes(WeightFormat::kFp4, c.hidden_size, c.moe_intermediate_size);
  constexpr int64_t kTheRest = int64_t{256} << 20;  // dense matrices, 180 MB
  return c.n_routed_experts * (expert + 3 * 4096) + kTheRest;
}

int64_t Bytes(const Matrix& w) { return PackedBytes(w.format, w.rows, w.cols); }
int64_t Elements(const Matrix& w) { return int64_t{w.rows} * w.cols; }

// Takes the time of the layer out of a pass, and notes the experts it uses.
class LayerTimer : public ForwardObserver {
 public:
  // `empty_caches` runs before the time is taken: the layer before read the same dense weights.
  LayerTimer(const Clock& clock, const ModelConfig& config, std::function<void()> empty_caches)
      : clock_(clock), config_(config), empty_caches_(std::move(empty_caches)) {}

  void LayerInput(int32_t layer, const RowSet&, bf16*, float*) override {
    if (layer == kTimedLayer) {
      empty_caches_();
      start_ = clock_.Now();
    }
    if (layer == kTimedLayer + 1) us.push_back(Seconds(clock_.Now() - start_) * 1e6);
  }
  void Routes(int32_t layer, const RowSet& rows, const int32_t* experts, const float*) override {
    if (layer != kTimedLayer) return;
    std::vector<bool> used(static_cast<size_t>(config_.n_routed_experts));
    const int32_t slots = rows.num_rows() * config_.num_experts_per_tok;
    for (int32_t i = 0; i < slots; ++i) used[static_cast<size_t>(experts[i])] = true;
    num_experts = std::count(used.begin(), used.end(), true);
  }

  std::vector<double> us;
  int64_t num_experts = 0;  // distinct ones of the last pass

 private:
  const Clock& clock_;
  const ModelConfig& config_;
  const std::function<void()> empty_caches_;
  MonotonicTime start_;
};

// Rows at positions [begin, end) of one sequence.
std::vector<StepPart> CountParts(const ModelConfig& c, const BlockWeights& b, int32_t begin,
                                 int32_t end, int64_t num_experts) {
  const int64_t rows = end - begin;
  std::vector<StepPart> parts;
  const auto product = [&](const char* name, const Matrix& w) {
    parts.push_back({name, Bytes(w), rows * Elements(w)});
  };
  const int64_t hyper = int64_t{2 + c.hc_mult} * c.hc_mult * c.hc_mult * c.hidden_size;
  parts.push_back({"two hyper-connections", 2 * hyper * 4, 2 * rows * hyper});
  product("wq_a", b.wq_a);
  product("wq_b", b.wq_b);
  product("wkv", b.wkv);
  product("indexer wq_b", b.indexer_wq_b);
  product("indexer weights_proj", b.indexer_weights_proj);
  int64_t scored = 0, attended = 0;
  for (int64_t p = begin; p < end; ++p) {
    const int64_t visible =
        std::min<int64_t>(p + 1, int64_t{c.candidate_topk_blocks} * c.candidate_block_size);
    scored += visible;
    attended +=
        std::min<int64_t>(p + 1, c.sliding_window) + std::min<int64_t>(visible, c.index_topk);
  }
  const int64_t key = IndexKeyBytes(c.index_head_dim) + IndexScaleBytes(c.index_head_dim);
  parts.push_back({"indexer scores", end * key, scored * c.index_n_heads * c.index_head_dim});
  parts.push_back({"attention",
                   std::min<int64_t>(end, c.sliding_window + rows) * SwaRecordBytes(c.head_dim) +
                       std::min<int64_t>(end, c.index_topk * rows) * GlobalRecordBytes(c.head_dim),
                   attended * c.num_attention_heads * c.head_dim * 2});
  product("wo_a", b.wo_a);
  product("wo_b", b.wo_b);
  product("gate", b.gate);
  const auto expert = [&](const char* name, const ExpertWeights& e, int64_t read, int64_t used) {
    parts.push_back({name, read * (Bytes(e.w1) + Bytes(e.w3) + Bytes(e.w2)),
                     used * (Elements(e.w1) + Elements(e.w3) + Elements(e.w2))});
  };
  expert("routed experts", b.experts[0], num_experts, rows * c.num_experts_per_tok);
  expert("shared expert", b.shared_experts, 1, rows);
  return parts;
}

// Bytes that are numbers as codes and as scales of every KV record.
void FillKv(uint8_t* memory, int64_t num_bytes) {
  for (int64_t i = 0; i < num_bytes; ++i) {
    memory[i] = static_cast<uint8_t>(0x70 | (Mix(static_cast<uint64_t>(i)) & 7));
  }
}

class Bench {
 public:
  Bench(const Backend& backend, const StepBenchOptions& options, const ModelConfig& config,
        const ModelWeights& weights, std::function<void()> empty_caches, Clock& clock)
      : options_(options),
        config_(config),
        block_(weights.layers[kTimedLayer]),
        empty_caches_(std::move(empty_caches)),
        clock_(clock),
        model_(config, weights, {}, {.backend = backend}) {
    const int32_t longest =
        std::max(options.decode_context + options.decode_steps, options.prefill_rows) + 1;
    for (int32_t i = 0; i < longest; ++i) {
      tokens_.push_back(static_cast<int32_t>(Mix(static_cast<uint64_t>(i) + 77) % 1024));
    }
  }

  // One token a pass, each at the next position, over made-up KV.
  StepFigure Decode() {
    const int32_t first = options_.decode_context;
    const KvShape& shape = model_.kv_shape();
    StandaloneKv memory(shape, first + options_.decode_steps);
    SequenceKv& kv = memory.kv();
    FillKv(memory.pages().data(), std::ssize(memory.pages()));
    FillKv(kv.Ring(0), shape.AllRingBytes());
    for (int32_t source = 0; source < shape.num_sources(); ++source) {
      if (shape.TailRows(source) > 0) {
        std::fill_n(kv.TailRow(source, 0), shape.TailFloats(source), 0.25f);
      }
    }
    LayerTimer timer(clock_, config_, empty_caches_);
    for (int32_t p = first; p < first + options_.decode_steps; ++p) Pass(kv, p, p + 1, timer);
    const int32_t last = first + options_.decode_steps - 1;
    return Figure(timer, last, last + 1);
  }

  StepFigure Prefill() {
    LayerTimer timer(clock_, config_, empty_caches_);
    for (int32_t step = 0; step < options_.prefill_steps; ++step) {
      StandaloneKv memory(model_.kv_shape(), options_.prefill_rows);
      Pass(memory.kv(), 0, options_.prefill_rows, timer);
    }
    return Figure(timer, 0, options_.prefill_rows);
  }

 private:
  void Pass(SequenceKv& kv, int32_t begin, int32_t end, LayerTimer& timer) {
    const ForwardBatch batch = {
        {{.kv = &kv, .tokens = tokens_.data(), .begin = begin, .end = end}}};
    CHECK(model_.Forward(batch, &timer).ok());
  }
  StepFigure Figure(LayerTimer& timer, int32_t begin, int32_t end) const {
    std::vector<double>& us = timer.us;
    std::nth_element(us.begin(), us.begin() + std::ssize(us) / 2, us.end());
    return {us[us.size() / 2], CountParts(config_, block_, begin, end, timer.num_experts)};
  }

  const StepBenchOptions& options_;
  const ModelConfig& config_;
  const BlockWeights& block_;
  const std::function<void()> empty_caches_;
  Clock& clock_;
  Model model_;
  std::vector<int32_t> tokens_;
};

}  // namespace

int64_t StepFigure::bytes() const {
  int64_t sum = 0;
  for (const StepPart& part : parts) sum += part.bytes;
  return sum;
}

int64_t StepFigure::macs() const {
  int64_t sum = 0;
  for (const StepPart& part : parts) sum += part.macs;
  return sum;
}

double StepBench::DecodeReadFraction() const {
  return static_cast<double>(decode.bytes()) / decode.us * 1e6 / ceilings.read_bytes_per_s;
}
double StepBench::PrefillDotFraction() const {
  return static_cast<double>(prefill.macs()) / prefill.us * 1e6 / ceilings.macs_per_s;
}

StatusOr<StepBench> BenchStep(const Backend& backend, const StepBenchOptions& options,
                              Clock& clock) {
  const ModelConfig config = BenchConfig(options);
  StatusOr<LargeBlock> memory = LargeBlock::Allocate(ArenaBytes(config), "weights");
  if (!memory.ok()) {
    return Annotate(memory.status(), "bench step: a smaller --num-experts takes less");
  }
  WeightArena arena(std::move(*memory));
  const BenchWeights weights(backend, config, arena);
  StepBench result;
  // All of them: parts of a virtual machine's memory may be twice as fast as others.
  result.weight_bytes = arena.used_bytes();
  result.ceilings = MeasureCeilings(backend, arena.data(), result.weight_bytes, clock);
  const auto empty_caches = [&] {
    ReadMemory(backend, arena.data(), std::min(result.weight_bytes, kFlushBytes));
  };
  Bench bench(backend, options, config, weights.weights, empty_caches, clock);
  result.decode = bench.Decode();
  result.prefill = bench.Prefill();
  result.peak_resident_bytes = PeakResidentBytes();
  return result;
}

}  // namespace deepinfer
