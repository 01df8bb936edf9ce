// engine/mask_workers.h: threads that compute masks while the forward pass runs.
//
// Three kinds, so that a sequence whose masks are slow (large counted repetitions: 5 ms each) holds
// up nobody. Masks that are known to take longer than kSlowMaskSeconds have threads of a low
// priority: where the pass keeps every core busy, they get what it leaves. First masks, whose time
// nobody knows, have threads, too, so that quick ones never stand behind them.
// Threads: any.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "engine/sequence_masks.h"

namespace deepinfer {

inline constexpr double kSlowMaskSeconds = 0.001;

struct MaskOptions {
  int32_t num_threads = 1;  // of each kind
  // How long rows whose masks are not ready hold up the others, as a share of the pass. Where they
  // hold up nobody: as long as the pass took, since to run them again takes that, too.
  double wait_share = 0.02;
  Duration wait_least{0};  // for tests
};

class MaskWorkers {
 public:
  // num_threads: of each kind.
  explicit MaskWorkers(int num_threads);
  ~MaskWorkers();  // finishes what is being computed, drops what waits

  // `masks` have begun, or go on: see SequenceMasks. At most one request a sequence is inside.
  void Compute(std::shared_ptr<SequenceMasks> masks);
  // Waits until `masks` are ready, at most this long. Returns whether they are.
  bool Await(const SequenceMasks& masks, Duration most);

 private:
  struct Lane {
    std::deque<std::shared_ptr<SequenceMasks>> queue;
    std::condition_variable changed;
  };

  void Loop(Lane& lane);

  std::mutex mutex_;  // guards the queues and closing_; taken to tell that masks are ready
  std::condition_variable ready_;
  Lane first_, quick_, slow_;
  bool closing_ = false;
  std::vector<std::thread> threads_;  // last: they use what is above
};

}  // namespace deepinfer
