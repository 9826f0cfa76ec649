#include "server/mapping/mapping_service.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "proto/calls/capabilities.h"
#include "server/build/build_error.h"
#include "server/build/version_reader.h"
#include "server/mapping/artifact_calls.h"
#include "server/mapping/build_call.h"
#include "server/mapping/forecasts.h"
#include "server/mapping/mapping_changes.h"
#include "server/mapping/mapping_to_proto.h"
#include "server/mapping/request_fields.h"
#include "server/registry/reference.h"
#include "server/rpc/call.h"

namespace phimap {
namespace {

constexpr char kMappingList[] = "mappings";
constexpr char kAuditList[] = "audit";
// Entries of the audit that are read at a time, and that one answer looks at: a caller who may see
// few of them gets a page with fewer, and goes on from there.
constexpr int kAuditRead = 1000;
constexpr int kReadPastOthers = 1000;
constexpr int kAuditReads = 20;
// A page ends once it exceeds this size. The limit is in bytes because texts and aliases vary in
// length. gRPC clients in all languages accept messages of 4 MiB by default.
constexpr size_t kPageBytes = size_t{2} << 20;

std::string VersionList(const std::string& mapping) { return absl::StrCat("versions/", mapping); }

std::string BuildList(const std::string& mapping) { return absl::StrCat("builds/", mapping); }

// Place of a build in the list: -BuildSnapshot::order, mapping, build id.
using BuildPosition = std::tuple<int64_t, std::string, std::string>;

std::string TextOf(const BuildPosition& position) { return absl::StrJoin(position, "/"); }

// Returns the position of the last build of the previous page, from its token, or one before all
// builds for the first page.
absl::StatusOr<BuildPosition> PositionOf(const v1::ListBuildsRequest& request) {
  BuildPosition position{std::numeric_limits<int64_t>::min(), "", ""};
  if (request.page_token().empty()) return position;
  PHIMAP_ASSIGN_OR_RETURN(const std::string text,
                          DecodePageToken(BuildList(request.name()), request.page_token()));
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &std::get<0>(position))) {
    return absl::InternalError("a page token from this server does not contain a build");
  }
  std::get<1>(position) = parts[1];
  std::get<2>(position) = parts[2];
  return position;
}

// Returns the last version number of the previous page, from its token, or nullopt for the first
// page.
absl::StatusOr<std::optional<int64_t>> VersionPosition(const v1::ListVersionsRequest& request) {
  if (request.page_token().empty()) return std::optional<int64_t>();
  PHIMAP_ASSIGN_OR_RETURN(const std::string position,
                          DecodePageToken(VersionList(request.name()), request.page_token()));
  int64_t number = 0;
  if (!absl::SimpleAtoi(position, &number)) {
    return absl::InternalError("a page token from this server does not contain a number");
  }
  return std::optional<int64_t>(number);
}

}  // namespace

MappingService::MappingService(Store& store, VersionRegistry& registry, BuildManager& builds,
                               DriftWatcher& drift, TaskPool& store_pool, TaskPool& admin_pool,
                               const Logger& logger)
    : store_(store),
      registry_(registry),
      builds_(builds),
      drift_(drift),
      store_pool_(store_pool),
      admin_pool_(admin_pool),
      changes_(store, registry, builds, logger),
      lifetimes_(store, registry, changes_, logger),
      estimator_(MeasureBuildSpeed, builds.compute_threads()),
      set_alias_{registry, changes_, admin_pool},
      exporting_{store, store_pool, exports_, builds.idle_timeout(), logger},
      importing_{store, registry, builds.memory(), import_pool_, imports_, builds.idle_timeout(),
                 logger},
      // Each call has at most one task here, plus one to free its memory when it has ended.
      import_pool_("imports", /*threads=*/1, 2 * kMaxImports) {}

void MappingService::AddTo(Dispatcher& dispatcher) {
  dispatcher.Add(*v1::BuildRequest::descriptor()->file()->FindServiceByName("MappingService"),
                 {
                     {"Build", Opens<BuildCall>(builds_)},
                     {"GetBuild", OnPool(store_pool_, &MappingService::GetBuild)},
                     {"CancelBuild", OnPool(store_pool_, &MappingService::CancelBuild)},
                     {"ListBuilds", OnPool(store_pool_, &MappingService::ListBuilds)},
                     {"GetMapping", OnPool(store_pool_, &MappingService::GetMapping)},
                     {"ListMappings", OnPool(store_pool_, &MappingService::ListMappings)},
                     {"GetVersion", OnPool(store_pool_, &MappingService::GetVersion)},
                     {"ListVersions", OnPool(store_pool_, &MappingService::ListVersions)},
                     {"KeepVersion", OnPool(admin_pool_, &MappingService::KeepVersion)},
                     {"DeleteVersion", OnPool(admin_pool_, &MappingService::DeleteVersion)},
                     {"DeleteMapping", OnPool(admin_pool_, &MappingService::DeleteMapping)},
                     {"SetAlias", Opens<SetAliasCall>(set_alias_)},
                     {"DeleteAlias", OnPool(admin_pool_, &MappingService::DeleteAlias)},
                     {"Export", Opens<ExportCall>(exporting_)},
                     {"Import", Opens<ImportCall>(importing_)},
                     {"Advise", OnPool(store_pool_, &MappingService::Advise)},
                     {"EstimateBuild", OnPool(store_pool_, &MappingService::EstimateBuild)},
                     {"ListCapabilities", OnPool(store_pool_, &MappingService::ListCapabilities)},
                     {"GetDrift", OnPool(store_pool_, &MappingService::GetDrift)},
                     {"ListAuditEntries", OnPool(store_pool_, &MappingService::ListAuditEntries)},
                 });
}

template <typename Request, typename Response>
Method::Open MappingService::OnPool(TaskPool& pool,
                                    absl::Status (MappingService::*body)(Call&, const Request&,
                                                                         Response*)) {
  return OpensBlocking<Request, Response>(
      pool, [this, body](Call& call, const Request& request, Response* response) {
        return (this->*body)(call, request, response);
      });
}

absl::Status MappingService::GetBuild(Call& call, const v1::GetBuildRequest& request,
                                      v1::BuildJob* response) {
  PHIMAP_ASSIGN_OR_RETURN(const BuildId id,
                          BuildIdFromProto(request.name(), request.build_id(), ""));
  if (!call.CheckMapping(id.mapping).ok()) return NoSuchBuild(id);
  PHIMAP_ASSIGN_OR_RETURN(const BuildSnapshot snapshot, builds_.Get(id));
  BuildToProto(snapshot, response);
  return absl::OkStatus();
}

absl::Status MappingService::CancelBuild(Call& call, const v1::CancelBuildRequest& request,
                                         v1::BuildJob* response) {
  PHIMAP_ASSIGN_OR_RETURN(const BuildId id,
                          BuildIdFromProto(request.name(), request.build_id(), ""));
  const absl::Status allowed = call.CheckMapping(id.mapping);
  if (absl::IsNotFound(allowed)) return NoSuchBuild(id);
  PHIMAP_RETURN_IF_ERROR(allowed);
  PHIMAP_ASSIGN_OR_RETURN(const BuildSnapshot before, builds_.Get(id));
  if (!IsFinished(before.state)) {
    PHIMAP_RETURN_IF_ERROR(call.CheckBuildOf(before.owner, id.mapping));
  }
  PHIMAP_ASSIGN_OR_RETURN(const BuildSnapshot snapshot, builds_.Cancel(id, call.Origin()));
  BuildToProto(snapshot, response);
  return absl::OkStatus();
}

absl::Status MappingService::ListBuilds(Call& call, const v1::ListBuildsRequest& request,
                                        v1::ListBuildsResponse* response) {
  if (!request.name().empty()) {
    PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.name(), "name"));
  }
  PHIMAP_ASSIGN_OR_RETURN(const int size, PageSize(request.page_size()));
  PHIMAP_ASSIGN_OR_RETURN(const BuildPosition after, PositionOf(request));
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<BuildSnapshot> builds, builds_.ListAll(request.name()));
  BuildPosition last = after;
  size_t bytes = 0;
  for (const BuildSnapshot& snapshot : builds) {
    const BuildPosition position = {-snapshot.order, snapshot.id.mapping, snapshot.id.build_id};
    if (position <= after || !call.Sees(snapshot.id.mapping)) continue;
    if (response->builds_size() == size || bytes > kPageBytes) {
      response->set_next_page_token(EncodePageToken(BuildList(request.name()), TextOf(last)));
      break;
    }
    BuildToProto(snapshot, response->add_builds());
    bytes += response->builds().rbegin()->ByteSizeLong();
    last = position;
  }
  return absl::OkStatus();
}

absl::Status MappingService::GetMapping(Call& call, const v1::GetMappingRequest& request,
                                        v1::Mapping* response) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.name(), "name"));
  PHIMAP_RETURN_IF_ERROR(call.CheckMapping(request.name()));
  PHIMAP_ASSIGN_OR_RETURN(const MappingRecord record, store_.GetMapping(request.name()));
  MappingToProto(record, response);
  return absl::OkStatus();
}

absl::Status MappingService::ListMappings(Call& call, const v1::ListMappingsRequest& request,
                                          v1::ListMappingsResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const int size, PageSize(request.page_size()));
  std::string after;
  if (!request.page_token().empty()) {
    PHIMAP_ASSIGN_OR_RETURN(after, DecodePageToken(kMappingList, request.page_token()));
  }
  // Those that the caller may not know of are passed over, so a page may take several reads, which
  // are large then, because most of the mappings may be others'.
  const int read = call.limited_to_names() ? kReadPastOthers : size + 1;
  size_t bytes = 0;
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<MappingRecord> records,
                            store_.ListMappings(after, read));
    for (const MappingRecord& record : records) {
      if (!call.Sees(record.name)) continue;
      // One more than the page holds shows that there is a next page.
      if (response->mappings_size() == size || bytes > kPageBytes) {
        const std::string& last = response->mappings().rbegin()->name();
        response->set_next_page_token(EncodePageToken(kMappingList, last));
        return absl::OkStatus();
      }
      MappingToProto(record, response->add_mappings());
      bytes += response->mappings().rbegin()->ByteSizeLong();
    }
    if (records.size() < static_cast<size_t>(read)) return absl::OkStatus();
    if (call.cancelled()->load()) return absl::CancelledError("the client cancelled the call");
    after = records.back().name;
  }
}

absl::Status MappingService::GetVersion(Call& call, const v1::GetVersionRequest& request,
                                        v1::Version* response) {
  PHIMAP_ASSIGN_OR_RETURN(const Reference reference, ParseReference(request.reference()));
  PHIMAP_RETURN_IF_ERROR(call.CheckMapping(reference.mapping));
  PHIMAP_ASSIGN_OR_RETURN(const CertifiedVersion version,
                          ReadCertifiedVersion(store_, registry_, reference, &builds_.memory()));
  VersionToProto(version, response);
  return absl::OkStatus();
}

absl::Status MappingService::ListVersions(Call& call, const v1::ListVersionsRequest& request,
                                          v1::ListVersionsResponse* response) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.name(), "name"));
  PHIMAP_RETURN_IF_ERROR(call.CheckMapping(request.name()));
  PHIMAP_ASSIGN_OR_RETURN(const int size, PageSize(request.page_size()));
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<int64_t> before, VersionPosition(request));
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<VersionRecord> records,
                          store_.ListVersions(request.name(), before, size + 1));
  size_t bytes = 0;
  for (const VersionRecord& record : records) {
    if (response->versions_size() == size || bytes > kPageBytes) {
      const int64_t last = response->versions().rbegin()->ref().number();
      response->set_next_page_token(
          EncodePageToken(VersionList(request.name()), absl::StrCat(last)));
      break;
    }
    RecordToProto(record, response->add_versions());
    bytes += response->versions().rbegin()->ByteSizeLong();
  }
  return absl::OkStatus();
}

absl::Status MappingService::KeepVersion(Call& call, const v1::KeepVersionRequest& request,
                                         v1::Version* response) {
  PHIMAP_ASSIGN_OR_RETURN(const Reference reference, ParseReference(request.reference()));
  PHIMAP_RETURN_IF_ERROR(call.CheckMapping(reference.mapping));
  absl::Duration ttl = absl::InfiniteDuration();
  if (request.has_ttl()) {
    PHIMAP_ASSIGN_OR_RETURN(ttl, TtlFromProto(request.ttl(), "ttl"));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::string operation_id, OperationIdOf(request.operation_id()));
  int64_t number = reference.number.value_or(0);
  if (number == 0) {
    PHIMAP_ASSIGN_OR_RETURN(const VersionRecord found, LookUpVersion(store_, reference));
    number = found.number;
  }
  const absl::StatusOr<VersionRecord> kept =
      changes_.KeepVersion(reference.mapping, number, ttl, call.Origin(operation_id));
  // The error of looking the version up names the field.
  if (absl::IsNotFound(kept.status())) {
    PHIMAP_RETURN_IF_ERROR(LookUpVersion(store_, reference).status());
  }
  PHIMAP_RETURN_IF_ERROR(kept.status());
  RecordToProto(*kept, response);
  return absl::OkStatus();
}

absl::Status MappingService::DeleteVersion(Call& call, const v1::DeleteVersionRequest& request,
                                           v1::DeleteVersionResponse*) {
  PHIMAP_ASSIGN_OR_RETURN(const Reference reference, FixedReference(request, request.reference()));
  PHIMAP_RETURN_IF_ERROR(call.CheckMapping(reference.mapping));
  PHIMAP_ASSIGN_OR_RETURN(const std::string operation_id, OperationIdOf(request.operation_id()));
  const absl::Status deleted = changes_.DeleteVersion(
      reference, request.give_up_rollback() ? Rollbacks::kGiveUp : Rollbacks::kKeep,
      call.Origin(operation_id));
  // The error of looking the version up names the field.
  if (absl::IsNotFound(deleted)) PHIMAP_RETURN_IF_ERROR(LookUpVersion(store_, reference).status());
  return deleted;
}

absl::Status MappingService::DeleteMapping(Call& call, const v1::DeleteMappingRequest& request,
                                           v1::DeleteMappingResponse*) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.name(), "name"));
  PHIMAP_RETURN_IF_ERROR(call.CheckMapping(request.name()));
  PHIMAP_ASSIGN_OR_RETURN(const std::string operation_id, OperationIdOf(request.operation_id()));
  return changes_.DeleteMapping(request.name(),
                                request.only_if_empty() ? Occupied::kRefuse : Occupied::kDelete,
                                call.Origin(operation_id));
}

absl::Status MappingService::DeleteAlias(Call& call, const v1::DeleteAliasRequest& request,
                                         v1::DeleteAliasResponse*) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.name(), "name"));
  PHIMAP_RETURN_IF_ERROR(CheckAliasName(request.alias(), "alias"));
  PHIMAP_RETURN_IF_ERROR(call.CheckMapping(request.name()));
  PHIMAP_ASSIGN_OR_RETURN(const std::string operation_id, OperationIdOf(request.operation_id()));
  return changes_.DeleteAlias(request.name(), request.alias(), request.etag(),
                              call.Origin(operation_id));
}

absl::Status MappingService::Advise(Call&, const v1::AdviseRequest& request,
                                    v1::AdviseResponse* response) {
  return AdviseFromProto(request, response);
}

absl::Status MappingService::EstimateBuild(Call&, const v1::EstimateBuildRequest& request,
                                           v1::EstimateBuildResponse* response) {
  return EstimateFromProto(request, estimator_, builds_, response);
}

absl::Status MappingService::ListCapabilities(Call&, const v1::ListCapabilitiesRequest&,
                                              v1::ListCapabilitiesResponse* response) {
  CapabilitiesToProto(response);
  return absl::OkStatus();
}

absl::Status MappingService::GetDrift(Call& call, const v1::GetDriftRequest& request,
                                      v1::GetDriftResponse* response) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.name(), "name"));
  PHIMAP_RETURN_IF_ERROR(call.CheckMapping(request.name()));
  PHIMAP_ASSIGN_OR_RETURN(const MappingRecord record, store_.GetMapping(request.name()));
  const std::vector<AliasDrift> known = drift_.Of(request.name());
  for (const AliasRecord& alias : record.aliases) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const AliasDrift& drift) {
      return drift.alias == alias.name && drift.version == alias.version;
    });
    if (found == known.end()) {
      DriftToProto({.alias = alias.name,
                    .version = alias.version,
                    .not_tested = "its version is not in this server's memory"},
                   {}, response->add_aliases());
      continue;
    }
    const VersionHandle version = registry_.FindLive(request.name(), alias.version);
    DriftToProto(*found, version ? version.columns().names() : std::vector<std::string>(),
                 response->add_aliases());
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<AuditQuery> AuditQueryFrom(const v1::ListAuditEntriesRequest& request) {
  AuditQuery query;
  if (!request.name().empty()) {
    PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.name(), "name"));
    query.mapping = request.name();
  }
  if (request.has_principal()) {
    if (absl::StrContains(request.principal(), '\0')) {
      return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldInvalid, "principal",
                       "expected the name of a caller, got a text with a NUL");
    }
    query.principal = request.principal();
  }
  if (request.has_start_time()) {
    PHIMAP_ASSIGN_OR_RETURN(query.from, TimeFromProto(request.start_time(), "start_time"));
  }
  if (request.has_end_time()) {
    PHIMAP_ASSIGN_OR_RETURN(query.until, TimeFromProto(request.end_time(), "end_time"));
  }
  if (request.page_token().empty()) return query;
  PHIMAP_ASSIGN_OR_RETURN(const std::string position,
                          DecodePageToken(kAuditList, request.page_token()));
  if (!absl::SimpleAtoi(position, &query.bound)) {
    return absl::InternalError("a page token from this server does not contain a number");
  }
  return query;
}

}  // namespace

absl::Status MappingService::ListAuditEntries(Call& call,
                                              const v1::ListAuditEntriesRequest& request,
                                              v1::ListAuditEntriesResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const int size, PageSize(request.page_size()));
  PHIMAP_ASSIGN_OR_RETURN(AuditQuery query, AuditQueryFrom(request));
  if (!query.mapping.empty()) PHIMAP_RETURN_IF_ERROR(call.CheckMapping(query.mapping));
  size_t bytes = 0;
  for (int read = 0; read < kAuditReads; ++read) {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<AuditEntry> entries,
                            store_.ListAudit(query, kAuditRead));
    for (const AuditEntry& entry : entries) {
      if (!call.Allows(entry.mapping)) continue;
      if (response->entries_size() == size || bytes > kPageBytes) {
        response->set_next_page_token(
            EncodePageToken(kAuditList, absl::StrCat(response->entries().rbegin()->number())));
        return absl::OkStatus();
      }
      AuditEntryToProto(entry, response->add_entries());
      bytes += response->entries().rbegin()->ByteSizeLong();
    }
    if (entries.size() < kAuditRead) return absl::OkStatus();
    query.bound = entries.back().number;
  }
  response->set_next_page_token(EncodePageToken(kAuditList, absl::StrCat(query.bound)));
  return absl::OkStatus();
}

}  // namespace phimap
