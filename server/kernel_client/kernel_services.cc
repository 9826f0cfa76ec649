#include "server/kernel_client/kernel_services.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/error.h"
#include "server/kernel_client/answer_queue.h"

namespace phimap {

KernelServices::KernelServices(const std::vector<KernelAddress>& addresses,
                               const KernelService::Options& options, KernelMetrics& metrics)
    : answers_(addresses.empty() ? nullptr : std::make_unique<AnswerQueue>()) {
  for (const KernelAddress& address : addresses) {
    services_[address.name] = std::make_unique<KernelService>(
        address, options, metrics.AddService(address.name), *answers_);
  }
}

KernelServices::~KernelServices() = default;

KernelService* KernelServices::Find(absl::string_view name) const {
  const auto found = services_.find(name);
  return found == services_.end() ? nullptr : found->second.get();
}

absl::StatusOr<KernelService*> FindKernelService(const KernelServices* services,
                                                 absl::string_view name, absl::string_view field) {
  KernelService* const service = services == nullptr ? nullptr : services->Find(name);
  if (service != nullptr) return service;
  return MakeError(absl::StatusCode::kFailedPrecondition, "KERNEL_SERVICE_NOT_LISTED", field,
                   absl::StrCat("kernel service ", Quoted(name),
                                " is not on the operator's list (phimapd --kernel_service)"),
                   {{"service", Excerpt(name)}});
}

void KernelServices::Stop() {
  for (const auto& [name, service] : services_) service->Stop();
}

}  // namespace phimap
