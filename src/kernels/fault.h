// kernels/fault.h: mistakes on purpose, for the tests that prove that the tests can see them.
//
// Product builds compile every DI_FAULT(...) to false. The test build of kernels/ and model/
// (DI_FAULTS=1) asks at run time; the golden check is then run once per fault and must turn red.
#pragma once

#include <string_view>

namespace deepinfer {

#if defined(DI_FAULTS) && DI_FAULTS
bool FaultIs(std::string_view name);
void SetFault(std::string_view name);  // "" = none
#define DI_FAULT(name) (::deepinfer::FaultIs(name))
#else
#define DI_FAULT(name) (false)
#endif

}  // namespace deepinfer
