// How often this server ended without shutting down: it crashed, was killed, or its machine failed.
//
// A stopped server and a crashed one look alike to those who scrape it, and a rollout stops every
// server. So the server itself keeps in a file whether it runs, and how many of the runs before
// never wrote that they ended. A file that is missing, as in a new container, means no crash.
#ifndef PHIMAP_SERVER_OBSERVE_CRASH_RECORD_H_
#define PHIMAP_SERVER_OBSERVE_CRASH_RECORD_H_

#include <cstdint>
#include <string>

#include "server/observe/log.h"

namespace phimap {

class CrashRecord {
 public:
  // Reads the record `path` of the process before, counts and logs a crash if that process did not
  // end in order, and records that this one runs. If the file cannot be used, logs that and counts
  // nothing. REQUIRES: no other process uses the file.
  CrashRecord(const std::string& path, const Logger& logger);
  // Records that this process ended in order. To be called last: what ends it now is a crash.
  ~CrashRecord();
  CrashRecord(const CrashRecord&) = delete;
  CrashRecord& operator=(const CrashRecord&) = delete;

  int64_t crashes() const { return crashes_; }

 private:
  // Overwrites the record. Needs no space on the disk, no memory and no descriptor, all of which a
  // server may lack when it ends. Nothing is synced: the record must survive the process only.
  bool Write(bool running) const;

  // -1 if the file cannot be used.
  const int file_;
  int64_t crashes_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_CRASH_RECORD_H_
