// A store in memory that counts the artifacts read, and can make readers wait until a test lets
// them go on.
#ifndef PHIMAP_TESTS_SERVER_REGISTRY_MEMORY_STORE_H_
#define PHIMAP_TESTS_SERVER_REGISTRY_MEMORY_STORE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/thread/mutex.h"
#include "server/store/store.h"
#include "tests/server/support/gate.h"

namespace phimap::testing {

// Implements only what the registry calls.
class MemoryStore : public Store {
 public:
  void Put(const std::string& mapping, int64_t number, const std::string& artifact) {
    MutexLock lock(&mutex_);
    VersionRecord& record = versions_[mapping][number];
    record.mapping = mapping;
    record.number = number;
    record.digest = absl::StrCat(mapping, number);
    record.artifact_size_bytes = static_cast<int64_t>(artifact.size());
    artifacts_[record.digest] = artifact;
    Changed(mapping);
  }
  // Puts a version with the given digest, so that a reference can name it by digest.
  void PutDigest(const std::string& mapping, int64_t number, const std::string& artifact,
                 const std::string& digest) {
    Put(mapping, number, artifact);
    MutexLock lock(&mutex_);
    versions_[mapping][number].digest = digest;
    artifacts_[digest] = artifact;
  }
  // Replaces the artifact of a version by another one, as can happen when a backup is restored.
  void Exchange(const std::string& mapping, int64_t number, const std::string& artifact) {
    Put(mapping, number, artifact);
    MutexLock lock(&mutex_);
    VersionRecord& record = versions_[mapping][number];
    record.digest += "-exchanged";
    artifacts_[record.digest] = artifact;
  }
  void Remove(const std::string& mapping, int64_t number) {
    MutexLock lock(&mutex_);
    artifacts_.erase(versions_[mapping][number].digest);
    versions_[mapping].erase(number);
    Changed(mapping);
  }
  void PutAlias(const std::string& mapping, const std::string& alias, int64_t number) {
    MutexLock lock(&mutex_);
    aliases_[mapping + "@" + alias] = number;
    Changed(mapping);
    alias_moves_[mapping + "@" + alias] = revision_;
  }
  void RemoveAlias(const std::string& mapping, const std::string& alias) {
    MutexLock lock(&mutex_);
    aliases_.erase(mapping + "@" + alias);
    Changed(mapping);
  }
  int reads() const {
    MutexLock lock(&mutex_);
    return reads_;
  }
  // Digests of the artifacts that were read, in order.
  std::vector<std::string> read_digests() const {
    MutexLock lock(&mutex_);
    return read_digests_;
  }

  void FailChanges(bool fail) {
    MutexLock lock(&mutex_);
    changes_fail_ = fail;
  }
  // If `fail` is true, versions and aliases cannot be looked up from now on, but artifacts can be
  // read.
  void FailLookUps(bool fail) {
    MutexLock lock(&mutex_);
    look_ups_fail_ = fail;
  }
  // From now on the store acts as if it had been replaced by another one, all of whose revisions
  // have other ids.
  void ChangeHistory(const std::string& history) {
    MutexLock lock(&mutex_);
    history_ = history;
  }

  absl::StatusOr<NameChanges> ChangesSince(const Revision& since) override {
    MutexLock lock(&mutex_);
    if (changes_fail_) return absl::UnavailableError("the store is away");
    NameChanges changes{.revision = At(revision_), .whole = since != At(since.number)};
    for (int64_t i = changes.whole ? 0 : since.number + 1; i <= revision_; ++i) {
      changes.passed.push_back(At(i));
    }
    for (const auto& [mapping, revision] : changed_) {
      if (!changes.whole && revision <= since.number) continue;
      MappingNames names{.mapping = mapping};
      for (const auto& [number, record] : versions_[mapping]) {
        names.versions.push_back(number);
        names.digests.push_back(record.digest);
      }
      if (changes.whole && names.versions.empty()) continue;
      for (const auto& [alias, number] : aliases_) {
        const size_t at = alias.find('@');
        if (alias.substr(0, at) == mapping) names.aliases.push_back({alias.substr(at + 1), number});
      }
      changes.mappings.push_back(std::move(names));
    }
    return changes;
  }
  absl::StatusOr<bool> IsInHistory(const Revision& revision) override {
    MutexLock lock(&mutex_);
    if (changes_fail_) return absl::UnavailableError("the store is away");
    return revision.number <= revision_ && revision == At(revision.number);
  }
  absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                           std::optional<int64_t> number) override {
    gate.Wait();
    MutexLock lock(&mutex_);
    return Find(mapping, number);
  }
  absl::StatusOr<VersionRecord> GetAliasedVersion(absl::string_view mapping,
                                                  absl::string_view alias) override {
    gate.Wait();
    MutexLock lock(&mutex_);
    const auto found = aliases_.find(absl::StrCat(mapping, "@", alias));
    if (found == aliases_.end()) return absl::NotFoundError("no such alias");
    return Find(mapping, found->second);
  }
  absl::StatusOr<VersionRecord> GetVersionByDigest(absl::string_view mapping,
                                                   absl::string_view digest) override {
    gate.Wait();
    MutexLock lock(&mutex_);
    if (look_ups_fail_) return absl::UnavailableError("the database is away");
    for (const auto& [number, record] : versions_[std::string(mapping)]) {
      if (record.digest == digest) return record;
    }
    return absl::NotFoundError("no such digest");
  }
  absl::StatusOr<std::string> ReadArtifact(absl::string_view digest) override {
    read_gate.Wait();
    MutexLock lock(&mutex_);
    ++reads_;
    read_digests_.emplace_back(digest);
    const auto artifact = artifacts_.find(std::string(digest));
    if (artifact == artifacts_.end()) return absl::NotFoundError("no such artifact");
    return artifact->second;
  }
  absl::StatusOr<std::string> ReadArtifactOf(const VersionRecord& version) override {
    return ReadArtifact(version.digest);
  }

  // Lists mappings with their aliases. The times of the aliases' last moves are in the order of the
  // calls of PutAlias.
  absl::StatusOr<std::vector<MappingRecord>> ListMappings(absl::string_view after,
                                                          int limit) override {
    MutexLock lock(&mutex_);
    std::vector<MappingRecord> mappings;
    for (const auto& [mapping, versions] : versions_) {
      if (mapping <= after || static_cast<int>(mappings.size()) == limit) continue;
      MappingRecord& record = mappings.emplace_back();
      record.name = mapping;
      for (const auto& [alias, number] : aliases_) {
        const size_t at = alias.find('@');
        if (alias.substr(0, at) != mapping) continue;
        record.aliases.push_back(
            {.mapping = mapping,
             .name = alias.substr(at + 1),
             .version = number,
             .move_time = absl::UnixEpoch() + absl::Seconds(alias_moves_[alias])});
      }
    }
    return mappings;
  }
  absl::StatusOr<std::vector<VersionRecord>> ListVersions(absl::string_view, std::optional<int64_t>,
                                                          int) override {
    return absl::UnimplementedError("");
  }
  // Readers of rows wait at `gate`, and readers of artifacts at `read_gate`, before they look.
  Gate gate{/*open=*/true};
  Gate read_gate{/*open=*/true};

 private:
  absl::StatusOr<VersionRecord> Find(absl::string_view mapping, std::optional<int64_t> number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (look_ups_fail_) return absl::UnavailableError("the database is away");
    const auto versions = versions_.find(std::string(mapping));
    if (versions == versions_.end()) return absl::NotFoundError("no such mapping");
    if (versions->second.empty()) return absl::NotFoundError("no version");
    if (!number.has_value()) return versions->second.rbegin()->second;
    const auto version = versions->second.find(*number);
    if (version == versions->second.end()) return absl::NotFoundError("no such version");
    return version->second;
  }

  Revision At(int64_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return {absl::StrCat(history_, "-", number), number};
  }
  void Changed(const std::string& mapping) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    changed_[mapping] = ++revision_;
  }

  mutable Mutex mutex_;
  std::string history_ ABSL_GUARDED_BY(mutex_) = "first";
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = 0;
  bool look_ups_fail_ ABSL_GUARDED_BY(mutex_) = false;
  bool changes_fail_ ABSL_GUARDED_BY(mutex_) = false;
  // The revision at which each mapping last changed.
  std::map<std::string, int64_t> changed_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::map<int64_t, VersionRecord>> versions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> aliases_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> artifacts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> alias_moves_ ABSL_GUARDED_BY(mutex_);
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> read_digests_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_REGISTRY_MEMORY_STORE_H_
