// tests/fuzz/tensor_files.h: what holds of every opened checkpoint folder, however broken.
#pragma once

#include "model/safetensors.h"

namespace deepinfer::fuzz {

void CheckTensorFiles(const TensorFiles& files);
// What the quick reader makes of a text, as a header and as an index, the events make of it, too.
void CheckUsualJson(std::string_view text);

}  // namespace deepinfer::fuzz
