// Settings of the whole process: its limits and its signals.
#ifndef PHIMAP_SERVER_PROCESS_H_
#define PHIMAP_SERVER_PROCESS_H_

#include <cstdint>

namespace phimap {

// Raises the soft limit of open files to the hard one and returns it.
int64_t RaiseFileLimit();

// Debian's Abseil looks for cycles of locks at every lock that gRPC takes, as if it were debugged:
// a twentieth of a small call. Off, as gRPC's own releases have it.
void SwitchLockDebuggingOff();

// Gives buffers of 2 MiB and more back to the system when they are freed. By itself glibc keeps up
// to 32 MiB for the next, between others that are in use: requests and answers of 4 MiB took 94 MiB
// where their budget was 64.
void ReturnLargeBuffers();

// Blocks SIGTERM and SIGINT in this thread and in all that it starts. Call first of all.
void BlockStopSignals();

// Makes a write to a pipe or socket without a reader fail, as on a full disk, instead of ending the
// process: log lines are then lost, and the server continues.
void IgnoreBrokenPipes();

// Waits for SIGTERM or SIGINT and returns its number; from then on another one ends the process at
// once. REQUIRES: BlockStopSignals().
int WaitForStopSignal();

}  // namespace phimap

#endif  // PHIMAP_SERVER_PROCESS_H_
