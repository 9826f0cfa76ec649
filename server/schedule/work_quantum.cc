#include "server/schedule/work_quantum.h"

#include <utility>

namespace phimap {

WorkQuantum::WorkQuantum(std::function<void()> yield, Clock::duration quantum,
                         std::function<Clock::time_point()> now)
    : yield_(std::move(yield)), quantum_(quantum), now_(std::move(now)) {}

void WorkQuantum::Begin() { since_ = now_(); }

void WorkQuantum::End() {
  Count();
  since_.reset();
}

void WorkQuantum::Count() {
  if (!since_.has_value()) return;
  const Clock::time_point now = now_();
  worked_ += now - *since_;
  since_ = now;
}

void WorkQuantum::YieldIfDue() {
  Count();
  if (worked_ < quantum_) return;
  worked_ = Clock::duration::zero();
  if (yield_) yield_();
  if (since_.has_value()) since_ = now_();
}

}  // namespace phimap
