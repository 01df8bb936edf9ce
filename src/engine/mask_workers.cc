#include "engine/mask_workers.h"

#include "base/check.h"
#include "base/no_wait.h"
#include "base/thread_priority.h"

namespace deepinfer {

MaskWorkers::MaskWorkers(int num_threads) {
  CHECK_GE(num_threads, 1);
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this] { Loop(first_); });
    threads_.emplace_back([this] { Loop(quick_); });
    threads_.emplace_back([this] {
      LowerThreadPriority();
      Loop(slow_);
    });
  }
}

MaskWorkers::~MaskWorkers() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  for (Lane* const lane : {&first_, &quick_, &slow_}) lane->changed.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void MaskWorkers::Compute(std::shared_ptr<SequenceMasks> masks) {
  Lane& lane = !masks->mask_seconds()                      ? first_
               : *masks->mask_seconds() > kSlowMaskSeconds ? slow_
                                                           : quick_;
  {
    const std::lock_guard lock(mutex_);
    lane.queue.push_back(std::move(masks));
  }
  lane.changed.notify_one();
}

bool MaskWorkers::Await(const SequenceMasks& masks, Duration most) {
  CheckMayWait();
  std::unique_lock lock(mutex_);
  return ready_.wait_for(lock, most, [&masks] { return masks.ready(); });
}

void MaskWorkers::Loop(Lane& lane) {
  std::unique_lock lock(mutex_);
  while (true) {
    lane.changed.wait(lock, [&] { return closing_ || !lane.queue.empty(); });
    if (closing_) return;
    std::shared_ptr<SequenceMasks> masks = std::move(lane.queue.front());
    lane.queue.pop_front();
    lock.unlock();
    if (!masks->cancelled()) {
      masks->Compute();
      const std::lock_guard telling(mutex_);
      masks->SetReady();
      ready_.notify_all();
    }
    masks.reset();  // perhaps the last one who knew them
    lock.lock();
  }
}

}  // namespace deepinfer
