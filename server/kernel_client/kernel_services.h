// The kernel services on the operator's list.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_SERVICES_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_SERVICES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/kernel_client/kernel_address.h"
#include "server/kernel_client/kernel_service.h"
#include "server/observe/kernel_metrics.h"

namespace phimap {

class AnswerQueue;

// Immutable; thread-safe. Owns the one thread on which all answers arrive.
class KernelServices {
 public:
  // Connects to no service before its first call. If two addresses have the same name, the last one
  // is used.
  KernelServices(const std::vector<KernelAddress>& addresses, const KernelService::Options& options,
                 KernelMetrics& metrics);
  // Stops all services.
  ~KernelServices();

  // Returns the service, or null for a name that is not listed. The result lives as long as this
  // object.
  KernelService* Find(absl::string_view name) const;

  // Calls KernelService::Stop on all services.
  void Stop();

 private:
  // Null if there are no services. Declared first, so that it is destroyed last: all calls must
  // have ended by then.
  std::unique_ptr<AnswerQueue> answers_;
  std::map<std::string, std::unique_ptr<KernelService>, std::less<>> services_;
};

// Returns the service of this name, or FAILED_PRECONDITION (KERNEL_SERVICE_NOT_LISTED, with
// `field`) if it is not listed. A null `services` lists none.
absl::StatusOr<KernelService*> FindKernelService(const KernelServices* services,
                                                 absl::string_view name, absl::string_view field);

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_SERVICES_H_
