// Warnings about settings of memory that do not fit the machine or each other.
#ifndef PHIMAP_SERVER_MEMORY_WARNINGS_H_
#define PHIMAP_SERVER_MEMORY_WARNINGS_H_

#include "server/observe/log.h"
#include "server/options.h"

namespace phimap {

// Warns if the server could take more memory than its cgroup allows, and if the memory of requests
// is too small for the largest message.
void WarnOfMemory(const Logger& logger, const ServerOptions& options);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MEMORY_WARNINGS_H_
