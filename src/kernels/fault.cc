#include "kernels/fault.h"

#include <string>

namespace deepinfer {

#if defined(DI_FAULTS) && DI_FAULTS
namespace {
std::string& Current() {
  static std::string name;
  return name;
}
}  // namespace

bool FaultIs(std::string_view name) { return Current() == name; }
void SetFault(std::string_view name) { Current() = name; }
#endif

}  // namespace deepinfer
