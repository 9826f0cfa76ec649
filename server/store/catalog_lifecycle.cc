// What changes names after they were published: aliases move, versions and mappings go.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "server/store/catalog.h"
#include "server/store/catalog_errors.h"

namespace phimap {
namespace {

constexpr char kAliasColumns[] =
    "mapping, alias, version, previous_version, etag, move_time_us, (SELECT digest FROM versions "
    "WHERE versions.mapping = aliases.mapping AND number = version) FROM aliases ";

AliasRecord AliasFromRow(const SqliteStatement& row) {
  AliasRecord alias;
  alias.mapping = row.Text(0);
  alias.name = row.Text(1);
  alias.version = row.Int(2);
  alias.previous_version = row.Int(3);
  alias.etag = row.Text(4);
  alias.move_time = absl::FromUnixMicros(row.Int(5));
  alias.digest = row.Text(6);
  return alias;
}

bool EtagMatches(absl::string_view expected, const std::optional<AliasRecord>& current) {
  if (expected.empty()) return true;
  if (expected == kNoEtag) return !current.has_value();
  return current.has_value() && (expected == kAnyEtag || expected == current->etag);
}

absl::Status CheckEtag(absl::string_view mapping, absl::string_view alias,
                       absl::string_view expected, const std::optional<AliasRecord>& current) {
  if (EtagMatches(expected, current)) return absl::OkStatus();
  return EtagMismatch(mapping, alias, expected, current.has_value() ? &*current : nullptr);
}

}  // namespace

absl::StatusOr<std::optional<AliasRecord>> Catalog::FindAlias(absl::string_view mapping,
                                                              absl::string_view alias) {
  PHIMAP_ASSIGN_OR_RETURN(SqliteStatement row,
                          database_->Prepare(absl::StrCat("SELECT ", kAliasColumns,
                                                          "WHERE mapping = ? AND alias = ?")));
  PHIMAP_ASSIGN_OR_RETURN(const bool found, row.Bind(mapping).Bind(alias).Step());
  if (!found) return std::nullopt;
  return AliasFromRow(row);
}

absl::StatusOr<std::vector<AliasRecord>> Catalog::AliasesBetween(absl::string_view first,
                                                                 absl::string_view last) {
  PHIMAP_ASSIGN_OR_RETURN(SqliteStatement row,
                          database_->Prepare(absl::StrCat(
                              "SELECT ", kAliasColumns,
                              "WHERE mapping >= ? AND mapping <= ? ORDER BY mapping, alias")));
  row.Bind(first).Bind(last);
  std::vector<AliasRecord> aliases;
  for (;;) {
    PHIMAP_ASSIGN_OR_RETURN(const bool more, row.Step());
    if (!more) return aliases;
    aliases.push_back(AliasFromRow(row));
  }
}

absl::Status Catalog::PutAlias(const AliasRecord& alias) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement put,
      database_->Prepare("INSERT INTO aliases (mapping, alias, version, previous_version, etag, "
                         "move_time_us) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (mapping, alias) DO "
                         "UPDATE SET version = excluded.version, "
                         "previous_version = excluded.previous_version, etag = excluded.etag, "
                         "move_time_us = excluded.move_time_us"));
  return put.Bind(alias.mapping)
      .Bind(alias.name)
      .Bind(alias.version)
      .Bind(alias.previous_version)
      .Bind(alias.etag)
      .Bind(absl::ToUnixMicros(alias.move_time))
      .Run();
}

absl::StatusOr<AliasRecord> Catalog::SetAlias(absl::string_view mapping, absl::string_view alias,
                                              int64_t version, absl::string_view etag,
                                              absl::Time now) {
  AliasRecord moved;
  moved.mapping = std::string(mapping);
  moved.name = std::string(alias);
  moved.version = version;
  moved.move_time = absl::FromUnixMicros(absl::ToUnixMicros(now));
  PHIMAP_ASSIGN_OR_RETURN(moved.etag, database_->QueryText("SELECT lower(hex(randomblob(8)))"));
  PHIMAP_RETURN_IF_ERROR(InTransaction(
      [&]() -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(const VersionRecord aimed_at, GetVersion(mapping, version));
        moved.digest = aimed_at.digest;
        PHIMAP_ASSIGN_OR_RETURN(const std::optional<AliasRecord> current,
                                FindAlias(mapping, alias));
        PHIMAP_RETURN_IF_ERROR(CheckEtag(mapping, alias, etag, current));
        if (current.has_value() && current->version == version) {
          moved = *current;
          return absl::OkStatus();
        }
        if (current.has_value()) {
          moved.previous_version = current->version;
        } else {
          PHIMAP_ASSIGN_OR_RETURN(const std::vector<AliasRecord> all,
                                  AliasesBetween(mapping, mapping));
          if (all.size() >= kMaxAliases) return TooManyAliases(mapping);
        }
        return PutAlias(moved);
      },
      [&]() -> absl::StatusOr<bool> {
        PHIMAP_ASSIGN_OR_RETURN(const std::optional<AliasRecord> current,
                                FindAlias(mapping, alias));
        return current.has_value() && current->etag == moved.etag;
      }));
  return moved;
}

absl::Status Catalog::DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                  absl::string_view etag) {
  return InTransaction(
      [&]() -> absl::Status {
        PHIMAP_RETURN_IF_ERROR(GetMapping(mapping).status());
        PHIMAP_ASSIGN_OR_RETURN(const std::optional<AliasRecord> current,
                                FindAlias(mapping, alias));
        PHIMAP_RETURN_IF_ERROR(CheckEtag(mapping, alias, etag, current));
        if (!current.has_value()) return NoSuchAlias(mapping, alias, "alias");
        PHIMAP_ASSIGN_OR_RETURN(
            SqliteStatement remove,
            database_->Prepare("DELETE FROM aliases WHERE mapping = ? AND alias = ?"));
        return remove.Bind(mapping).Bind(alias).Run();
      },
      [&]() -> absl::StatusOr<bool> {
        PHIMAP_ASSIGN_OR_RETURN(const std::optional<AliasRecord> current,
                                FindAlias(mapping, alias));
        return !current.has_value();
      });
}

absl::Status Catalog::CollectDigests(absl::string_view mapping, std::optional<int64_t> number,
                                     std::vector<std::string>* digests) {
  PHIMAP_ASSIGN_OR_RETURN(
      SqliteStatement row,
      database_->Prepare(absl::StrCat("SELECT DISTINCT digest FROM versions WHERE mapping = ?",
                                      number.has_value() ? " AND number = ?" : "")));
  row.Bind(mapping);
  if (number.has_value()) row.Bind(*number);
  for (;;) {
    PHIMAP_ASSIGN_OR_RETURN(const bool more, row.Step());
    if (!more) return absl::OkStatus();
    digests->push_back(row.Text(0));
  }
}

absl::Status Catalog::DeleteVersionRows(absl::string_view mapping, std::optional<int64_t> number) {
  const bool one = number.has_value();
  for (const char* statement : {// A failed build has version 0: its record stays.
                                one ? "DELETE FROM builds WHERE mapping = ? AND version = ?"
                                    : "DELETE FROM builds WHERE mapping = ? AND version > 0",
                                one ? "DELETE FROM versions WHERE mapping = ? AND number = ?"
                                    : "DELETE FROM versions WHERE mapping = ?"}) {
    PHIMAP_ASSIGN_OR_RETURN(SqliteStatement remove, database_->Prepare(statement));
    remove.Bind(mapping);
    if (one) remove.Bind(*number);
    PHIMAP_RETURN_IF_ERROR(remove.Run());
  }
  return absl::OkStatus();
}

absl::Status Catalog::CheckUnused(absl::string_view mapping, int64_t number, Rollbacks rollbacks) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<AliasRecord> aliases, AliasesBetween(mapping, mapping));
  std::vector<AliasRecord> there;
  std::vector<AliasRecord> came_from;
  for (const AliasRecord& alias : aliases) {
    if (alias.version == number) there.push_back(alias);
    if (alias.previous_version == number) came_from.push_back(alias);
  }
  if (!there.empty()) return InUse(mapping, number, there);
  if (rollbacks == Rollbacks::kKeep && !came_from.empty()) {
    return RolledBackTo(mapping, number, came_from);
  }
  return absl::OkStatus();
}

absl::Status Catalog::DeleteVersion(absl::string_view mapping, int64_t number, Rollbacks rollbacks,
                                    std::vector<std::string>* digests) {
  return InTransaction(
      [&]() -> absl::Status {
        PHIMAP_RETURN_IF_ERROR(GetVersion(mapping, number).status());
        PHIMAP_RETURN_IF_ERROR(CheckUnused(mapping, number, rollbacks));
        PHIMAP_RETURN_IF_ERROR(CollectDigests(mapping, number, digests));
        return DeleteVersionRows(mapping, number);
      },
      [&]() -> absl::StatusOr<bool> {
        return absl::IsNotFound(GetVersion(mapping, number).status());
      });
}

absl::Status Catalog::DeleteMapping(absl::string_view mapping, std::vector<std::string>* digests) {
  return InTransaction(
      [&]() -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(const MappingRecord record, GetMapping(mapping));
        if (!record.aliases.empty()) return InUse(mapping, std::nullopt, record.aliases);
        PHIMAP_RETURN_IF_ERROR(CollectDigests(mapping, std::nullopt, digests));
        PHIMAP_RETURN_IF_ERROR(DeleteVersionRows(mapping, std::nullopt));
        PHIMAP_ASSIGN_OR_RETURN(
            SqliteStatement bury,
            database_->Prepare("UPDATE mappings SET deleted = 1 WHERE name = ?"));
        return bury.Bind(mapping).Run();
      },
      [&]() -> absl::StatusOr<bool> { return absl::IsNotFound(GetMapping(mapping).status()); });
}

}  // namespace phimap
