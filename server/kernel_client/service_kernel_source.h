// Gets a build's kernel values from a kernel service.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_SERVICE_KERNEL_SOURCE_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_SERVICE_KERNEL_SOURCE_H_

#include <memory>
#include <string>
#include <utility>

#include "core/plan/example_block.h"
#include "server/kernel_client/kernel_service.h"

namespace phimap {

// Block blocks the calling thread, and calls `alive` 20 times a second to learn whether to
// continue. If `right` has the same address as in the last call, it is taken to be unchanged:
// examples must not change while this object lives.
class ServiceKernelSource final : public KernelSource {
 public:
  // `service` must outlive this object.
  ServiceKernelSource(KernelService& service, std::string kernel)
      : service_(service), kernel_(std::move(kernel)) {}

  // Computes a block. Errors: those of KernelService, and FAILED_PRECONDITION:
  // KERNEL_SERVICE_ANSWER_INVALID for a value that is not finite, KERNEL_EXAMPLES_TOO_LARGE for
  // examples that do not fit into a message.
  absl::Status Block(const ExamplesView& left, const ExamplesView& right, MatrixView<double> out,
                     double* diagonal, Alive alive) override;
  double unit() const override { return unit_; }

 private:
  absl::Status Take(const KernelBlockAnswer& answer, MatrixView<double> out, double* diagonal);

  KernelService& service_;
  const std::string kernel_;
  double unit_ = 0x1p-53;
  // The columns of the last block, and their address.
  std::shared_ptr<const KernelExamples> right_;
  const void* right_place_ = nullptr;
  int64_t right_rows_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_SERVICE_KERNEL_SOURCE_H_
