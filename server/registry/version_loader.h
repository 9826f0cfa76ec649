// Loads a version from its record, so that it is ready to serve.
#ifndef PHIMAP_SERVER_REGISTRY_VERSION_LOADER_H_
#define PHIMAP_SERVER_REGISTRY_VERSION_LOADER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/plan/plan.h"
#include "server/kernel_client/kernel_service.h"
#include "server/observe/metrics.h"
#include "server/registry/version_handle.h"
#include "server/store/store.h"

namespace phimap {

// Immutable, thread-safe.
class VersionLoader {
 public:
  // `store`, `metrics` and `kernels` must outlive the loader. `kernels` finds the services that
  // compute remote kernels; null if none are listed.
  VersionLoader(Store& store, const RegistryMetrics& metrics, const KernelServices* kernels)
      : store_(store), metrics_(metrics), kernels_(kernels) {}

  // Reads the artifact, decodes it and packs it. Blocking. Errors: those of the store, of
  // DecodeArtifact and of Engine::Load; KERNEL_SERVICE_NOT_LISTED; RESOURCE_EXHAUSTED
  // (MACHINE_MEMORY_FULL).
  absl::StatusOr<std::shared_ptr<const LiveVersion>> Load(const VersionRecord& record) const;

 private:
  absl::StatusOr<std::shared_ptr<const LiveVersion>> Unpack(const VersionRecord& record) const;
  // Returns a queue to the service that computes the plan's kernel, or null if the kernel is not
  // remote.
  absl::StatusOr<std::shared_ptr<KernelQueue>> KernelOf(const Plan& plan, bool want_diagonal) const;

  Store& store_;
  const RegistryMetrics& metrics_;
  const KernelServices* const kernels_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_VERSION_LOADER_H_
