// A kernel service as the source of a build's values.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_SERVICE_KERNEL_SOURCE_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_SERVICE_KERNEL_SOURCE_H_

#include <memory>
#include <string>
#include <utility>

#include "core/plan/kernel_source.h"
#include "server/kernel_client/kernel_service.h"

namespace phimap {

// The calling thread waits for each block, and asks whether it should 20 times a second. `right` is
// taken to be unchanged when its memory is the same: examples must not change while this object
// lives.
class ServiceKernelSource final : public KernelSource {
 public:
  // `service` outlives this.
  ServiceKernelSource(KernelService& service, std::string kernel)
      : service_(service), kernel_(std::move(kernel)) {}

  // Errors: those of KernelService; FAILED_PRECONDITION (KERNEL_SERVICE_ANSWER_INVALID) for a value
  // that is not finite, (KERNEL_EXAMPLES_TOO_LARGE) for examples that no message holds.
  absl::Status Block(const ExamplesView& left, const ExamplesView& right, MatrixView<double> out,
                     double* diagonal, Alive alive) override;
  double unit() const override { return unit_; }

 private:
  absl::Status Take(const KernelBlockAnswer& answer, MatrixView<double> out, double* diagonal);

  KernelService& service_;
  const std::string kernel_;
  double unit_ = 0x1p-53;
  // The last columns, and where they are.
  std::shared_ptr<const KernelExamples> right_;
  const void* right_place_ = nullptr;
  int64_t right_rows_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_SERVICE_KERNEL_SOURCE_H_
