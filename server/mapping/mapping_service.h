// MappingService: see proto/phimap/v1/mapping_service.proto.
#ifndef PHIMAP_SERVER_MAPPING_MAPPING_SERVICE_H_
#define PHIMAP_SERVER_MAPPING_MAPPING_SERVICE_H_

#include "absl/status/status.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/admission/caller_shares.h"
#include "server/build/build_manager.h"
#include "server/drift/drift_watcher.h"
#include "server/mapping/artifact_calls.h"
#include "server/mapping/forecasts.h"
#include "server/mapping/mapping_changes.h"
#include "server/mapping/version_lifetimes.h"
#include "server/registry/version_registry.h"
#include "server/rpc/dispatcher.h"
#include "server/schedule/task_pool.h"
#include "server/store/store.h"

namespace phimap {

// State that the calls of the service share. The constructor's arguments must outlive the service,
// and the service must outlive its calls.
class MappingService {
 public:
  // Calls of the store run on `store_pool`, except administrative calls, which run on `admin_pool`
  // so that readers do not delay them.
  MappingService(Store& store, VersionRegistry& registry, BuildManager& builds, DriftWatcher& drift,
                 TaskPool& store_pool, TaskPool& admin_pool, const Logger& logger);

  void AddTo(Dispatcher& dispatcher);
  // Starts to record uses of versions and to delete expired versions.
  void KeepLifetimes() { lifetimes_.Start(); }

 private:
  // Returns a method that runs `body`, one of those below, on `pool`.
  template <typename Request, typename Response>
  Method::Open OnPool(TaskPool& pool,
                      absl::Status (MappingService::*body)(Call&, const Request&, Response*));

  // The bodies of unary methods. Blocking; each runs on a thread of its pool.
  absl::Status GetBuild(Call& call, const v1::GetBuildRequest& request, v1::BuildJob* response);
  absl::Status CancelBuild(Call& call, const v1::CancelBuildRequest& request,
                           v1::BuildJob* response);
  absl::Status ListBuilds(Call& call, const v1::ListBuildsRequest& request,
                          v1::ListBuildsResponse* response);
  absl::Status GetMapping(Call& call, const v1::GetMappingRequest& request, v1::Mapping* response);
  absl::Status ListMappings(Call& call, const v1::ListMappingsRequest& request,
                            v1::ListMappingsResponse* response);
  absl::Status GetVersion(Call& call, const v1::GetVersionRequest& request, v1::Version* response);
  absl::Status ListVersions(Call& call, const v1::ListVersionsRequest& request,
                            v1::ListVersionsResponse* response);
  absl::Status KeepVersion(Call& call, const v1::KeepVersionRequest& request,
                           v1::Version* response);
  absl::Status DeleteVersion(Call& call, const v1::DeleteVersionRequest& request,
                             v1::DeleteVersionResponse*);
  absl::Status DeleteMapping(Call& call, const v1::DeleteMappingRequest& request,
                             v1::DeleteMappingResponse*);
  absl::Status DeleteAlias(Call& call, const v1::DeleteAliasRequest& request,
                           v1::DeleteAliasResponse*);
  absl::Status Advise(Call&, const v1::AdviseRequest& request, v1::AdviseResponse* response);
  absl::Status EstimateBuild(Call&, const v1::EstimateBuildRequest& request,
                             v1::EstimateBuildResponse* response);
  absl::Status ListCapabilities(Call&, const v1::ListCapabilitiesRequest& request,
                                v1::ListCapabilitiesResponse* response);
  absl::Status ListAuditEntries(Call& call, const v1::ListAuditEntriesRequest& request,
                                v1::ListAuditEntriesResponse* response);
  absl::Status GetDrift(Call& call, const v1::GetDriftRequest& request,
                        v1::GetDriftResponse* response);

  Store& store_;
  VersionRegistry& registry_;
  BuildManager& builds_;
  DriftWatcher& drift_;
  TaskPool& store_pool_;
  TaskPool& admin_pool_;
  MappingChanges changes_;
  VersionLifetimes lifetimes_;
  BuildEstimator estimator_;
  SharedPlaces exports_{kMaxExports};
  SharedPlaces imports_{kMaxImports};
  const SetAliasEnvironment set_alias_;
  const ExportEnvironment exporting_;
  const ImportEnvironment importing_;
  // Declared last, so that its thread ends first.
  TaskPool import_pool_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_MAPPING_SERVICE_H_
