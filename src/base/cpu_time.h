// base/cpu_time.h: processor time used so far, seconds.
#pragma once

namespace deepinfer {

double ThreadCpuSeconds();   // of the calling thread
double ProcessCpuSeconds();  // of all threads, ended ones too

}  // namespace deepinfer
