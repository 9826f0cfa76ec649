// Settings of the whole process: its limits and its signals.
#ifndef PHIMAP_SERVER_PROCESS_H_
#define PHIMAP_SERVER_PROCESS_H_

#include <cstdint>

namespace phimap {

// Raises the soft limit of open files to the hard limit, and returns it.
int64_t RaiseFileLimit();

// Switches off Abseil's deadlock detection, as gRPC's own releases do. In Debian's Abseil it is on
// by default. It then searches for cycles whenever gRPC takes a lock, which takes a twentieth of
// the time of a small call.
void SwitchLockDebuggingOff();

// Makes glibc return buffers of 2 MiB and more to the system when they are freed. By default glibc
// may keep freed buffers of up to 32 MiB each for reuse, as gaps between buffers that are still in
// use. In a test, requests and answers of 4 MiB took 94 MiB although their budget was 64 MiB.
void ReturnLargeBuffers();

// Blocks SIGTERM and SIGINT in this thread and in all threads that it starts. Must be called before
// anything else.
void BlockStopSignals();

// Makes a write to a pipe or socket without a reader fail instead of ending the process. Log lines
// are then lost, and the server continues. Also ignores SIGHUP, which a terminal sends when it
// closes, and which asks other servers to read their files again; this one sees changed files
// itself.
void IgnoreBrokenPipesAndHangups();

// Waits for SIGTERM or SIGINT and returns its number. From then on, another such signal ends the
// process at once. REQUIRES: BlockStopSignals() was called.
int WaitForStopSignal();

}  // namespace phimap

#endif  // PHIMAP_SERVER_PROCESS_H_
