#include "kernels/cpu/features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace deepinfer {
namespace {

// clang 16's __builtin_cpu_supports does not know f16c.
bool HasF16c() {
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

// Linux gives a process the tile registers when it asks for them, which holds for all its threads
// (Documentation/arch/x86/xstate.rst).
bool AskForTiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // asm/prctl.h, XCR0
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool HasAmxBf16() {
  constexpr unsigned int kAmxBf16AndTile = 1u << 22 | 1u << 24, kTileState = 3u << 17;
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & bit_OSXSAVE) == 0) return false;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kAmxBf16AndTile) != kAmxBf16AndTile) return false;
  unsigned int enabled = 0;
  asm("xgetbv" : "=a"(enabled), "=d"(edx) : "c"(0));
  return (enabled & kTileState) == kTileState && AskForTiles();
}

CpuFeatures Detect() {
  __builtin_cpu_init();
  CpuFeatures cpu;
  cpu.avx2 = __builtin_cpu_supports("avx2");
  cpu.fma = __builtin_cpu_supports("fma");
  cpu.f16c = HasF16c();
  cpu.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  cpu.avx512_bf16 = __builtin_cpu_supports("avx512bf16");
  cpu.avx512_vbmi = __builtin_cpu_supports("avx512vbmi");
  cpu.avx512_vnni = __builtin_cpu_supports("avx512vnni");
  cpu.amx_bf16 = HasAmxBf16();
  return cpu;
}

}  // namespace

const CpuFeatures& ThisCpu() {
  static const CpuFeatures cpu = Detect();
  return cpu;
}

std::string MissingFeatures(VariantId variant, const CpuFeatures& cpu) {
  std::vector<std::string> missing;
  const auto need = [&](bool has, const char* name) {
    if (!has) missing.emplace_back(name);
  };
  for (; variant > kAmxVariant; variant = VariantParent(variant)) continue;
  if (variant >= kAvx2Variant) {
    need(cpu.avx2, "avx2");
    need(cpu.fma, "fma");
    need(cpu.f16c, "f16c");
  }
  if (variant >= kAvx512Variant) {
    need(cpu.avx512, "avx512");
    need(cpu.avx512_bf16, "avx512_bf16");
    need(cpu.avx512_vbmi, "avx512_vbmi");
    need(cpu.avx512_vnni, "avx512_vnni");
  }
  if (variant >= kAmxVariant) need(cpu.amx_bf16, "amx_bf16");
  return Join(missing, " ");
}

StatusOr<VariantId> ChooseVariant(std::string_view name, const CpuFeatures& cpu) {
  if (name == "auto" || name == "cpu") {
    if (MissingFeatures(kAvx512Variant, cpu).empty()) return kAvx512Variant;
    name = "avx2";
  }
  DI_ASSIGN_OR_RETURN(const VariantId variant, FindVariant(name));
  const std::string missing = MissingFeatures(variant, cpu);
  if (missing.empty()) return variant;
  return FailedPrecondition("processor: no ", missing, ", which variant ", name,
                            " needs; --variant auto takes the fastest that runs here, --variant "
                            "ref runs everywhere and is slow");
}

StatusOr<VariantId> ChooseVariant(std::string_view name) { return ChooseVariant(name, ThisCpu()); }

}  // namespace deepinfer
