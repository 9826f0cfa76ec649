#include "server/store/catalog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/build_error.h"
#include "server/store/catalog_errors.h"
#include "server/store/schema.h"

namespace phimap {
namespace {

constexpr char kVersionColumns[] =
    "mapping, number, digest, artifact_size_bytes, create_time_us, input_columns, output_columns, "
    "serving_type, mapping_text, kernel_text, imported";
// A deleted mapping's row keeps its counter and is not seen.
constexpr char kMappingSelect[] =
    "SELECT m.name, coalesce(max(v.number), 0), count(v.number), m.create_time_us "
    "FROM mappings m LEFT JOIN versions v ON v.mapping = m.name WHERE m.deleted = 0 AND ";

VersionRecord VersionFromRow(const SqliteStatement& row) {
  VersionRecord version;
  version.mapping = row.Text(0);
  version.number = row.Int(1);
  version.digest = row.Text(2);
  version.artifact_size_bytes = row.Int(3);
  version.create_time = absl::FromUnixMicros(row.Int(4));
  version.input_columns = row.Int(5);
  version.output_columns = row.Int(6);
  version.serving_type = row.Text(7);
  version.mapping_text = row.Text(8);
  version.kernel_text = row.Text(9);
  version.imported = row.Int(10) != 0;
  return version;
}

MappingRecord MappingFromRow(const SqliteStatement& row) {
  return {.name = row.Text(0),
          .newest_version = row.Int(1),
          .version_count = row.Int(2),
          .create_time = absl::FromUnixMicros(row.Int(3))};
}

// The oldest end time that is still kept.
int64_t RetentionStartMicros(absl::Time now) { return absl::ToUnixMicros(now - kBuildRetention); }

}  // namespace

absl::StatusOr<std::unique_ptr<Catalog>> Catalog::Open(const std::string& path,
                                                       absl::Duration busy_timeout) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> database,
                          SqliteDatabase::Open(path, busy_timeout));
  PHIMAP_RETURN_IF_ERROR(PrepareSchema(database.get()));
  database->AllowCheckpointOnClose();
  return std::unique_ptr<Catalog>(new Catalog(std::move(database)));
}

absl::StatusOr<std::string> Catalog::StoreId() {
  return database_->QueryText("SELECT store_id FROM store");
}

absl::StatusOr<bool> Catalog::HasMappings() {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t any,
                          database_->QueryInt("SELECT EXISTS (SELECT 1 FROM mappings)"));
  return any != 0;
}

absl::StatusOr<absl::flat_hash_set<std::string>> Catalog::ReferencedDigests() {
  PHIMAP_ASSIGN_OR_RETURN(SqliteStatement row,
                          database_->Prepare("SELECT DISTINCT digest FROM versions"));
  absl::flat_hash_set<std::string> digests;
  for (;;) {
    PHIMAP_ASSIGN_OR_RETURN(const bool more, row.Step());
    if (!more) return digests;
    digests.insert(row.Text(0));
  }
}

absl::StatusOr<std::optional<int64_t>> Catalog::ArtifactSizeBytes(absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement row,
      database_->Prepare("SELECT artifact_size_bytes FROM versions WHERE digest = ? LIMIT 1"));
  PHIMAP_ASSIGN_OR_RETURN(const bool found, row.Bind(digest).Step());
  if (!found) return std::nullopt;
  return row.Int(0);
}

absl::StatusOr<bool> Catalog::IsReferenced(absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<int64_t> size, ArtifactSizeBytes(digest));
  return size.has_value();
}

void Catalog::RollBack() {
  // Some errors roll back on their own. If ROLLBACK fails, the next BEGIN reports it.
  if (database_->in_transaction()) database_->Execute("ROLLBACK").IgnoreError();
}

absl::Status Catalog::Settle() {
  if (!in_doubt_) return absl::OkStatus();
  const absl::Status status = database_->Execute(
      "BEGIN IMMEDIATE; UPDATE store SET settled_commits = settled_commits + 1; COMMIT;");
  if (!status.ok()) {
    RollBack();
    return status;
  }
  in_doubt_ = false;
  return absl::OkStatus();
}

absl::Status Catalog::InTransaction(const std::function<absl::Status()>& body,
                                    const std::function<absl::StatusOr<bool>()>& is_stored) {
  PHIMAP_CHECK(!in_doubt_);
  PHIMAP_RETURN_IF_ERROR(database_->Execute("BEGIN IMMEDIATE"));
  if (absl::Status status = body(); !status.ok()) {
    RollBack();
    return status;
  }
  absl::Status committed = database_->Execute("COMMIT");
  if (committed.ok()) return absl::OkStatus();
  in_doubt_ = true;
  RollBack();
  if (!Settle().ok()) return committed;
  const absl::StatusOr<bool> stored = is_stored();
  // Settled but unreadable: still in doubt as far as the caller is concerned.
  if (!stored.ok()) in_doubt_ = true;
  return stored.ok() && *stored ? absl::OkStatus() : committed;
}

absl::StatusOr<bool> Catalog::HasBuild(absl::string_view mapping, absl::string_view build_id,
                                       absl::Time now) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement row,
      database_->Prepare(
          "SELECT 1 FROM builds WHERE mapping = ? AND build_id = ? AND end_time_us >= ?"));
  return row.Bind(mapping).Bind(build_id).Bind(RetentionStartMicros(now)).Step();
}

absl::StatusOr<int64_t> Catalog::NewestVersion(absl::string_view mapping) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement row,
      database_->Prepare("SELECT coalesce(max(number), 0) FROM versions WHERE mapping = ?"));
  PHIMAP_ASSIGN_OR_RETURN(const bool found, row.Bind(mapping).Step());
  PHIMAP_CHECK(found);  // An aggregate always has its row.
  return row.Int(0);
}

absl::Status Catalog::CheckPublishable(const PublishRequest& request, absl::Time now) {
  const std::string& mapping = request.version.mapping;
  PHIMAP_ASSIGN_OR_RETURN(const bool known, HasBuild(mapping, request.build_id, now));
  if (known) {
    return MakeError(
        absl::StatusCode::kAlreadyExists, "BUILD_EXISTS", "build_id",
        absl::StrCat("build ", request.build_id, " of \"", mapping, "\" has ended already"),
        {{"mapping", mapping}, {"build_id", request.build_id}});
  }
  if (!request.expected_newest.has_value()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const int64_t newest, NewestVersion(mapping));
  if (newest == *request.expected_newest) return absl::OkStatus();
  return MakeError(absl::StatusCode::kAborted, "NEWEST_VERSION_CHANGED", "",
                   absl::StrCat("expected version ", *request.expected_newest,
                                " to be the newest of \"", mapping, "\", it is ", newest),
                   {{"mapping", mapping},
                    {"expected", absl::StrCat(*request.expected_newest)},
                    {"actual", absl::StrCat(newest)}});
}

absl::StatusOr<int64_t> Catalog::TakeNumber(absl::string_view mapping, absl::Time now) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_->Prepare("INSERT INTO mappings (name, next_version, create_time_us) "
                         "VALUES (?, 1, ?) ON CONFLICT (name) DO UPDATE SET deleted = 0, "
                         "create_time_us = excluded.create_time_us WHERE deleted = 1"));
  PHIMAP_RETURN_IF_ERROR(insert.Bind(mapping).Bind(absl::ToUnixMicros(now)).Run());
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_->Prepare("UPDATE mappings SET next_version = next_version + 1 WHERE name = ? "
                         "RETURNING next_version - 1"));
  PHIMAP_ASSIGN_OR_RETURN(const bool found, update.Bind(mapping).Step());
  PHIMAP_CHECK(found);
  return update.Int(0);
}

absl::Status Catalog::InsertVersionRow(const VersionRecord& version) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_->Prepare(absl::StrCat("INSERT INTO versions (", kVersionColumns,
                                      ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")));
  return insert.Bind(version.mapping)
      .Bind(version.number)
      .Bind(version.digest)
      .Bind(version.artifact_size_bytes)
      .Bind(absl::ToUnixMicros(version.create_time))
      .Bind(version.input_columns)
      .Bind(version.output_columns)
      .Bind(version.serving_type)
      .Bind(version.mapping_text)
      .Bind(version.kernel_text)
      .Bind(int64_t{version.imported})
      .Run();
}

absl::Status Catalog::InsertBuildRow(const BuildRecord& build) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_->Prepare("INSERT INTO builds (mapping, build_id, spec_digest, rows_received, "
                         "end_time_us, version, error_code, error_message, error_detail) "
                         "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.Bind(build.mapping)
      .Bind(build.build_id)
      .Bind(build.spec_digest)
      .Bind(build.rows_received)
      .Bind(absl::ToUnixMicros(build.end_time))
      .Bind(build.version)
      .Bind(static_cast<int64_t>(build.error.code()))
      .Bind(build.error.message());
  if (const std::optional<std::string> detail = EncodeErrorDetail(build.error)) {
    insert.Bind(*detail);
  } else {
    insert.BindNull();
  }
  return insert.Run();
}

absl::StatusOr<int64_t> Catalog::DeleteExpiredBuilds(absl::Time now) {
  PHIMAP_ASSIGN_OR_RETURN(SqliteStatement remove,
                          database_->Prepare("DELETE FROM builds WHERE end_time_us < ?"));
  PHIMAP_RETURN_IF_ERROR(remove.Bind(RetentionStartMicros(now)).Run());
  return database_->QueryInt("SELECT changes()");
}

absl::StatusOr<VersionRecord> Catalog::InsertVersion(const PublishRequest& request,
                                                     absl::string_view digest, int64_t size_bytes,
                                                     absl::Time now) {
  VersionRecord version = request.version;
  version.digest = std::string(digest);
  version.artifact_size_bytes = size_bytes;
  // What is returned equals what is read later.
  version.create_time = absl::FromUnixMicros(absl::ToUnixMicros(now));
  PHIMAP_RETURN_IF_ERROR(InTransaction(
      [&]() -> absl::Status {
        PHIMAP_RETURN_IF_ERROR(CheckPublishable(request, now));
        PHIMAP_RETURN_IF_ERROR(DeleteExpiredBuilds(now).status());
        PHIMAP_ASSIGN_OR_RETURN(version.number, TakeNumber(version.mapping, now));
        PHIMAP_RETURN_IF_ERROR(InsertVersionRow(version));
        return InsertBuildRow({.mapping = version.mapping,
                               .build_id = request.build_id,
                               .spec_digest = request.spec_digest,
                               .rows_received = request.rows_received,
                               .end_time = version.create_time,
                               .version = version.number,
                               .error = absl::OkStatus()});
      },
      [&] { return HasBuild(version.mapping, request.build_id, now); }));
  return version;
}

absl::StatusOr<std::optional<VersionRecord>> Catalog::FindDigest(absl::string_view mapping,
                                                                 absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement row,
      database_->Prepare(absl::StrCat("SELECT ", kVersionColumns,
                                      " FROM versions WHERE mapping = ? AND digest = ? "
                                      "ORDER BY number DESC LIMIT 1")));
  PHIMAP_ASSIGN_OR_RETURN(const bool found, row.Bind(mapping).Bind(digest).Step());
  if (!found) return std::nullopt;
  return VersionFromRow(row);
}

absl::StatusOr<VersionRecord> Catalog::ImportVersion(const VersionRecord& imported,
                                                     absl::string_view digest, int64_t size_bytes,
                                                     absl::Time now) {
  VersionRecord version = imported;
  version.digest = std::string(digest);
  version.artifact_size_bytes = size_bytes;
  version.create_time = absl::FromUnixMicros(absl::ToUnixMicros(now));
  version.imported = true;
  PHIMAP_RETURN_IF_ERROR(InTransaction(
      [&]() -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(std::optional<VersionRecord> there,
                                FindDigest(version.mapping, digest));
        if (there.has_value()) {
          version = *std::move(there);
          return absl::OkStatus();
        }
        PHIMAP_ASSIGN_OR_RETURN(version.number, TakeNumber(version.mapping, now));
        return InsertVersionRow(version);
      },
      [&]() -> absl::StatusOr<bool> {
        PHIMAP_ASSIGN_OR_RETURN(const std::optional<VersionRecord> there,
                                FindDigest(version.mapping, digest));
        return there.has_value() && there->number == version.number;
      }));
  return version;
}

absl::Status Catalog::InsertFailedBuild(const BuildRecord& record, absl::Time now) {
  return InTransaction(
      [&]() -> absl::Status {
        PHIMAP_RETURN_IF_ERROR(DeleteExpiredBuilds(now).status());
        PublishRequest request;
        request.version.mapping = record.mapping;
        request.build_id = record.build_id;
        PHIMAP_RETURN_IF_ERROR(CheckPublishable(request, now));
        return InsertBuildRow(record);
      },
      [&] { return HasBuild(record.mapping, record.build_id, now); });
}

absl::StatusOr<int64_t> Catalog::PruneBuilds(absl::Time now) {
  int64_t removed = 0;
  PHIMAP_RETURN_IF_ERROR(InTransaction(
      [&]() -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(removed, DeleteExpiredBuilds(now));
        return absl::OkStatus();
      },
      // Whether they went does not matter: they are not shown either way.
      [] { return true; }));
  return removed;
}

absl::StatusOr<BuildRecord> Catalog::GetBuild(absl::string_view mapping, absl::string_view build_id,
                                              absl::Time now) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement row,
      database_->Prepare("SELECT spec_digest, rows_received, end_time_us, version, error_code, "
                         "error_message, error_detail FROM builds "
                         "WHERE mapping = ? AND build_id = ? AND end_time_us >= ?"));
  PHIMAP_ASSIGN_OR_RETURN(const bool found,
                          row.Bind(mapping).Bind(build_id).Bind(RetentionStartMicros(now)).Step());
  if (!found) {
    return MakeError(absl::StatusCode::kNotFound, "BUILD_NOT_FOUND", "",
                     absl::StrCat("no build ", build_id, " of \"", mapping, "\" ended in the last ",
                                  absl::FormatDuration(kBuildRetention)),
                     {{"mapping", std::string(mapping)}, {"build_id", std::string(build_id)}});
  }
  std::optional<std::string> detail;
  if (!row.IsNull(6)) detail = row.Text(6);
  return BuildRecord{
      .mapping = std::string(mapping),
      .build_id = std::string(build_id),
      .spec_digest = row.Text(0),
      .rows_received = row.Int(1),
      .end_time = absl::FromUnixMicros(row.Int(2)),
      .version = row.Int(3),
      .error = DecodeError(static_cast<absl::StatusCode>(row.Int(4)), row.Text(5), detail)};
}

absl::StatusOr<MappingRecord> Catalog::GetMapping(absl::string_view name) {
  PHIMAP_ASSIGN_OR_RETURN(SqliteStatement row, database_->Prepare(absl::StrCat(
                                                   kMappingSelect, "m.name = ? GROUP BY m.name")));
  PHIMAP_ASSIGN_OR_RETURN(const bool found, row.Bind(name).Step());
  if (!found) return NoSuchMapping(name);
  MappingRecord mapping = MappingFromRow(row);
  PHIMAP_ASSIGN_OR_RETURN(mapping.aliases, AliasesBetween(name, name));
  return mapping;
}

absl::StatusOr<std::vector<MappingRecord>> Catalog::ListMappings(absl::string_view after,
                                                                 int limit) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement row,
      database_->Prepare(
          absl::StrCat(kMappingSelect, "m.name > ? GROUP BY m.name ORDER BY m.name LIMIT ?")));
  // SQLite takes a negative limit for none.
  row.Bind(after).Bind(int64_t{std::max(limit, 0)});
  std::vector<MappingRecord> mappings;
  for (;;) {
    PHIMAP_ASSIGN_OR_RETURN(const bool more, row.Step());
    if (!more) break;
    mappings.push_back(MappingFromRow(row));
  }
  if (mappings.empty()) return mappings;
  PHIMAP_ASSIGN_OR_RETURN(std::vector<AliasRecord> aliases,
                          AliasesBetween(mappings.front().name, mappings.back().name));
  auto mapping = mappings.begin();
  for (AliasRecord& alias : aliases) {
    while (mapping->name != alias.mapping) ++mapping;  // Both are in the order of names.
    mapping->aliases.push_back(std::move(alias));
  }
  return mappings;
}

absl::StatusOr<VersionRecord> Catalog::GetVersion(absl::string_view mapping,
                                                  std::optional<int64_t> number) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement row,
      database_->Prepare(absl::StrCat(
          "SELECT ", kVersionColumns, " FROM versions WHERE mapping = ?",
          number.has_value() ? " AND number = ?" : "", " ORDER BY number DESC LIMIT 1")));
  row.Bind(mapping);
  if (number.has_value()) row.Bind(*number);
  PHIMAP_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (found) return VersionFromRow(row);
  PHIMAP_RETURN_IF_ERROR(GetMapping(mapping).status());
  return NoSuchVersion(mapping, number);
}

absl::StatusOr<VersionRecord> Catalog::GetAliasedVersion(absl::string_view mapping,
                                                         absl::string_view alias) {
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<AliasRecord> found, FindAlias(mapping, alias));
  // One connection, one thread: nothing changes between the two.
  if (found.has_value()) return GetVersion(mapping, found->version);
  PHIMAP_RETURN_IF_ERROR(GetMapping(mapping).status());
  return NoSuchAlias(mapping, alias, "reference");
}

absl::StatusOr<std::vector<VersionRecord>> Catalog::ListVersions(absl::string_view mapping,
                                                                 std::optional<int64_t> before,
                                                                 int limit) {
  PHIMAP_RETURN_IF_ERROR(GetMapping(mapping).status());
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement row,
      database_->Prepare(absl::StrCat(
          "SELECT ", kVersionColumns, " FROM versions WHERE mapping = ?",
          before.has_value() ? " AND number < ?" : "", " ORDER BY number DESC LIMIT ?")));
  row.Bind(mapping);
  if (before.has_value()) row.Bind(*before);
  row.Bind(int64_t{std::max(limit, 0)});
  std::vector<VersionRecord> versions;
  for (;;) {
    PHIMAP_ASSIGN_OR_RETURN(const bool more, row.Step());
    if (!more) return versions;
    versions.push_back(VersionFromRow(row));
  }
}

}  // namespace phimap
