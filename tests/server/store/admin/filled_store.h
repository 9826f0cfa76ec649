// A SQLite or PostgreSQL store with contents, which can be opened the way a server opens it or the
// way `phimapd admin` does.
#ifndef PHIMAP_TESTS_SERVER_STORE_ADMIN_FILLED_STORE_H_
#define PHIMAP_TESTS_SERVER_STORE_ADMIN_FILLED_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/admin/admin_store.h"
#include "server/store/admin/store_backup.h"
#include "server/store/garbage_collector.h"
#include "server/store/postgres/postgres_blobs.h"
#include "server/store/postgres/postgres_database.h"
#include "server/store/store.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/server/support/postgres_server.h"

namespace phimap::admin_test {

enum class Kind { kSqlite, kPostgres };

inline std::string KindName(Kind kind) { return kind == Kind::kSqlite ? "Sqlite" : "Postgres"; }

inline std::string ReasonIn(const absl::Status& status) {
  return DetailOf(status).value_or(ErrorDetail()).reason;
}

inline const AdminProgress kNeverCancel = [](int64_t, int64_t) { return true; };

// The address of a store, which need not exist yet.
class Place {
 public:
  explicit Place(Kind kind) : kind_(kind) {
    if (kind != Kind::kPostgres) return;
    database_ = testing::PostgresServer::Shared().CreateDatabase();
    address_ = testing::PostgresServer::Shared().Uri(database_);
  }
  // The address in the form that --store takes.
  std::string address() const {
    return kind_ == Kind::kPostgres ? address_ : directory_.path() + "/data";
  }
  Kind kind() const { return kind_; }
  const std::string& database() const { return database_; }

  // Opens the store as a server does, with the system's clock, because the times of holds and of
  // garbage are compared with that clock.
  std::unique_ptr<Store> Serve() const {
    if (kind_ == Kind::kSqlite) {
      SqliteStoreOptions options{.data_dir = address(), .reserve_bytes = 0};
      auto opened = SqliteStore::Open(options, PosixFileSystem());
      EXPECT_TRUE(opened.ok()) << opened.status();
      return opened.ok() ? *std::move(opened) : nullptr;
    }
    auto opened = PostgresDatabase::Open(address_).value();
    std::shared_ptr<PostgresDatabase> database = std::move(opened);
    auto blobs = std::make_shared<PostgresBlobs>(database);
    return std::make_unique<Store>(database, blobs);
  }
  AdminStore Open() const {
    absl::StatusOr<AdminStore> opened = OpenAdminStore(address());
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : AdminStore();
  }

 private:
  const Kind kind_;
  TemporaryDirectory directory_;
  std::string database_;
  std::string address_;
};

// Returns an artifact of over a megabyte, so that it is read in pieces. The bytes depend on `name`.
inline std::string ArtifactOf(const std::string& name) {
  std::string artifact;
  while (artifact.size() < (size_t{5} << 18)) absl::StrAppend(&artifact, name, " ");
  return artifact;
}

// Fills the store with letters@1, 3 and 4 (2 was deleted), with the alias letters@prod at version
// 3, after it was at version 1; digits@1, imported with the bytes of letters@1; a mapping that was
// deleted after two versions; and a build that failed.
inline void FillStore(Store& store) {
  for (int i = 1; i <= 4; ++i) {
    ASSERT_TRUE(
        store.Publish(RequestFor(absl::StrCat("build-", i)), ArtifactOf(absl::StrCat("letters", i)))
            .ok());
  }
  ASSERT_TRUE(store.DeleteVersion("letters", 2).ok());
  ASSERT_TRUE(store.SetAlias("letters", "prod", 1, "").ok());
  ASSERT_TRUE(store.SetAlias("letters", "prod", 3, "").ok());
  VersionRecord imported = RequestFor("").version;
  imported.mapping = "digits";
  imported.imported = true;
  ASSERT_TRUE(store.Import(imported, ArtifactOf("letters1")).ok());
  for (int i = 1; i <= 2; ++i) {
    ASSERT_TRUE(
        store.Publish(RequestFor(absl::StrCat("gone-", i), "gone"), ArtifactOf("gone")).ok());
  }
  ASSERT_TRUE(store.DeleteMapping("gone").ok());
  ASSERT_TRUE(store
                  .RecordFailedBuild({.mapping = "letters",
                                      .build_id = "failed",
                                      .spec_digest = "spec",
                                      .rows_received = 7,
                                      .end_time = absl::Now(),
                                      .error = absl::DataLossError("rows are missing")})
                  .ok());
}

// Describes in text everything that a store shows after FillStore.
inline std::string Shown(Store& store) {
  std::string text;
  const std::vector<MappingRecord> mappings = store.ListMappings("", 100).value();
  for (const MappingRecord& mapping : mappings) {
    absl::StrAppend(&text, mapping.name, " newest ", mapping.newest_version, "\n");
    for (const AliasRecord& alias : mapping.aliases) {
      absl::StrAppend(&text, "  @", alias.name, " ", alias.version, " before ",
                      alias.previous_version, " ", alias.etag, " ",
                      absl::ToUnixMicros(alias.move_time), "\n");
    }
    const std::vector<VersionRecord> versions =
        store.ListVersions(mapping.name, std::nullopt, 100).value();
    for (const VersionRecord& version : versions) {
      const absl::StatusOr<std::string> artifact = store.ReadArtifactOf(version);
      absl::StrAppend(&text, "  ", version.number, " ", version.digest, " ",
                      absl::ToUnixMicros(version.create_time), " ", version.imported, " ",
                      artifact.ok() ? artifact->substr(0, 9) : artifact.status().ToString(), "\n");
    }
  }
  for (const char* build : {"build-1", "build-2", "build-3", "failed"}) {
    const absl::StatusOr<BuildRecord> record = store.GetBuild("letters", build);
    absl::StrAppend(
        &text, build, " ",
        record.ok() ? absl::StrCat(record->version, " ", record->error.message()) : "unknown",
        "\n");
  }
  return text;
}

}  // namespace phimap::admin_test

#endif  // PHIMAP_TESTS_SERVER_STORE_ADMIN_FILLED_STORE_H_
