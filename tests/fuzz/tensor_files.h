// tests/fuzz/tensor_files.h: what holds of every opened checkpoint folder, however broken.
#pragma once

#include "model/safetensors.h"

namespace deepinfer::fuzz {

void CheckTensorFiles(const TensorFiles& files);

}  // namespace deepinfer::fuzz
