// kernels/cpu/features.h: what this processor can run, and which variant that means.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "kernels/backend.h"

namespace deepinfer {

// Instruction sets that forms are written for. Set only where the operating system saves the
// registers too; of tiles it does so for processes that ask, which ThisCpu() does.
struct CpuFeatures {
  bool avx2 = false, fma = false, f16c = false;
  bool avx512 = false;  // F, BW, DQ and VL
  bool avx512_bf16 = false, avx512_vbmi = false, avx512_vnni = false;
  bool amx_bf16 = false;  // with AMX-TILE
};
const CpuFeatures& ThisCpu();

// The instruction sets that `variant` needs and `cpu` lacks, as "avx512_bf16 avx512_vnni"; "" = it
// runs. Variants of accelerators need what their parent needs.
std::string MissingFeatures(VariantId variant, const CpuFeatures& cpu = ThisCpu());

// ChooseVariant of kernels/backend.h for another processor.
StatusOr<VariantId> ChooseVariant(std::string_view name, const CpuFeatures& cpu);

}  // namespace deepinfer
