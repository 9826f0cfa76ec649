// Adapts the answers of a kernel service to rows of the engine.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_REMOTE_KERNEL_ROWS_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_REMOTE_KERNEL_ROWS_H_

#include <memory>

#include "absl/status/status.h"
#include "core/plan/rows.h"
#include "server/kernel_client/kernel_queue.h"

namespace phimap {

// The values of an answer as rows. If K(x, x) was requested, it follows the values of each row, in
// float64. Not thread-safe.
class RemoteKernelRows {
 public:
  // `queue` must outlive this object.
  RemoteKernelRows(KernelRows values, const KernelQueue& queue);

  // The rows. If they include K(x, x), their content must not be read before Fill.
  const RowsView& rows() const { return rows_; }

  // Fills in the rows. Returns OK if all values are finite, and otherwise KernelService::NotFinite.
  // Runs too long for an event loop, so call it on a worker.
  absl::Status Fill();

 private:
  absl::Status Fault() const;

  const KernelRows values_;
  const KernelQueue& queue_;
  RowsView rows_;
  std::unique_ptr<double[]> numbers_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_REMOTE_KERNEL_ROWS_H_
