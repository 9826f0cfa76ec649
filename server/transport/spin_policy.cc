#include "server/transport/spin_policy.h"

#include <ctime>

namespace phimap {
namespace {

int64_t Read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

SpinPolicy::Times SpinPolicy::Now() {
  return {.wall = Read(CLOCK_MONOTONIC),
          .process = Read(CLOCK_PROCESS_CPUTIME_ID),
          .thread = Read(CLOCK_THREAD_CPUTIME_ID)};
}

void SpinPolicy::NoteTimes(const Times& now) {
  const int64_t others = (now.process - last_.process) - (now.thread - last_.thread);
  const int64_t wall = now.wall - last_.wall;
  core_free_ = static_cast<double>(others) <= kMostInUse * others_ * static_cast<double>(wall);
  last_ = now;
}

}  // namespace phimap
