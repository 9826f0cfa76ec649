// Time that the calling thread spent on a processor, which other processes lengthen less than they
// lengthen time on the wall.
#ifndef PHIMAP_LAB_EXPERIMENTS_CPU_TIME_H_
#define PHIMAP_LAB_EXPERIMENTS_CPU_TIME_H_

#include <time.h>

namespace phimap::lab {

// Seconds since the thread began, user and system.
inline double ThreadCpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_CPU_TIME_H_
