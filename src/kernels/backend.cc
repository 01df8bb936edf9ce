#include "kernels/backend.h"

namespace deepinfer {
namespace {

struct Variant {
  std::string name;
  VariantId parent;
};

std::vector<Variant>& Variants() {
  static std::vector<Variant> variants = {
      {"ref", -1}, {"avx2", kRefVariant}, {"avx512", kAvx2Variant}, {"amx", kAvx512Variant}};
  return variants;
}

}  // namespace

VariantId RegisterVariant(std::string_view name, VariantId parent) {
  std::vector<Variant>& variants = Variants();
  CHECK_LT(variants.size(), static_cast<size_t>(kMaxVariants));
  variants.push_back({std::string(name), parent});
  return static_cast<VariantId>(variants.size()) - 1;
}

StatusOr<VariantId> FindVariant(std::string_view name) {
  const std::vector<Variant>& variants = Variants();
  for (size_t i = 0; i < variants.size(); ++i) {
    if (variants[i].name == name) return static_cast<VariantId>(i);
  }
  return InvalidArgument("no kernel variant '", name, "'; there are: ", Join(VariantNames(), ", "));
}

std::vector<std::string> VariantNames() {
  std::vector<std::string> names;
  for (const Variant& variant : Variants()) names.push_back(variant.name);
  return names;
}

VariantId VariantParent(VariantId variant) {
  return Variants()[static_cast<size_t>(variant)].parent;
}

}  // namespace deepinfer
