#include "server/store/metered_store.h"

#include <chrono>
#include <utility>

namespace phimap {
namespace {

const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Makes `call` and records it.
template <typename Call>
auto Metered(const StoreMetrics& metrics, StoreOperation operation, const Call& call) {
  const auto started = std::chrono::steady_clock::now();
  auto result = call();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - started;
  metrics.Called(operation, StatusOf(result), taken.count());
  return result;
}

}  // namespace

using Op = StoreOperation;

MeteredStore::MeteredStore(std::unique_ptr<Store> store, const StoreMetrics& metrics)
    : store_(std::move(store)), metrics_(metrics) {}

absl::StatusOr<VersionRecord> MeteredStore::Publish(const PublishRequest& request,
                                                    absl::string_view artifact) {
  return Metered(metrics_, Op::kPublish, [&] { return store_->Publish(request, artifact); });
}

absl::StatusOr<VersionRecord> MeteredStore::Import(const VersionRecord& version,
                                                   absl::string_view artifact) {
  return Metered(metrics_, Op::kImport, [&] { return store_->Import(version, artifact); });
}

absl::Status MeteredStore::RecordFailedBuild(const BuildRecord& record) {
  return Metered(metrics_, Op::kRecordFailedBuild,
                 [&] { return store_->RecordFailedBuild(record); });
}

absl::StatusOr<BuildRecord> MeteredStore::GetBuild(absl::string_view mapping,
                                                   absl::string_view build_id) {
  return Metered(metrics_, Op::kGetBuild, [&] { return store_->GetBuild(mapping, build_id); });
}

absl::StatusOr<NameChanges> MeteredStore::ChangesSince(const Revision& since) {
  return Metered(metrics_, Op::kChangesSince, [&] { return store_->ChangesSince(since); });
}

absl::StatusOr<bool> MeteredStore::IsInHistory(const Revision& revision) {
  return Metered(metrics_, Op::kIsInHistory, [&] { return store_->IsInHistory(revision); });
}

absl::StatusOr<MappingRecord> MeteredStore::GetMapping(absl::string_view name) {
  return Metered(metrics_, Op::kGetMapping, [&] { return store_->GetMapping(name); });
}

absl::StatusOr<std::vector<MappingRecord>> MeteredStore::ListMappings(absl::string_view after,
                                                                      int limit) {
  return Metered(metrics_, Op::kListMappings, [&] { return store_->ListMappings(after, limit); });
}

absl::StatusOr<VersionRecord> MeteredStore::GetVersion(absl::string_view mapping,
                                                       std::optional<int64_t> number) {
  return Metered(metrics_, Op::kGetVersion, [&] { return store_->GetVersion(mapping, number); });
}

absl::StatusOr<std::vector<VersionRecord>> MeteredStore::ListVersions(absl::string_view mapping,
                                                                      std::optional<int64_t> before,
                                                                      int limit) {
  return Metered(metrics_, Op::kListVersions,
                 [&] { return store_->ListVersions(mapping, before, limit); });
}

absl::StatusOr<VersionRecord> MeteredStore::GetAliasedVersion(absl::string_view mapping,
                                                              absl::string_view alias) {
  return Metered(metrics_, Op::kGetAliasedVersion,
                 [&] { return store_->GetAliasedVersion(mapping, alias); });
}

absl::StatusOr<VersionRecord> MeteredStore::GetVersionByDigest(absl::string_view mapping,
                                                               absl::string_view digest) {
  return Metered(metrics_, Op::kGetVersionByDigest,
                 [&] { return store_->GetVersionByDigest(mapping, digest); });
}

absl::StatusOr<std::string> MeteredStore::ReadArtifact(absl::string_view digest) {
  return Metered(metrics_, Op::kReadArtifact, [&] { return store_->ReadArtifact(digest); });
}

absl::StatusOr<std::string> MeteredStore::ReadArtifactOf(const VersionRecord& version) {
  return Metered(metrics_, Op::kReadArtifact, [&] { return store_->ReadArtifactOf(version); });
}

absl::StatusOr<std::string> MeteredStore::ReadArtifactRange(absl::string_view digest,
                                                            int64_t offset, int64_t bytes) {
  return Metered(metrics_, Op::kReadArtifactRange,
                 [&] { return store_->ReadArtifactRange(digest, offset, bytes); });
}

absl::StatusOr<std::unique_ptr<ArtifactReader>> MeteredStore::OpenArtifact(
    absl::string_view digest) {
  return Metered(metrics_, Op::kOpenArtifact, [&] { return store_->OpenArtifact(digest); });
}

absl::StatusOr<AliasRecord> MeteredStore::SetAlias(absl::string_view mapping,
                                                   absl::string_view alias, int64_t version,
                                                   absl::string_view etag,
                                                   absl::string_view operation_id) {
  return Metered(metrics_, Op::kSetAlias,
                 [&] { return store_->SetAlias(mapping, alias, version, etag, operation_id); });
}

absl::Status MeteredStore::DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                       absl::string_view etag, absl::string_view operation_id) {
  return Metered(metrics_, Op::kDeleteAlias,
                 [&] { return store_->DeleteAlias(mapping, alias, etag, operation_id); });
}

absl::Status MeteredStore::DeleteVersion(absl::string_view mapping, int64_t number,
                                         Rollbacks rollbacks, absl::string_view operation_id) {
  return Metered(metrics_, Op::kDeleteVersion,
                 [&] { return store_->DeleteVersion(mapping, number, rollbacks, operation_id); });
}

absl::Status MeteredStore::DeleteMapping(absl::string_view mapping, Occupied occupied,
                                         absl::string_view operation_id) {
  return Metered(metrics_, Op::kDeleteMapping,
                 [&] { return store_->DeleteMapping(mapping, occupied, operation_id); });
}

absl::StatusOr<VersionRecord> MeteredStore::KeepVersion(absl::string_view mapping, int64_t number,
                                                        absl::Duration ttl,
                                                        absl::string_view operation_id) {
  return Metered(metrics_, Op::kKeepVersion,
                 [&] { return store_->KeepVersion(mapping, number, ttl, operation_id); });
}

absl::Status MeteredStore::RecordUses(const std::vector<VersionName>& used) {
  return Metered(metrics_, Op::kRecordUses, [&] { return store_->RecordUses(used); });
}

absl::StatusOr<std::vector<VersionName>> MeteredStore::DeleteExpired() {
  return Metered(metrics_, Op::kDeleteExpired, [&] { return store_->DeleteExpired(); });
}

}  // namespace phimap
