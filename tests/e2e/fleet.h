// Starts several real phimapd servers on one real PostgreSQL server.
#ifndef PHIMAP_TESTS_E2E_FLEET_H_
#define PHIMAP_TESTS_E2E_FLEET_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "tests/e2e/process.h"
#include "tests/e2e/server_process.h"
#include "tests/server/support/postgres_server.h"

namespace phimap::e2e {

inline constexpr int kFleetColumns = 4;

inline client::RowBlock FleetRow() {
  static constexpr float kValues[] = {0.1f, -0.2f, 0.3f, 0.05f};
  return client::MakeRowBlock(absl::MakeConstSpan(kValues), kFleetColumns);
}

// An empty database, and servers that use it.
class Fleet {
 public:
  // Pass PostgresServer::Shared(), unless the test stops PostgreSQL or changes its settings.
  explicit Fleet(testing::PostgresServer& postgres)
      : postgres_(postgres), database_(postgres.CreateDatabase()), uri_(postgres.Uri(database_)) {}
  // Makes servers that start later use `standby` when the primary is not available.
  void AddStandby(const testing::PostgresServer& standby) {
    uri_ = absl::StrCat("postgresql://postgres@127.0.0.1:", postgres_.port(),
                        ",127.0.0.1:", standby.port(), "/", database_);
  }

  // Starts a server that has its own cache folder, called `name`. A server that is restarted with
  // the same name keeps its cache.
  std::unique_ptr<ServerProcess> Start(const std::string& name,
                                       std::vector<std::string> flags = {}) {
    return StartAt(uri(), name, std::move(flags));
  }
  // As Start, with another way to the database, and with the beginning of a command line.
  std::unique_ptr<ServerProcess> StartAt(const std::string& uri, const std::string& name,
                                         std::vector<std::string> flags,
                                         const std::vector<std::string>& launcher = {}) {
    flags.insert(flags.begin(), {absl::StrCat("--store=", uri),
                                 absl::StrCat("--cache_dir=", folder_.path(), "/", name)});
    return std::make_unique<ServerProcess>("", flags, launcher);
  }
  // Writes the database to a file, and makes it what that file says.
  void Dump(const std::string& path) const {
    RunOrFail({kPostgresPrograms + "pg_dump", uri(), "--schema=phimap", "--file", path});
  }
  void Restore(const std::string& path) const {
    // A server's statement may deadlock with the removal of the tables that it reads.
    ProcessResult dropped;
    for (int i = 0; i < 20; ++i) {
      dropped = RunProcess({"/usr/bin/env", "psql", uri(), "--quiet", "--set=ON_ERROR_STOP=1",
                            "--command=DROP SCHEMA phimap CASCADE"});
      if (dropped.exit_code == 0) break;
    }
    ASSERT_EQ(dropped.exit_code, 0) << dropped.err;
    RunOrFail({"/usr/bin/env", "psql", uri(), "--quiet", "--set=ON_ERROR_STOP=1", "--file", path});
  }
  // Cuts all connections of all servers to the database. The servers connect again at once.
  void CutConnections() {
    postgres_.Run(
        absl::StrCat("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                     "WHERE datname = '",
                     database_, "'"));
  }
  const std::string& uri() const { return uri_; }
  const std::string& database() const { return database_; }
  testing::PostgresServer& postgres() { return postgres_; }
  std::string CacheOf(const std::string& name) const { return folder_.path() + "/" + name; }

 private:
  inline static const std::string kPostgresPrograms = "/usr/lib/postgresql/15/bin/";

  static void RunOrFail(const std::vector<std::string>& command) {
    const ProcessResult done = RunProcess(command);
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }

  testing::PostgresServer& postgres_;
  const std::string database_;
  std::string uri_;
  TemporaryFolder folder_;
};

// Builds versions 1 to `count` of a mapping, each with different features.
inline void BuildVersions(client::Client& client, const std::string& mapping, int count) {
  for (int i = 1; i <= count; ++i) {
    GeneratedRows rows(200, kFleetColumns, i);
    const auto version = client
                             .Build({.name = mapping,
                                     .spec = "f1(landmarks=20)",
                                     .kernel = "rbf(gamma=scale)",
                                     .seed = static_cast<uint64_t>(i)},
                                    rows)
                             .value();
    ASSERT_EQ(version.ref().number(), i);
  }
}

// Returns the version that answers a Transform, or 0 if the call fails.
inline int64_t Answering(client::Client& client, const std::string& reference) {
  const auto mapped = client.Transform(reference, FleetRow());
  EXPECT_TRUE(mapped.ok()) << mapped.status();
  return mapped.ok() ? mapped->version.number() : 0;
}

}  // namespace phimap::e2e

#endif  // PHIMAP_TESTS_E2E_FLEET_H_
