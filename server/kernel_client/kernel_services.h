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
  // No connection is made before the first call. The last of two addresses of one name counts.
  KernelServices(const std::vector<KernelAddress>& addresses, const KernelService::Options& options,
                 KernelMetrics& metrics);
  // Stops them.
  ~KernelServices();

  // Null for a name that is not listed. What it returns lives as long as this.
  KernelService* Find(absl::string_view name) const;

  // As KernelService::Stop, of all.
  void Stop();

 private:
  // Null without services. It goes last: only when no call is under way may a queue end.
  std::unique_ptr<AnswerQueue> answers_;
  std::map<std::string, std::unique_ptr<KernelService>, std::less<>> services_;
};

// The service of this name; FAILED_PRECONDITION (KERNEL_SERVICE_NOT_LISTED, with `field`) if there
// is none. `services` may be null: then none is.
absl::StatusOr<KernelService*> FindKernelService(const KernelServices* services,
                                                 absl::string_view name, absl::string_view field);

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_SERVICES_H_
