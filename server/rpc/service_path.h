// The way of rows by the service that computes a version's kernel.
#ifndef PHIMAP_SERVER_RPC_SERVICE_PATH_H_
#define PHIMAP_SERVER_RPC_SERVICE_PATH_H_

#include <memory>

#include "server/rpc/row_mapping.h"

namespace phimap {

// Asks the version's service for the rows' kernel values, without a thread that waits, and goes on
// with them in the rows' place. Errors for `mapping->done`: those of CheckExamples, of the kernel
// queue (server/kernel/kernel_queue.h), and of SubmitRows; what the scheduler has no room for by
// then is RESOURCE_EXHAUSTED (KERNEL_QUEUE_FULL), because IsLackOfRoom speaks of what was refused
// at once. REQUIRES: the version has a kernel().
void MapByService(const std::shared_ptr<RowMapping>& mapping);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_SERVICE_PATH_H_
