// CPU time of the calling thread, which other processes distort less than wall time.
#ifndef PHIMAP_LAB_EXPERIMENTS_CPU_TIME_H_
#define PHIMAP_LAB_EXPERIMENTS_CPU_TIME_H_

#include <time.h>

namespace phimap::lab {

// Returns the user and system time, in seconds, since the thread began.
inline double ThreadCpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_CPU_TIME_H_
