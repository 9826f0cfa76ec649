// Resources that a process has used so far, as the kernel reports them.
#ifndef PHIMAP_CLIENT_CLI_BENCH_BENCH_PROCESS_H_
#define PHIMAP_CLIENT_CLI_BENCH_BENCH_PROCESS_H_

#include <sys/types.h>

#include <cstdint>

#include "absl/status/statusor.h"

namespace phimap::cli {

struct ProcessUse {
  // User and system time of all threads, in microseconds.
  double cpu_us = 0;
  int64_t resident_bytes = 0;
  // Peak since the process started, or since 5 was written to /proc/PID/clear_refs.
  int64_t peak_resident_bytes = 0;
};

// Returns the use of this process, to the microsecond. Memory is 0.
ProcessUse OwnUse();

// Returns the use of any process that /proc shows, its CPU time to one tick of the kernel (10 ms).
// kNotFound if there is no such process.
absl::StatusOr<ProcessUse> UseOf(pid_t pid);

// Processors that this process may run on.
int UsableProcessors();

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BENCH_BENCH_PROCESS_H_
