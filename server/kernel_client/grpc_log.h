// The lines of gRPC's own log, as lines of ours.
//
// gRPC writes them to stderr on the thread that has something to say, and waits for whoever reads.
//
// Guarantees: as Logger's: nobody waits, and more than may be is dropped. A line is event "grpc",
// at gRPC's level, with the message, at most 1 KiB of it, and the place in gRPC's source. What is
// below gRPC's own level (GRPC_VERBOSITY, error by default) does not come here. An assertion of
// gRPC's, which ends the process, is written at once, unless nobody reads.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_GRPC_LOG_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_GRPC_LOG_H_

#include "server/observe/log.h"

namespace phimap {

// From its construction on, for the process. What gRPC has to say after its end is dropped: threads
// of gRPC's are there as long as the process.
// REQUIRES: there is none yet.
class GrpcLog {
 public:
  explicit GrpcLog(const Logger& logger);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_GRPC_LOG_H_
