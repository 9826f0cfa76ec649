// Adapts the answers of a kernel service to rows of the engine.
#ifndef PHIMAP_SERVER_SERVING_REMOTE_KERNEL_ROWS_H_
#define PHIMAP_SERVER_SERVING_REMOTE_KERNEL_ROWS_H_

#include <memory>

#include "absl/status/status.h"
#include "core/plan/rows.h"
#include "server/kernel_client/kernel_queue.h"

namespace phimap {

// The values of an answer, or with K(x, x) behind each row in float64 where that was asked for. Not
// thread-safe.
class RemoteKernelRows {
 public:
  // `queue` outlives this.
  RemoteKernelRows(KernelRows values, const KernelQueue& queue);

  // With K(x, x), nothing that may be read before Fill.
  const RowsView& rows() const { return rows_; }

  // Fills in the rows. OK if all values are finite, otherwise KernelService::NotFinite. Runs too
  // long for an event loop: call it on a worker.
  absl::Status Fill();

 private:
  absl::Status Fault() const;

  const KernelRows values_;
  const KernelQueue& queue_;
  RowsView rows_;
  std::unique_ptr<double[]> numbers_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SERVING_REMOTE_KERNEL_ROWS_H_
