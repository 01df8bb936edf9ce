#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/fault.h"
#include "kernels/hyper_connection/hyper_connection.h"

namespace deepinfer {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The raw mix of one token, [(2+hc)*hc], rounded to F32 where the official code stores it.
std::vector<float> MixOf(const HyperMixParams& p, const bf16* x) {
  const int64_t count = int64_t{p.num_streams} * p.dim;
  double squares = 0;
  for (int64_t c = 0; c < count; ++c) squares += double{ToFloat(x[c])} * ToFloat(x[c]);
  const float mean = static_cast<float>(squares / static_cast<double>(count));
  const float inverse = 1.0f / std::sqrt(mean + p.norm_eps);

  std::vector<float> mix(static_cast<size_t>((2 + p.num_streams) * p.num_streams));
  for (size_t k = 0; k < mix.size(); ++k) {
    double dot = 0;
    for (int64_t c = 0; c < count; ++c)
      dot += double{p.fn[static_cast<int64_t>(k) * count + c]} * ToFloat(x[c]);
    mix[k] = static_cast<float>(dot) * inverse;
  }
  return mix;
}

// c [hc, hc], row i = source: every row divided by its sum + eps.
void NormaliseRows(std::vector<double>& c, int hc, double eps) {
  for (int i = 0; i < hc; ++i) {
    double sum = eps;
    for (int j = 0; j < hc; ++j) sum += c[i * hc + j];
    for (int j = 0; j < hc; ++j) c[i * hc + j] /= sum;
  }
}

void NormaliseColumns(std::vector<double>& c, int hc, double eps) {
  for (int j = 0; j < hc; ++j) {
    double sum = eps;
    for (int i = 0; i < hc; ++i) sum += c[i * hc + j];
    for (int i = 0; i < hc; ++i) c[i * hc + j] /= sum;
  }
}

void Sinkhorn(std::vector<double>& c, int hc, double eps, int iterations) {
  for (int i = 0; i < hc; ++i) {
    const double largest = *std::max_element(&c[i * hc], &c[i * hc] + hc);
    for (int j = 0; j < hc; ++j) c[i * hc + j] = std::exp(c[i * hc + j] - largest);
  }
  NormaliseRows(c, hc, 0);
  for (double& value : c) value += eps;
  NormaliseColumns(c, hc, eps);
  for (int n = 1; n < iterations; ++n) {
    NormaliseRows(c, hc, eps);
    NormaliseColumns(c, hc, eps);
  }
}

}  // namespace

void HyperMixRef(const Backend&, const HyperMixParams& p) {
  const int hc = p.num_streams;
  for (int64_t t = 0; t < p.num_tokens; ++t) {
    const std::vector<float> mix = MixOf(p, p.streams + t * hc * p.dim);
    const auto scaled = [&](int k, int part) { return double{mix[k]} * p.scale[part] + p.base[k]; };
    for (int i = 0; i < hc; ++i) {
      p.pre_next[t * hc + i] = static_cast<float>(Sigmoid(scaled(i, 0)) + p.hc_eps);
      p.post[t * hc + i] = static_cast<float>(2 * Sigmoid(scaled(hc + i, 1)));
    }
    std::vector<double> comb(static_cast<size_t>(hc * hc));
    for (int k = 0; k < hc * hc; ++k) comb[k] = scaled(2 * hc + k, 2);
    Sinkhorn(comb, hc, p.hc_eps, p.sinkhorn_iterations - (DI_FAULT("sinkhorn_19_iters") ? 1 : 0));
    for (int k = 0; k < hc * hc; ++k) p.comb[t * hc * hc + k] = static_cast<float>(comb[k]);
  }
}

void HyperCollapseRef(const Backend&, const HyperCollapseParams& p) {
  const int64_t hc = p.num_streams;
  for (int64_t t = 0; t < p.num_tokens; ++t) {
    for (int64_t d = 0; d < p.dim; ++d) {
      double sum = 0;
      for (int64_t j = 0; j < hc; ++j)
        sum += double{p.pre[t * hc + j]} * ToFloat(p.streams[(t * hc + j) * p.dim + d]);
      p.out[t * p.dim + d] = ToBf16(sum);
    }
  }
}

void HyperUpdateRef(const Backend&, const HyperUpdateParams& p) {
  const int64_t hc = p.num_streams;
  const bool transposed = DI_FAULT("comb_transposed");
  std::vector<double> old(static_cast<size_t>(hc));
  for (int64_t t = 0; t < p.num_tokens; ++t) {
    const float* comb = p.comb + t * hc * hc;
    for (int64_t d = 0; d < p.dim; ++d) {
      const double y = ToFloat(p.y[t * p.dim + d]);
      for (int64_t i = 0; i < hc; ++i) old[i] = ToFloat(p.streams[(t * hc + i) * p.dim + d]);
      for (int64_t j = 0; j < hc; ++j) {
        double sum = p.post[t * hc + j] * y;
        for (int64_t i = 0; i < hc; ++i)
          sum += (transposed ? comb[j * hc + i] : comb[i * hc + j]) * old[i];
        p.streams[(t * hc + j) * p.dim + d] = ToBf16(sum);
      }
    }
  }
}

}  // namespace deepinfer
