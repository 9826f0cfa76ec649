#include "server/rpc/mapping_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "server/build/version_reader.h"
#include "server/registry/reference.h"
#include "server/rpc/advise_from_proto.h"
#include "server/rpc/blocking_call.h"
#include "server/rpc/build_call.h"
#include "server/rpc/build_spec_from_proto.h"
#include "server/rpc/estimate_from_proto.h"
#include "server/rpc/export_call.h"
#include "server/rpc/import_call.h"
#include "server/rpc/page_token.h"
#include "server/rpc/request_message.h"
#include "server/rpc/set_alias_call.h"
#include "server/rpc/version_to_proto.h"

namespace phimap {
namespace {

constexpr char kMappingList[] = "mappings";
// A page ends once it is over this, whatever was asked for: texts and aliases have no usual length,
// and clients of any language take 4 MiB unless they are told otherwise.
constexpr size_t kPageBytes = size_t{2} << 20;

std::string VersionList(const std::string& mapping) { return absl::StrCat("versions/", mapping); }

// The number after which a page of versions starts, from its token.
absl::StatusOr<std::optional<int64_t>> VersionPosition(const v1::ListVersionsRequest& request) {
  if (request.page_token().empty()) return std::optional<int64_t>();
  PHIMAP_ASSIGN_OR_RETURN(const std::string position,
                          DecodePageToken(VersionList(request.mapping()), request.page_token()));
  int64_t number = 0;
  if (!absl::SimpleAtoi(position, &number)) {
    return absl::InternalError("a page token of ours does not hold a number");
  }
  return std::optional<int64_t>(number);
}

}  // namespace

MappingService::MappingService(Store& store, VersionRegistry& registry, BuildManager& builds,
                               TaskPool& store_pool, const AccessControl& access, Metrics& metrics,
                               const Logger& logger)
    : store_(store),
      registry_(registry),
      builds_(builds),
      store_pool_(store_pool),
      changes_(store, registry, builds, logger),
      estimator_(MeasureBuildSpeed, builds.compute_threads()),
      logger_(logger),
      methods_(*v1::BuildRequest::descriptor()->file()->FindServiceByName("MappingService"), access,
               metrics),
      build_(methods_.Get("Build")),
      import_pool_("imports", /*threads=*/1, kMaxImports) {
  TakeRequests();
}

void MappingService::TakeRequests() {
  const auto take = [this](const char* name, auto answer) {
    const RpcMethod& method = methods_.Get(name);
    MarkMethodCallback(method.index, NewRequestHandler(*this, answer, method, logger_));
  };
  take("GetBuild", &MappingService::GetBuild);
  take("CancelBuild", &MappingService::CancelBuild);
  take("ListBuilds", &MappingService::ListBuilds);
  take("GetMapping", &MappingService::GetMapping);
  take("ListMappings", &MappingService::ListMappings);
  take("GetVersion", &MappingService::GetVersion);
  take("ListVersions", &MappingService::ListVersions);
  take("Advise", &MappingService::Advise);
  take("DeleteVersion", &MappingService::DeleteVersion);
  take("DeleteMapping", &MappingService::DeleteMapping);
  take("SetAlias", &MappingService::SetAlias);
  take("DeleteAlias", &MappingService::DeleteAlias);
  take("Export", &MappingService::Export);
  take("EstimateBuild", &MappingService::EstimateBuild);
  MarkMethodCallback(build_.index, NewStreamHandler(*this, &MappingService::OpenBuild));
  MarkMethodCallback(methods_.Get("Import").index,
                     NewStreamHandler(*this, &MappingService::OpenImport));
}

grpc::ServerBidiReactor<grpc::ByteBuffer, v1::BuildResponse>* MappingService::OpenBuild(
    Context* context) {
  const auto call = std::make_shared<BuildCall>(builds_, build_, logger_, *context);
  call->Start();
  return call.get();
}

MappingService::Unary* MappingService::OnStoreThread(Context* context, const char* method,
                                                     std::function<absl::Status()> body) {
  return new BlockingCall(*context, methods_.Get(method), logger_, store_pool_, std::move(body));
}

MappingService::Unary* MappingService::GetBuild(Context* context,
                                                const v1::GetBuildRequest* request,
                                                v1::BuildJob* response) {
  return OnStoreThread(context, "GetBuild", [=, this] { return DoGetBuild(*request, response); });
}

MappingService::Unary* MappingService::CancelBuild(Context* context,
                                                   const v1::CancelBuildRequest* request,
                                                   v1::BuildJob* response) {
  return OnStoreThread(context, "CancelBuild",
                       [=, this] { return DoCancelBuild(*request, response); });
}

MappingService::Unary* MappingService::ListBuilds(Context* context,
                                                  const v1::ListBuildsRequest* request,
                                                  v1::ListBuildsResponse* response) {
  return OnStoreThread(context, "ListBuilds",
                       [=, this] { return DoListBuilds(*request, response); });
}

MappingService::Unary* MappingService::GetMapping(Context* context,
                                                  const v1::GetMappingRequest* request,
                                                  v1::Mapping* response) {
  return OnStoreThread(context, "GetMapping",
                       [=, this] { return DoGetMapping(*request, response); });
}

MappingService::Unary* MappingService::ListMappings(Context* context,
                                                    const v1::ListMappingsRequest* request,
                                                    v1::ListMappingsResponse* response) {
  return OnStoreThread(context, "ListMappings",
                       [=, this] { return DoListMappings(*request, response); });
}

MappingService::Unary* MappingService::GetVersion(Context* context,
                                                  const v1::GetVersionRequest* request,
                                                  v1::Version* response) {
  return OnStoreThread(context, "GetVersion",
                       [=, this] { return DoGetVersion(*request, response); });
}

MappingService::Unary* MappingService::ListVersions(Context* context,
                                                    const v1::ListVersionsRequest* request,
                                                    v1::ListVersionsResponse* response) {
  return OnStoreThread(context, "ListVersions",
                       [=, this] { return DoListVersions(*request, response); });
}

absl::Status MappingService::DoGetBuild(const v1::GetBuildRequest& request,
                                        v1::BuildJob* response) {
  PHIMAP_ASSIGN_OR_RETURN(const BuildId id,
                          BuildIdFromProto(request.mapping(), request.build_id(), ""));
  PHIMAP_ASSIGN_OR_RETURN(const BuildSnapshot snapshot, builds_.Get(id));
  BuildToProto(snapshot, response);
  return absl::OkStatus();
}

absl::Status MappingService::DoCancelBuild(const v1::CancelBuildRequest& request,
                                           v1::BuildJob* response) {
  PHIMAP_ASSIGN_OR_RETURN(const BuildId id,
                          BuildIdFromProto(request.mapping(), request.build_id(), ""));
  PHIMAP_ASSIGN_OR_RETURN(const BuildSnapshot snapshot, builds_.Cancel(id));
  BuildToProto(snapshot, response);
  return absl::OkStatus();
}

absl::Status MappingService::DoListBuilds(const v1::ListBuildsRequest& request,
                                          v1::ListBuildsResponse* response) {
  if (!request.mapping().empty()) {
    PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.mapping(), "mapping"));
  }
  for (const BuildSnapshot& snapshot : builds_.List(request.mapping())) {
    BuildToProto(snapshot, response->add_builds());
  }
  return absl::OkStatus();
}

absl::Status MappingService::DoGetMapping(const v1::GetMappingRequest& request,
                                          v1::Mapping* response) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.mapping(), "mapping"));
  PHIMAP_ASSIGN_OR_RETURN(const MappingRecord record, store_.GetMapping(request.mapping()));
  MappingToProto(record, response);
  return absl::OkStatus();
}

absl::Status MappingService::DoListMappings(const v1::ListMappingsRequest& request,
                                            v1::ListMappingsResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const int size, PageSize(request.page_size()));
  std::string after;
  if (!request.page_token().empty()) {
    PHIMAP_ASSIGN_OR_RETURN(after, DecodePageToken(kMappingList, request.page_token()));
  }
  // One more than the page tells whether there is a next one.
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<MappingRecord> records,
                          store_.ListMappings(after, size + 1));
  size_t bytes = 0;
  for (const MappingRecord& record : records) {
    if (response->mappings_size() == size || bytes > kPageBytes) {
      const std::string& last = response->mappings().rbegin()->name();
      response->set_next_page_token(EncodePageToken(kMappingList, last));
      break;
    }
    MappingToProto(record, response->add_mappings());
    bytes += response->mappings().rbegin()->ByteSizeLong();
  }
  return absl::OkStatus();
}

absl::Status MappingService::DoGetVersion(const v1::GetVersionRequest& request,
                                          v1::Version* response) {
  PHIMAP_ASSIGN_OR_RETURN(const Reference reference, ParseReference(request.reference()));
  PHIMAP_ASSIGN_OR_RETURN(const CertifiedVersion version,
                          ReadCertifiedVersion(store_, registry_, reference));
  VersionToProto(version, response);
  return absl::OkStatus();
}

absl::Status MappingService::DoListVersions(const v1::ListVersionsRequest& request,
                                            v1::ListVersionsResponse* response) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.mapping(), "mapping"));
  PHIMAP_ASSIGN_OR_RETURN(const int size, PageSize(request.page_size()));
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<int64_t> before, VersionPosition(request));
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<VersionRecord> records,
                          store_.ListVersions(request.mapping(), before, size + 1));
  size_t bytes = 0;
  for (const VersionRecord& record : records) {
    if (response->versions_size() == size || bytes > kPageBytes) {
      const int64_t last = response->versions().rbegin()->ref().number();
      response->set_next_page_token(
          EncodePageToken(VersionList(request.mapping()), absl::StrCat(last)));
      break;
    }
    RecordToProto(record, response->add_versions());
    bytes += response->versions().rbegin()->ByteSizeLong();
  }
  return absl::OkStatus();
}

MappingService::Unary* MappingService::Advise(Context* context, const v1::AdviseRequest* request,
                                              v1::AdviseResponse* response) {
  return OnStoreThread(context, "Advise", [=] { return AdviseFromProto(*request, response); });
}

MappingService::Unary* MappingService::EstimateBuild(Context* context,
                                                     const v1::EstimateBuildRequest* request,
                                                     v1::EstimateBuildResponse* response) {
  return OnStoreThread(context, "EstimateBuild", [=, this] {
    return EstimateFromProto(*request, estimator_, builds_, response);
  });
}

MappingService::Unary* MappingService::DeleteVersion(Context* context,
                                                     const v1::DeleteVersionRequest* request,
                                                     v1::DeleteVersionResponse*) {
  return OnStoreThread(context, "DeleteVersion", [=, this] { return DoDeleteVersion(*request); });
}

MappingService::Unary* MappingService::DeleteMapping(Context* context,
                                                     const v1::DeleteMappingRequest* request,
                                                     v1::DeleteMappingResponse*) {
  return OnStoreThread(context, "DeleteMapping", [=, this] { return DoDeleteMapping(*request); });
}

MappingService::Unary* MappingService::SetAlias(Context* context,
                                                const v1::SetAliasRequest* request,
                                                v1::Alias* response) {
  auto* const call = new SetAliasCall({registry_, changes_, store_pool_, logger_},
                                      methods_.Get("SetAlias"), *context, *request, response);
  call->Start();
  return call;
}

MappingService::Unary* MappingService::DeleteAlias(Context* context,
                                                   const v1::DeleteAliasRequest* request,
                                                   v1::DeleteAliasResponse*) {
  return OnStoreThread(context, "DeleteAlias", [=, this] { return DoDeleteAlias(*request); });
}

absl::Status MappingService::DoDeleteVersion(const v1::DeleteVersionRequest& request) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.mapping(), "mapping"));
  PHIMAP_RETURN_IF_ERROR(CheckVersionNumber(request.version(), "version"));
  return changes_.DeleteVersion(request.mapping(), request.version(),
                                request.give_up_rollback() ? Rollbacks::kGiveUp : Rollbacks::kKeep);
}

absl::Status MappingService::DoDeleteMapping(const v1::DeleteMappingRequest& request) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.mapping(), "mapping"));
  return changes_.DeleteMapping(request.mapping());
}

absl::Status MappingService::DoDeleteAlias(const v1::DeleteAliasRequest& request) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.mapping(), "mapping"));
  PHIMAP_RETURN_IF_ERROR(CheckAliasName(request.alias(), "alias"));
  return changes_.DeleteAlias(request.mapping(), request.alias(), request.etag());
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* MappingService::Export(
    Context* context, const v1::ExportRequest* request) {
  const auto call = std::make_shared<ExportCall>(
      ExportCall::Environment{store_, store_pool_, exports_, builds_.idle_timeout(), logger_},
      methods_.Get("Export"), *context, *request);
  call->Start();
  return call.get();
}

grpc::ServerReadReactor<grpc::ByteBuffer>* MappingService::OpenImport(Context* context,
                                                                      v1::Version* response) {
  const auto call = std::make_shared<ImportCall>(
      ImportCall::Environment{store_, registry_, builds_.memory(), import_pool_, imports_,
                              builds_.idle_timeout(), logger_},
      methods_.Get("Import"), *context, response);
  call->Start();
  return call.get();
}

}  // namespace phimap
