// kernels/hyper_connection/max_streams.h: the bound of hc_mult that every form may rely on.
#pragma once

namespace deepinfer {

inline constexpr int kMaxHyperStreams = 8;  // the model has 4

}  // namespace deepinfer
