// Tests claims of builds on PostgreSQL: with a direct connection, and through PgBouncer.
#include "server/postgres/postgres_database.h"
#include "tests/contract/build_claims_contract.h"
#include "tests/server/support/postgres_server.h"

namespace phimap {
namespace {

using ::phimap::testing::PgBouncer;
using ::phimap::testing::PostgresServer;

std::shared_ptr<SqlDatabase> OpenAt(const std::string& uri) {
  absl::StatusOr<std::unique_ptr<PostgresDatabase>> database = PostgresDatabase::Open(uri);
  EXPECT_TRUE(database.ok()) << database.status();
  return *std::move(database);
}

class PostgresHarness : public BuildClaimsHarness {
 private:
  std::shared_ptr<SqlDatabase> OpenDatabase() override { return OpenAt(server_.Uri(name_)); }

  PostgresServer& server_ = PostgresServer::Shared();
  const std::string name_ = server_.CreateDatabase();
};

class PoolerHarness : public BuildClaimsHarness {
 private:
  std::shared_ptr<SqlDatabase> OpenDatabase() override { return OpenAt(pooler_.Uri(name_)); }

  PostgresServer& server_ = PostgresServer::Shared();
  const std::string name_ = server_.CreateDatabase();
  PgBouncer pooler_{server_};
};

INSTANTIATE_TEST_SUITE_P(
    Postgres, BuildClaimsContractTest,
    ::testing::Values(BuildClaimsHarnessFactory{"Directly",
                                                [] { return std::make_unique<PostgresHarness>(); }},
                      BuildClaimsHarnessFactory{"ThroughPgBouncer",
                                                [] { return std::make_unique<PoolerHarness>(); }}),
    BuildClaimsHarnessName);

}  // namespace
}  // namespace phimap
