#include "server/store/catalog_tables.h"

#include <map>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/catalog_errors.h"

namespace phimap {
namespace {

constexpr char kVersionColumns[] =
    "mapping, number, digest, artifact_size_bytes, create_time_us, input_columns, output_columns, "
    "serving_type, mapping_text, kernel_text, imported, ttl_us, expire_time_us, made_by";
// The last column but one is the time at which the version expires: 0 (never) while an alias keeps
// it.
constexpr char kVersionSelect[] =
    "SELECT mapping, number, digest, artifact_size_bytes, create_time_us, input_columns, "
    "output_columns, serving_type, mapping_text, kernel_text, imported, ttl_us, "
    "CASE WHEN EXISTS (SELECT 1 FROM aliases a WHERE a.mapping = versions.mapping AND "
    "(a.version = versions.number OR a.previous_version = versions.number)) "
    "THEN 0 ELSE expire_time_us END, made_by FROM versions ";
// The row of a deleted mapping is not selected. It exists only to keep the counter of version
// numbers.
constexpr char kMappingSelect[] =
    "SELECT m.name, coalesce(max(v.number), 0), count(v.number), m.create_time_us "
    "FROM mappings m LEFT JOIN versions v ON v.mapping = m.name WHERE m.deleted = 0 AND ";
constexpr char kAliasSelect[] =
    "SELECT mapping, alias, version, previous_version, etag, move_time_us, "
    "(SELECT digest FROM versions WHERE versions.mapping = aliases.mapping AND number = version), "
    "moved_by "
    "FROM aliases ";

VersionRecord VersionAt(const SqlRows& rows, size_t row) {
  VersionRecord version;
  version.mapping = rows.Text(row, 0);
  version.number = rows.Int(row, 1);
  version.digest = rows.Text(row, 2);
  version.artifact_size_bytes = rows.Int(row, 3);
  version.create_time = absl::FromUnixMicros(rows.Int(row, 4));
  version.input_columns = rows.Int(row, 5);
  version.output_columns = rows.Int(row, 6);
  version.serving_type = rows.Text(row, 7);
  version.spec_text = rows.Text(row, 8);
  version.kernel_text = rows.Text(row, 9);
  version.imported = rows.Int(row, 10) != 0;
  if (rows.Int(row, 11) > 0) version.ttl = absl::Microseconds(rows.Int(row, 11));
  if (rows.Int(row, 12) > 0) version.expire_time = absl::FromUnixMicros(rows.Int(row, 12));
  version.made_by = rows.Text(row, 13);
  return version;
}

MappingRecord MappingAt(const SqlRows& rows, size_t row) {
  return {.name = rows.Text(row, 0),
          .newest_version = rows.Int(row, 1),
          .version_count = rows.Int(row, 2),
          .create_time = absl::FromUnixMicros(rows.Int(row, 3))};
}

AliasRecord AliasAt(const SqlRows& rows, size_t row) {
  AliasRecord alias;
  alias.mapping = rows.Text(row, 0);
  alias.name = rows.Text(row, 1);
  alias.version = rows.Int(row, 2);
  alias.previous_version = rows.Int(row, 3);
  alias.etag = rows.Text(row, 4);
  alias.move_time = absl::FromUnixMicros(rows.Int(row, 5));
  alias.digest = rows.Text(row, 6);
  alias.moved_by = rows.Text(row, 7);
  return alias;
}

// Returns the ttl in microseconds, or 0 if it is infinite.
int64_t TtlMicros(absl::Duration ttl) {
  return ttl == absl::InfiniteDuration() ? 0 : absl::ToInt64Microseconds(ttl);
}
int64_t ExpiryMicros(absl::Time time) {
  return time == absl::InfiniteFuture() ? 0 : absl::ToUnixMicros(time);
}

// EncodeErrorDetail and DecodeError convert a build's final error to columns of a row and back:
// code, message, and the machine-readable detail. EncodeErrorDetail returns DetailOf(status) as
// text, or nullopt if the status has no detail. Strings of any content are preserved.
//
// Encodes the detail as lines: reason, field, retry delay, and then each key followed by its value.
// Each of these is C-escaped, so that it stays one line.
std::optional<std::string> EncodeErrorDetail(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return std::nullopt;
  std::string text = absl::StrCat(absl::CEscape(detail->reason), "\n", absl::CEscape(detail->field),
                                  "\n", detail->retry_delay_ms);
  for (const auto& [key, value] : detail->metadata) {
    absl::StrAppend(&text, "\n", absl::CEscape(key), "\n", absl::CEscape(value));
  }
  return text;
}

// Returns the status with this code and full message, and with the encoded detail attached. A
// `detail` that EncodeErrorDetail cannot have returned is dropped, because the rest of a build's
// record is useful without it.
absl::Status DecodeError(absl::StatusCode code, const std::string& message,
                         const std::optional<std::string>& detail) {
  if (code == absl::StatusCode::kOk) return absl::OkStatus();
  const absl::Status plain(code, message);
  if (!detail.has_value()) return plain;
  std::vector<std::string> lines = absl::StrSplit(*detail, '\n');
  if (lines.size() < 3 || lines.size() % 2 == 0) return plain;
  for (std::string& line : lines) {
    std::string unescaped;
    if (!absl::CUnescape(line, &unescaped)) return plain;
    line = std::move(unescaped);
  }
  int64_t retry_delay_ms = 0;
  if (!absl::SimpleAtoi(lines[2], &retry_delay_ms)) return plain;
  std::map<std::string, std::string> metadata;
  for (size_t i = 3; i < lines.size(); i += 2) metadata[lines[i]] = lines[i + 1];
  // MakeError puts "field: " before the message, but the stored message already begins with it.
  absl::string_view bare = message;
  if (!lines[1].empty()) bare = absl::StripPrefix(bare, absl::StrCat(lines[1], ": "));
  return MakeError(code, lines[0], lines[1], bare, std::move(metadata), retry_delay_ms);
}

// A restore that is under way makes the tables before it fills them.
absl::Status StoreRowMissing() {
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kStoreInvalid, "",
                   "the table store lacks its row; if the database is being restored, wait for the "
                   "end, and otherwise restore it from a backup");
}

}  // namespace

namespace {

// The id that the caller gave, from the key of the operation, which may begin with the caller's
// name and a space.
std::string IdGivenIn(const std::string& key) { return key.substr(key.rfind(' ') + 1); }

}  // namespace

std::string NewOperationId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x%08x%08x", device(), device(), device(), device());
}

int64_t RetentionStartMicros(absl::Time now) { return absl::ToUnixMicros(now - kBuildRetention); }

absl::StatusOr<Revision> CatalogTables::CurrentRevision() {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows, session_.Run("SELECT id, revision FROM head"));
  if (rows.empty()) return StoreRowMissing();
  return Revision{rows.Text(0, 0), rows.Int(0, 1)};
}

absl::StatusOr<std::string> CatalogTables::IdOfRevision(int64_t number) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session_.Run("SELECT id FROM changes WHERE revision = $1", {number}));
  return rows.empty() ? std::string() : rows.Text(0, 0);
}

absl::StatusOr<std::vector<Revision>> CatalogTables::RevisionsAfter(int64_t number) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session_.Run("SELECT id, revision FROM changes WHERE revision > $1 "
                                       "ORDER BY revision DESC LIMIT $2",
                                       {number, kListedRevisions}));
  std::vector<Revision> revisions(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    revisions[rows.size() - 1 - i] = {rows.Text(i, 0), rows.Int(i, 1)};
  }
  return revisions;
}

absl::StatusOr<bool> CatalogTables::IsInHistory(const Revision& revision) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string id, IdOfRevision(revision.number));
  if (!id.empty()) return id == revision.id;
  // The ids of the oldest changes are not kept, so that nothing speaks against such a revision.
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows later,
      session_.Run("SELECT 1 FROM store WHERE $1 < (SELECT min(revision) FROM changes)",
                   {revision.number}));
  return !later.empty();
}

absl::StatusOr<std::vector<MappingNames>> CatalogTables::NamesSince(int64_t since, bool living) {
  const int64_t deleted = living ? 0 : 1;
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run("SELECT m.name, v.number, v.digest FROM mappings m "
                   "LEFT JOIN versions v ON v.mapping = m.name "
                   "WHERE m.revision > $1 AND m.deleted <= $2 ORDER BY m.name, v.number",
                   {since, deleted}));
  std::vector<MappingNames> names;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (names.empty() || names.back().mapping != rows.Text(i, 0)) {
      names.push_back({.mapping = rows.Text(i, 0)});
    }
    if (rows.IsNull(i, 1)) continue;
    names.back().versions.push_back(rows.Int(i, 1));
    names.back().digests.push_back(rows.Text(i, 2));
  }
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows aliases,
      session_.Run("SELECT a.mapping, a.alias, a.version FROM aliases a "
                   "JOIN mappings m ON m.name = a.mapping "
                   "WHERE m.revision > $1 AND m.deleted <= $2 ORDER BY a.mapping, a.alias",
                   {since, deleted}));
  auto mapping = names.begin();
  for (size_t i = 0; i < aliases.size(); ++i) {
    while (mapping->mapping != aliases.Text(i, 0)) ++mapping;  // Both are sorted by name.
    mapping->aliases.push_back({aliases.Text(i, 1), aliases.Int(i, 2)});
  }
  return names;
}

absl::StatusOr<NameChanges> CatalogTables::ChangesSince(const Revision& since) {
  NameChanges changes;
  PHIMAP_ASSIGN_OR_RETURN(changes.revision, CurrentRevision());
  if (changes.revision == since) return changes;
  PHIMAP_ASSIGN_OR_RETURN(const std::string id, IdOfRevision(since.number));
  changes.whole = since.id.empty() || id != since.id;
  const int64_t from = changes.whole ? -1 : since.number;
  PHIMAP_ASSIGN_OR_RETURN(changes.mappings, NamesSince(from, changes.whole));
  PHIMAP_ASSIGN_OR_RETURN(changes.passed, RevisionsAfter(from));
  return changes;
}

absl::Status CatalogTables::CountChange(absl::string_view mapping) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run("UPDATE store SET revision = revision + 1 RETURNING revision"));
  if (rows.empty()) return StoreRowMissing();
  return session_
      .Run("UPDATE mappings SET revision = $1 WHERE name = $2", {rows.Int(0, 0), mapping})
      .status();
}

absl::StatusOr<std::vector<MappingRecord>> CatalogTables::Mappings(
    absl::string_view rest, absl::Span<const SqlValue> values) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session_.Run(absl::StrCat(kMappingSelect, rest), values));
  std::vector<MappingRecord> mappings;
  mappings.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) mappings.push_back(MappingAt(rows, i));
  return mappings;
}

absl::StatusOr<std::vector<VersionRecord>> CatalogTables::Versions(
    absl::string_view rest, absl::Span<const SqlValue> values) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session_.Run(absl::StrCat(kVersionSelect, rest), values));
  std::vector<VersionRecord> versions;
  versions.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) versions.push_back(VersionAt(rows, i));
  return versions;
}

absl::StatusOr<std::vector<AliasRecord>> CatalogTables::Aliases(absl::string_view rest,
                                                                absl::Span<const SqlValue> values) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session_.Run(absl::StrCat(kAliasSelect, rest), values));
  std::vector<AliasRecord> aliases;
  aliases.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) aliases.push_back(AliasAt(rows, i));
  return aliases;
}

absl::StatusOr<MappingRecord> CatalogTables::GetMapping(absl::string_view name) {
  PHIMAP_ASSIGN_OR_RETURN(std::vector<MappingRecord> found,
                          Mappings("m.name = $1 GROUP BY m.name", {name}));
  if (found.empty()) return NoSuchMapping(name);
  PHIMAP_ASSIGN_OR_RETURN(found[0].aliases, AliasesBetween(name, name));
  return std::move(found[0]);
}

absl::Status CatalogTables::MarkMappingDeleted(absl::string_view mapping) {
  return session_.Run("UPDATE mappings SET deleted = 1 WHERE name = $1", {mapping}).status();
}

absl::StatusOr<int64_t> CatalogTables::TakeNumber(absl::string_view mapping, absl::Time now) {
  PHIMAP_RETURN_IF_ERROR(
      session_
          .Run("INSERT INTO mappings (name, next_version, create_time_us) VALUES ($1, 1, $2) "
               "ON CONFLICT (name) DO UPDATE SET deleted = 0, "
               "create_time_us = excluded.create_time_us WHERE mappings.deleted = 1",
               {mapping, absl::ToUnixMicros(now)})
          .status());
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run("UPDATE mappings SET next_version = next_version + 1 WHERE name = $1 "
                   "RETURNING next_version - 1",
                   {mapping}));
  PHIMAP_CHECK(!rows.empty());
  return rows.Int(0, 0);
}

absl::Status CatalogTables::InsertVersion(const VersionRecord& version) {
  return session_
      .Run(absl::StrCat("INSERT INTO versions (", kVersionColumns,
                        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"),
           {version.mapping, version.number, version.digest, version.artifact_size_bytes,
            absl::ToUnixMicros(version.create_time), version.input_columns, version.output_columns,
            version.serving_type, version.spec_text, version.kernel_text, int64_t{version.imported},
            TtlMicros(version.ttl), ExpiryMicros(version.expire_time), version.made_by})
      .status();
}

absl::StatusOr<VersionRecord> CatalogTables::GetVersion(absl::string_view mapping,
                                                        std::optional<int64_t> number) {
  PHIMAP_ASSIGN_OR_RETURN(
      std::vector<VersionRecord> found,
      number.has_value() ? Versions("WHERE mapping = $1 AND number = $2", {mapping, *number})
                         : Versions("WHERE mapping = $1 ORDER BY number DESC LIMIT 1", {mapping}));
  if (!found.empty()) return std::move(found[0]);
  PHIMAP_RETURN_IF_ERROR(GetMapping(mapping).status());
  return NoSuchVersion(mapping, number);
}

absl::StatusOr<int64_t> CatalogTables::NewestVersion(absl::string_view mapping) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run("SELECT coalesce(max(number), 0) FROM versions WHERE mapping = $1", {mapping}));
  return rows.Int(0, 0);
}

absl::Status CatalogTables::DeleteVersions(absl::string_view mapping,
                                           std::optional<int64_t> number) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows digests, DigestsOf(mapping, number));
  if (number.has_value()) {
    PHIMAP_RETURN_IF_ERROR(
        session_.Run("DELETE FROM builds WHERE mapping = $1 AND version = $2", {mapping, *number})
            .status());
    PHIMAP_RETURN_IF_ERROR(
        session_.Run("DELETE FROM versions WHERE mapping = $1 AND number = $2", {mapping, *number})
            .status());
  } else {
    // A failed build has version 0, so its record stays.
    PHIMAP_RETURN_IF_ERROR(
        session_.Run("DELETE FROM builds WHERE mapping = $1 AND version > 0", {mapping}).status());
    PHIMAP_RETURN_IF_ERROR(
        session_.Run("DELETE FROM versions WHERE mapping = $1", {mapping}).status());
  }
  for (size_t i = 0; i < digests.size(); ++i) PHIMAP_RETURN_IF_ERROR(List(digests.Text(i, 0)));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> CatalogTables::ArtifactSizeBytes(absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run("SELECT artifact_size_bytes FROM versions WHERE digest = $1 LIMIT 1", {digest}));
  if (rows.empty()) return std::nullopt;
  return rows.Int(0, 0);
}

absl::StatusOr<SqlRows> CatalogTables::DigestsOf(absl::string_view mapping,
                                                 std::optional<int64_t> number) {
  constexpr absl::string_view kSelect = "SELECT DISTINCT digest FROM versions WHERE mapping = $1";
  if (!number.has_value()) return session_.Run(kSelect, {mapping});
  return session_.Run(absl::StrCat(kSelect, " AND number = $2"), {mapping, *number});
}

absl::Status CatalogTables::List(absl::string_view digest) {
  return session_
      .Run(
          "INSERT INTO unreferenced (digest, since_us) SELECT CAST($1 AS TEXT), now_us FROM clock "
          "WHERE NOT EXISTS (SELECT 1 FROM versions WHERE digest = $1) "
          "ON CONFLICT (digest) DO NOTHING",
          {digest})
      .status();
}

absl::Status CatalogTables::Unlist(absl::string_view digest) {
  return session_.Run("DELETE FROM unreferenced WHERE digest = $1", {digest}).status();
}

absl::StatusOr<std::optional<AliasRecord>> CatalogTables::FindAlias(absl::string_view mapping,
                                                                    absl::string_view alias) {
  PHIMAP_ASSIGN_OR_RETURN(std::vector<AliasRecord> found,
                          Aliases("WHERE mapping = $1 AND alias = $2", {mapping, alias}));
  if (found.empty()) return std::nullopt;
  return std::move(found[0]);
}

absl::StatusOr<std::vector<AliasRecord>> CatalogTables::AliasesBetween(absl::string_view first,
                                                                       absl::string_view last) {
  return Aliases("WHERE mapping >= $1 AND mapping <= $2 ORDER BY mapping, alias", {first, last});
}

absl::Status CatalogTables::SetTtl(absl::string_view mapping, int64_t number, absl::Duration ttl,
                                   absl::Time now) {
  const bool expires = ttl != absl::InfiniteDuration();
  return session_
      .Run(
          "UPDATE versions SET ttl_us = $1, expire_time_us = $2 "
          "WHERE mapping = $3 AND number = $4",
          {expires ? absl::ToInt64Microseconds(ttl) : 0,
           expires ? absl::ToUnixMicros(now + ttl) : 0, mapping, number})
      .status();
}

absl::Status CatalogTables::UseVersion(absl::string_view mapping, int64_t number, absl::Time now) {
  // Clocks of servers differ a little, so the condition ensures that a use never brings the expiry
  // nearer.
  return session_
      .Run(
          "UPDATE versions SET expire_time_us = ttl_us + $1 "
          "WHERE mapping = $2 AND number = $3 AND ttl_us > 0 AND expire_time_us < ttl_us + $1",
          {absl::ToUnixMicros(now), mapping, number})
      .status();
}

absl::Status CatalogTables::InsertBuild(const BuildRecord& build) {
  const std::optional<std::string> detail = EncodeErrorDetail(build.error);
  return session_
      .Run(
          "INSERT INTO builds (mapping, build_id, spec_digest, rows_received, end_time_us, "
          "version, error_code, error_message, error_detail) "
          "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
          {build.mapping, build.build_id, build.spec_digest, build.rows_received,
           absl::ToUnixMicros(build.end_time), build.version,
           static_cast<int64_t>(build.error.code()), build.error.message(),
           detail.has_value() ? SqlValue(absl::string_view(*detail)) : SqlValue()})
      .status();
}

absl::Status CatalogTables::DeleteBuild(absl::string_view mapping, absl::string_view build_id) {
  return session_
      .Run("DELETE FROM builds WHERE mapping = $1 AND build_id = $2", {mapping, build_id})
      .status();
}

absl::StatusOr<bool> CatalogTables::HasBuild(absl::string_view mapping, absl::string_view build_id,
                                             absl::Time now) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run("SELECT 1 FROM builds WHERE mapping = $1 AND build_id = $2 AND "
                   "end_time_us >= $3",
                   {mapping, build_id, RetentionStartMicros(now)}));
  return !rows.empty();
}

absl::StatusOr<BuildRecord> CatalogTables::GetBuild(absl::string_view mapping,
                                                    absl::string_view build_id, absl::Time now) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run("SELECT spec_digest, rows_received, end_time_us, version, error_code, "
                   "error_message, error_detail FROM builds "
                   "WHERE mapping = $1 AND build_id = $2 AND end_time_us >= $3",
                   {mapping, build_id, RetentionStartMicros(now)}));
  if (rows.empty()) {
    return MakeError(absl::StatusCode::kNotFound, reason::kBuildNotFound, "",
                     absl::StrCat("no build ", build_id, " of \"", mapping, "\" ended in the last ",
                                  absl::FormatDuration(kBuildRetention)),
                     {{"mapping", std::string(mapping)}, {"build_id", std::string(build_id)}});
  }
  std::optional<std::string> detail;
  if (!rows.IsNull(0, 6)) detail = rows.Text(0, 6);
  return BuildRecord{
      .mapping = std::string(mapping),
      .build_id = std::string(build_id),
      .spec_digest = rows.Text(0, 0),
      .rows_received = rows.Int(0, 1),
      .end_time = absl::FromUnixMicros(rows.Int(0, 2)),
      .version = rows.Int(0, 3),
      .error = DecodeError(static_cast<absl::StatusCode>(rows.Int(0, 4)), rows.Text(0, 5), detail)};
}

absl::StatusOr<std::optional<std::string>> CatalogTables::FindOperation(
    const Operation& operation) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run("SELECT request, outcome FROM operations WHERE operation_id = $1",
                   {operation.id}));
  if (rows.empty()) return std::nullopt;
  if (rows.Text(0, 0) == operation.request) return rows.Text(0, 1);
  return MakeError(absl::StatusCode::kAlreadyExists, reason::kOperationIdReused, "operation_id",
                   absl::StrCat("operation ", IdGivenIn(operation.id), " was another request: ",
                                rows.Text(0, 0), "; send each change with an id of its own"),
                   {{"operation_id", IdGivenIn(operation.id)}});
}

absl::StatusOr<bool> CatalogTables::HasOperation(absl::string_view id) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session_.Run("SELECT 1 FROM operations WHERE operation_id = $1", {id}));
  return !rows.empty();
}

absl::Status CatalogTables::AddOperation(const Operation& operation, absl::string_view outcome,
                                         absl::Time now) {
  return session_
      .Run(
          "INSERT INTO operations (operation_id, request, outcome, end_time_us) "
          "VALUES ($1, $2, $3, $4)",
          {operation.id, operation.request, outcome, absl::ToUnixMicros(now)})
      .status();
}

}  // namespace phimap
