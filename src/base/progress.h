// base/progress.h: shows how far long work has come: what, done of total, rate, time left.
//
// On a terminal one line is redrawn in place; elsewhere a line is printed every few seconds. Work
// that is over quickly prints nothing. Threads: Add() from any; the rest from the owner.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace deepinfer {

// Where the text goes and how often.
struct ProgressOutput {
  bool terminal = false;
  std::function<void(std::string_view)> write;

  // stderr; a terminal if that is one.
  static ProgressOutput Stderr();
};

class Progress {
 public:
  // what: "reading weights". unit: "bytes" is printed as KB, MB, GB; any other word as it stands.
  // total: in units; 0: not known. `clock` outlives this object.
  Progress(std::string what, std::string unit, int64_t total, Clock& clock,
           ProgressOutput output = ProgressOutput::Stderr());
  // Prints how it ended, if anything was shown before.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Add(int64_t count);

 private:
  std::string Line(MonotonicTime now, bool finished) const;
  void Print(MonotonicTime now, bool finished);

  const std::string what_, unit_;
  const int64_t total_;
  Clock& clock_;
  const ProgressOutput output_;
  const MonotonicTime start_;
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> next_print_ns_;
  std::mutex mutex_;  // one printer at a time
  bool shown_ = false;
};

// 1234567 -> "1.2 MB" (powers of 1000).
std::string BytesText(double bytes);

}  // namespace deepinfer
