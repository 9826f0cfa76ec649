#include "server/memory/capacity_watch.h"

#include <utility>

namespace phimap {

void CapacityWatch::Wait(Callback freed) {
  MutexLock lock(&mutex_);
  callbacks_.push_back(std::move(freed));
  waited_for_.store(true);
}

void CapacityWatch::Notify() {
  if (!waited_for_.load()) return;
  {
    MutexLock lock(&mutex_);
    freed_meanwhile_ = true;
    if (calling_) return;
    calling_ = true;
  }
  std::vector<Callback> woken;
  while (NextRound(woken)) {
    for (const Callback& freed : woken) freed();
    woken.clear();
  }
}

bool CapacityWatch::NextRound(std::vector<Callback>& woken) {
  MutexLock lock(&mutex_);
  calling_ = freed_meanwhile_;
  freed_meanwhile_ = false;
  if (!calling_) return false;
  woken.swap(callbacks_);
  waited_for_.store(false);
  return true;
}

}  // namespace phimap
