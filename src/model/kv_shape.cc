#include "model/kv_shape.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {

KvShape MakeKvShape(const ModelConfig& config) {
  std::vector<int32_t> ratios;
  for (const int32_t layer : config.kv_source_layer_ids) ratios.push_back(config.ratio(layer));
  KvShape shape;
  shape.layout = MakePageLayout(config.head_dim, config.index_head_dim, ratios);
  shape.num_rings = config.num_hidden_layers + config.num_nextn_predict_layers;
  shape.verify_width = 1 + config.dspark_block_size;
  shape.ring_rows = config.sliding_window + shape.verify_width;
  return shape;
}

int32_t KvSourceIndex(const ModelConfig& config, int32_t source_layer) {
  const std::vector<int32_t>& ids = config.kv_source_layer_ids;
  const auto at = std::find(ids.begin(), ids.end(), source_layer);
  CHECK(at != ids.end());
  return static_cast<int32_t>(at - ids.begin());
}

}  // namespace deepinfer
