// The lines of gRPC's own log, as lines of ours.
//
// gRPC writes them to stderr on the thread that reports them, and waits for the reader.
//
// Guarantees: those of Logger: no thread waits, and excess messages are dropped. A line is event
// "grpc", at gRPC's level, with the message, at most 1 KiB of it, and the place in gRPC's source.
// Messages below gRPC's own level (GRPC_VERBOSITY, error by default) do not arrive here. An
// assertion of gRPC's, which ends the process, is written at once, if stderr has a reader.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_GRPC_LOG_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_GRPC_LOG_H_

#include "server/observe/log.h"

namespace phimap {

// From its construction on, for the process. Messages after its end are dropped: gRPC's threads
// live as long as the process.
// REQUIRES: no other GrpcLog exists.
class GrpcLog {
 public:
  explicit GrpcLog(const Logger& logger);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_GRPC_LOG_H_
