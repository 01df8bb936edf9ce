#include "kernels/backend.h"

#include <span>

namespace deepinfer {
namespace {

struct Variant {
  std::string name;
  VariantId parent;
};

// Looked at by every op, so it lies in no heap.
struct Registry {
  std::array<Variant, kMaxVariants> variants = {
      {{"ref", -1}, {"avx2", kRefVariant}, {"avx512", kAvx2Variant}, {"amx", kAvx512Variant}}};
  size_t count = 4;
};

Registry& TheRegistry() {
  static Registry registry;
  return registry;
}

std::span<const Variant> Variants() {
  return std::span(TheRegistry().variants).first(TheRegistry().count);
}

}  // namespace

VariantId RegisterVariant(std::string_view name, VariantId parent) {
  Registry& registry = TheRegistry();
  CHECK_LT(registry.count, static_cast<size_t>(kMaxVariants));
  registry.variants[registry.count] = {std::string(name), parent};
  return static_cast<VariantId>(registry.count++);
}

StatusOr<VariantId> FindVariant(std::string_view name) {
  const std::span<const Variant> variants = Variants();
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
