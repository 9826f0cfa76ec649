// Redirects gRPC's own log to phimap's log.
//
// By default gRPC writes its log to stderr on the thread that logs, and blocks until the reader
// takes it.
//
// Guarantees: those of Logger: no thread waits, and excess messages are dropped. Each message
// becomes a line with event "grpc", gRPC's level, at most 1 KiB of the message, and the place in
// gRPC's source. Messages below gRPC's own level (GRPC_VERBOSITY, error by default) do not arrive
// here. A failed assertion in gRPC, which ends the process, is written to stderr at once if stderr
// is writable.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_GRPC_LOG_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_GRPC_LOG_H_

#include "server/observe/log.h"

namespace phimap {

// Redirects gRPC's log in the whole process for as long as this object exists. Messages after its
// destruction are dropped: gRPC's threads live as long as the process. REQUIRES: no other GrpcLog
// exists.
class GrpcLog {
 public:
  explicit GrpcLog(const Logger& logger);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_GRPC_LOG_H_
