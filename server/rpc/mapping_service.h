// MappingService: see proto/phimap/v1/mapping_service.proto.
#ifndef PHIMAP_SERVER_RPC_MAPPING_SERVICE_H_
#define PHIMAP_SERVER_RPC_MAPPING_SERVICE_H_

#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "server/build/build_estimator.h"
#include "server/build/build_manager.h"
#include "server/registry/version_registry.h"
#include "server/rpc/mapping_changes.h"
#include "server/rpc/service_methods.h"
#include "server/schedule/task_pool.h"
#include "server/store/store.h"

namespace phimap {

// Thread-safe. What it is made from outlives it.
class MappingService final : public v1::MappingService::CallbackService {
 public:
  // Store calls run on `store_pool`.
  MappingService(Store& store, VersionRegistry& registry, BuildManager& builds,
                 TaskPool& store_pool, const AccessControl& access, Metrics& metrics,
                 const Logger& logger);

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  Unary* GetBuild(Context* context, const v1::GetBuildRequest* request,
                  v1::BuildJob* response) override;
  Unary* CancelBuild(Context* context, const v1::CancelBuildRequest* request,
                     v1::BuildJob* response) override;
  Unary* ListBuilds(Context* context, const v1::ListBuildsRequest* request,
                    v1::ListBuildsResponse* response) override;

  Unary* GetMapping(Context* context, const v1::GetMappingRequest* request,
                    v1::Mapping* response) override;
  Unary* ListMappings(Context* context, const v1::ListMappingsRequest* request,
                      v1::ListMappingsResponse* response) override;
  Unary* GetVersion(Context* context, const v1::GetVersionRequest* request,
                    v1::Version* response) override;
  Unary* ListVersions(Context* context, const v1::ListVersionsRequest* request,
                      v1::ListVersionsResponse* response) override;

  Unary* Advise(Context* context, const v1::AdviseRequest* request,
                v1::AdviseResponse* response) override;
  Unary* EstimateBuild(Context* context, const v1::EstimateBuildRequest* request,
                       v1::EstimateBuildResponse* response) override;

  Unary* DeleteVersion(Context* context, const v1::DeleteVersionRequest* request,
                       v1::DeleteVersionResponse*) override;
  Unary* DeleteMapping(Context* context, const v1::DeleteMappingRequest* request,
                       v1::DeleteMappingResponse*) override;
  Unary* SetAlias(Context* context, const v1::SetAliasRequest* request,
                  v1::Alias* response) override;
  Unary* DeleteAlias(Context* context, const v1::DeleteAliasRequest* request,
                     v1::DeleteAliasResponse*) override;

  grpc::ServerWriteReactor<v1::ArtifactChunk>* Export(Context* context,
                                                      const v1::ExportRequest* request) override;

 private:
  // Takes the RPCs over from the handlers that gRPC generated.
  void TakeRequests();
  grpc::ServerBidiReactor<grpc::ByteBuffer, v1::BuildResponse>* OpenBuild(Context* context);
  grpc::ServerReadReactor<grpc::ByteBuffer>* OpenImport(Context* context, v1::Version* response);

  Unary* OnStoreThread(Context* context, const char* method, std::function<absl::Status()> body);

  // The bodies: blocking, on a store thread.
  absl::Status DoGetBuild(const v1::GetBuildRequest& request, v1::BuildJob* response);
  absl::Status DoCancelBuild(const v1::CancelBuildRequest& request, v1::BuildJob* response);
  absl::Status DoListBuilds(const v1::ListBuildsRequest& request, v1::ListBuildsResponse* response);
  absl::Status DoGetMapping(const v1::GetMappingRequest& request, v1::Mapping* response);
  absl::Status DoListMappings(const v1::ListMappingsRequest& request,
                              v1::ListMappingsResponse* response);
  absl::Status DoGetVersion(const v1::GetVersionRequest& request, v1::Version* response);
  absl::Status DoListVersions(const v1::ListVersionsRequest& request,
                              v1::ListVersionsResponse* response);
  absl::Status DoDeleteVersion(const v1::DeleteVersionRequest& request);
  absl::Status DoDeleteMapping(const v1::DeleteMappingRequest& request);
  absl::Status DoDeleteAlias(const v1::DeleteAliasRequest& request);

  Store& store_;
  VersionRegistry& registry_;
  BuildManager& builds_;
  TaskPool& store_pool_;
  MappingChanges changes_;
  BuildEstimator estimator_;
  const Logger& logger_;
  const ServiceMethods methods_;
  const RpcMethod& build_;
  std::atomic<int> exports_{0};
  std::atomic<int> imports_{0};
  // Last, so that it ends first.
  TaskPool import_pool_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_MAPPING_SERVICE_H_
