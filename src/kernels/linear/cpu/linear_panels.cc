// Few rows of x: every panel streams through once, its codes decoded in registers. More rows: a few
// panels are decoded a stretch of columns at a time and multiplied with blocks of rows from cache.
// Both give the same bits (panel_kernels.h).

#include "kernels/linear/cpu/linear_panels.h"

#include <algorithm>
#include <memory>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/linear/cpu/linear_cpu.h"

namespace deepinfer {
namespace {

constexpr int32_t kRowBlock = 512;  // rows of x whose totals stay in the L2 cache

PanelRows From(const PanelKernels& kernels, PanelRows x, int64_t row, int64_t group) {
  return {x.data + row * x.stride + group * kernels.x_group_bytes, x.stride};
}

// A row of BF16, then zeros up to whole groups.
void PadRow(const bf16* x, int32_t cols, uint8_t* out) {
  auto* const row = reinterpret_cast<bf16*>(out);
  std::copy_n(x, cols, row);
  std::fill(row + cols, row + NumGroups(cols) * kGroupCols, bf16{0});
}

// True: the set can multiply the row, which is now in `out`.
bool Prepare(const PanelKernels& kernels, const bf16* x, int32_t cols, uint8_t* out) {
  if (kernels.prepare != nullptr) return kernels.prepare(x, cols, out);
  PadRow(x, cols, out);
  return true;
}

// totals [num_rows, num_panels * 16] -> rows [first_row, ...) of the output.
void Store(const PanelKernels& kernels, const LinearParams& p, int64_t first_row, int64_t num_rows,
           int32_t first_panel, int32_t num_panels, const float* totals) {
  const int32_t begin = first_panel * kPanelRows;
  const int32_t count = std::min(num_panels * kPanelRows, p.weight.rows - begin);
  const int64_t stride = int64_t{num_panels} * kPanelRows, at = first_row * p.out_stride + begin;
  if (p.out != nullptr) {
    return kernels.round(totals, stride, num_rows, count, p.out + at, p.out_stride);
  }
  for (int64_t t = 0; t < num_rows; ++t) {
    std::copy_n(totals + t * stride, count, p.out_f32 + at + t * p.out_stride);
  }
}

const uint8_t* PanelAt(const Matrix& w, int32_t panel) {
  return w.panels + panel * PanelBytes(w.format, w.cols);
}

void StreamPanels(const PanelKernels& kernels, const LinearParams& p, PanelRows x, int32_t begin,
                  int32_t end) {
  alignas(64) float totals[kMaxStreamRows * kMaxStreamPanels * kPanelRows];
  const int32_t abreast = kernels.stream_panels(p.weight.format, p.num_tokens);
  for (int32_t panel = begin; panel < end;) {
    const int32_t count = end - panel >= abreast ? abreast : 1;
    kernels.stream(p.weight.format, PanelAt(p.weight, panel), count, NumGroups(p.weight.cols), x,
                   p.num_tokens, totals);
    Store(kernels, p, 0, p.num_tokens, panel, count, totals);
    panel += count;
  }
}

// Of a piece of panels that run as tiles, on every thread.
struct TileScratch {
  template <typename Memory>
  TileScratch(Memory& memory, const PanelKernels& kernels) {
    const int64_t width = int64_t{kernels.tile_panels} * kPanelRows;
    const int64_t lanes = kernels.tile_groups * width;
    totals = memory.template Get<float>(kRowBlock * width);
    weights = memory.template Get<uint8_t>(lanes * kGroupCols * kernels.weight_bytes);
    scales = memory.template Get<float>(lanes);
  }

  float* totals;     // [kRowBlock, tile_panels, 16]
  uint8_t* weights;  // as DecodedPanels
  float* scales;
};

// Rows [first_row, first_row + num_rows) times `num_panels` panels from `first_panel` on.
void TileBlock(const PanelKernels& kernels, const LinearParams& p, PanelRows x, int32_t first_row,
               int32_t num_rows, int32_t first_panel, int32_t num_panels,
               const TileScratch& scratch) {
  const Matrix& w = p.weight;
  const int32_t num_groups = NumGroups(w.cols);
  const int64_t width = int64_t{num_panels} * kPanelRows;
  float* const totals = scratch.totals;
  std::fill_n(totals, num_rows * width, 0.0f);
  DecodedPanels decoded{scratch.weights, scratch.scales};
  for (int32_t begin = 0; begin < num_groups; begin += kernels.tile_groups) {
    decoded.num_groups = std::min(kernels.tile_groups, num_groups - begin);
    for (int32_t i = 0; i < num_panels; ++i) {
      kernels.decode(w.format, PanelAt(w, first_panel + i), num_groups, begin, i, decoded);
    }
    // Tiles of about equal height.
    int32_t tiles = (num_rows + kernels.tile_rows - 1) / kernels.tile_rows;
    for (int32_t t = 0; t < num_rows; --tiles) {
      const int32_t rows = (num_rows - t + tiles - 1) / tiles;
      kernels.tile(decoded, num_panels, From(kernels, x, first_row + t, begin), rows,
                   totals + t * width, width);
      t += rows;
    }
  }
  Store(kernels, p, first_row, num_rows, first_panel, num_panels, totals);
}

void TilePanels(const PanelKernels& kernels, const LinearParams& p, PanelRows x, int32_t begin,
                int32_t end) {
  ScratchFrame frame;
  const TileScratch scratch(frame, kernels);
  for (int32_t panel = begin; panel < end;) {
    const int32_t count = end - panel >= kernels.tile_panels ? kernels.tile_panels : 1;
    for (int32_t row = 0; row < p.num_tokens; row += kRowBlock) {
      TileBlock(kernels, p, x, row, std::min(kRowBlock, p.num_tokens - row), panel, count, scratch);
    }
    panel += count;
  }
}

// Rows that can be multiplied as they are.
bool NeedsNoPreparation(const PanelKernels& kernels, int32_t cols) {
  return kernels.prepare == nullptr && cols % kGroupCols == 0;
}

int64_t PreparedStride(const PanelKernels& kernels, int32_t cols) {
  return int64_t{NumGroups(cols)} * kernels.x_group_bytes;
}

}  // namespace

PreparedRows::PreparedRows(const PanelKernels& kernels, const Backend& backend, const bf16* x,
                           int64_t x_stride, int64_t num_rows, int32_t cols, ScratchFrame& frame)
    : kernels_(&kernels) {
  constexpr int64_t kRowsPerPiece = 4;
  if (NeedsNoPreparation(kernels, cols)) {
    rows_ = {reinterpret_cast<const uint8_t*>(x), x_stride * static_cast<int64_t>(sizeof(bf16))};
    return;
  }
  const auto make = [&](const PanelKernels& set, const auto& row) {
    const int64_t stride = PreparedStride(set, cols);
    auto* const out = frame.Get<uint8_t>(num_rows * stride);
    backend.ParallelFor(num_rows, kRowsPerPiece, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) row(t, x + t * x_stride, out + t * stride);
    });
    return PanelRows{out, stride};
  };
  auto* const refused = frame.Get<uint8_t>(num_rows);
  rows_ = make(kernels, [&](int64_t t, const bf16* row, uint8_t* out) {
    refused[t] = Prepare(kernels, row, cols, out) ? 0 : 1;
  });
  refused_ = refused;
  any_refused_ = std::find(refused, refused + num_rows, 1) != refused + num_rows;
  if (!any_refused_) return;
  CHECK(kernels.fallback != nullptr);
  const PanelKernels& fallback = *kernels.fallback;
  fallback_rows_ = make(fallback, [&](int64_t t, const bf16* row, uint8_t* out) {
    if (IsRefused(t)) CHECK(Prepare(fallback, row, cols, out));
  });
}

void PreparedRows::Measure(const PanelKernels& kernels, int64_t num_rows, int32_t cols,
                           ScratchMeter& meter) {
  if (NeedsNoPreparation(kernels, cols)) return;
  meter.Get<uint8_t>(num_rows);
  meter.Get<uint8_t>(num_rows * PreparedStride(kernels, cols));
  if (kernels.fallback == nullptr) return;
  meter.Get<uint8_t>(num_rows * PreparedStride(*kernels.fallback, cols));
}

PanelProduct::PanelProduct(const PanelKernels& kernels, const LinearParams& params, PanelRows x)
    : kernels_(&kernels), params_(params), x_(x) {
  CHECK(HasPanels(params.weight));
  CHECK_LE(kernels.stream_rows, kMaxStreamRows);
  const bool few = params.num_tokens <= kernels.stream_rows;
  panels_per_unit_ =
      few ? kernels.stream_panels(params.weight.format, params.num_tokens) : kernels.tile_panels;
  CHECK_LE(panels_per_unit_, kMaxStreamPanels);
}

int32_t PanelProduct::num_panels() const { return NumPanels(params_.weight.rows); }

void PanelProduct::Run(int64_t begin, int64_t end) const {
  const auto first = static_cast<int32_t>(begin);
  const auto last = static_cast<int32_t>(std::min<int64_t>(num_panels(), end));
  if (params_.num_tokens <= kernels_->stream_rows) {
    StreamPanels(*kernels_, params_, x_, first, last);
  } else {
    TilePanels(*kernels_, params_, x_, first, last);
  }
}

void PanelProducts::Add(const PreparedRows& rows, int64_t begin, int64_t end,
                        const LinearParams& params) {
  rows.ForStretches(
      begin, end,
      [&](const PanelKernels& kernels, const PanelRows& x, int64_t first, int64_t count) {
        LinearParams p = params;
        p.num_tokens = static_cast<int32_t>(count);
        if (p.out != nullptr) p.out += (first - begin) * p.out_stride;
        if (p.out_f32 != nullptr) p.out_f32 += (first - begin) * p.out_stride;
        CHECK_LT(count_, most_);
        std::construct_at(products_ + count_++, kernels, p, x);
      });
}

void PanelProducts::Run(const Backend& backend) const {
  const int64_t threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  if (count_ == 1) return RunOne(backend, threads);
  RunSlabs(backend, threads);
}

// In units, or where there are fewer of them than threads, in panels.
void PanelProducts::RunOne(const Backend& backend, int64_t threads) const {
  const PanelProduct& product = *products_;
  const int64_t step = product.num_units() < threads ? 1 : product.panels_per_unit();
  backend.ParallelFor((product.num_panels() + step - 1) / step, 1,
                      [&](int64_t begin, int64_t end) { product.Run(begin * step, end * step); });
}

// Pieces are ordered by their place in their matrices: a thread's stretch of them is the same slab
// of every matrix.
void PanelProducts::RunSlabs(const Backend& backend, int64_t threads) const {
  constexpr int64_t kMostUnits = 8, kPiecesPerThread = 8;
  int64_t total = 0, most = 0;
  for (int64_t i = 0; i < count_; ++i) {
    total += products_[i].num_units();
    most = std::max<int64_t>(most, products_[i].num_units());
  }
  const int64_t units = std::clamp<int64_t>(total / (threads * kPiecesPerThread), 1, kMostUnits);
  const int64_t slabs = (most + units - 1) / units;
  // Piece i: slab i / count_ of product i % count_; empty where a smaller matrix has ended.
  backend.ParallelFor(slabs * count_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const PanelProduct& product = products_[i % count_];
      const int64_t first = i / count_ * units * product.panels_per_unit();
      if (first < product.num_panels()) {
        product.Run(first, first + units * product.panels_per_unit());
      }
    }
  });
}

ScratchBytes RunScratchBytes(const PanelKernels& kernels) {
  ScratchMeter tile, fallback_tile;
  TileScratch(tile, kernels);
  if (kernels.fallback != nullptr) TileScratch(fallback_tile, *kernels.fallback);
  return OnAllThreads(std::max(tile.bytes(), fallback_tile.bytes()));
}

namespace {

const PanelKernels& KernelsOf(VariantId variant, const LinearParams& p) {
  return variant == kAmxVariant      ? kAmxPanels
         : variant == kAvx512Variant ? kAvx512Panels
                                     : Avx2PanelsFor(p.weight.format, p.num_tokens);
}

int64_t MostProducts(VariantId variant, std::span<const LinearParams> all) {
  int64_t most = 0;
  for (const LinearParams& p : all) {
    most += PreparedRows::MostStretches(KernelsOf(variant, p), p.num_tokens);
  }
  return most;
}

// Matrices without panels run as LinearCpu does.
void RunPanels(VariantId variant, const Backend& backend, std::span<const LinearParams> all) {
  ScratchFrame frame;
  PanelProducts products(MostProducts(variant, all), frame);
  for (const LinearParams& p : all) {
    if (!HasPanels(p.weight)) {
      LinearCpu(backend, p);
      continue;
    }
    const PreparedRows rows(KernelsOf(variant, p), backend, p.x, p.x_stride, p.num_tokens,
                            p.weight.cols, frame);
    products.Add(rows, 0, p.num_tokens, p);
  }
  products.Run(backend);
}

}  // namespace

ScratchBytes LinearsScratchBytes(VariantId variant, std::span<const LinearParams> all) {
  ScratchMeter meter;
  PanelProducts::Measure(MostProducts(variant, all), meter);
  ScratchBytes inner;
  for (const LinearParams& p : all) {
    inner.Include(LinearCpuScratchBytes(p));  // where it is not in panels
    PreparedRows::Measure(KernelsOf(variant, p), p.num_tokens, p.weight.cols, meter);
    inner.Include(RunScratchBytes(KernelsOf(variant, p)));
  }
  return inner.Under(meter.bytes());
}

void LinearAvx2(const Backend& backend, const LinearParams& params) {
  RunPanels(kAvx2Variant, backend, {&params, 1});
}
void LinearAvx512(const Backend& backend, const LinearParams& params) {
  RunPanels(kAvx512Variant, backend, {&params, 1});
}
void LinearAmx(const Backend& backend, const LinearParams& params) {
  RunPanels(kAmxVariant, backend, {&params, 1});
}
void LinearsAvx2(const Backend& backend, const LinearsParams& params) {
  RunPanels(kAvx2Variant, backend, params.products);
}
void LinearsAvx512(const Backend& backend, const LinearsParams& params) {
  RunPanels(kAvx512Variant, backend, params.products);
}
void LinearsAmx(const Backend& backend, const LinearsParams& params) {
  RunPanels(kAmxVariant, backend, params.products);
}

}  // namespace deepinfer
