// engine/step_runner.h: the joint between planning and executing: jobs go in, and come out in
// order.
//
// Synchronous: Submit() runs the job. Asynchronous: a thread runs jobs one after the other, so that
// the next plan is made while a step runs; at most two jobs are inside.
// Threads: Submit, Wait and the destructor on the planning thread.
#pragma once

#include <memory>

#include "engine/step_executor.h"

namespace deepinfer {

class StepRunner {
 public:
  virtual ~StepRunner() = default;  // waits for what is inside
  // Takes a job until Wait() gives it back. Requires: num_inside() < depth().
  virtual void Submit(StepJob* job) = 0;
  // The oldest job, when it has run. Requires: num_inside() > 0.
  virtual StepJob* Wait() = 0;
  virtual int num_inside() const = 0;
  // Whether a submitted job would have to wait for another: the next plan came in time.
  virtual bool busy() const = 0;
  // How many jobs may be inside.
  virtual int depth() const = 0;
};

std::unique_ptr<StepRunner> MakeSyncRunner(StepExecutor* executor);
std::unique_ptr<StepRunner> MakeAsyncRunner(StepExecutor* executor);

}  // namespace deepinfer
