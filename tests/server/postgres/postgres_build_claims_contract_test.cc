// Tests claims of builds on PostgreSQL: with a direct connection, and through PgBouncer.
#include "server/postgres/postgres_database.h"
#include "server/store/sql_build_claims.h"
#include "server/store/sql_catalog.h"
#include "tests/contract/build_claims_contract.h"
#include "tests/server/support/postgres_server.h"

namespace phimap {
namespace {

using ::phimap::testing::PgBouncer;
using ::phimap::testing::PostgresServer;

ClaimingServer OpenAt(const std::string& uri, const std::string& server_id) {
  absl::StatusOr<std::unique_ptr<PostgresDatabase>> opened = PostgresDatabase::Open(uri);
  EXPECT_TRUE(opened.ok()) << opened.status();
  const std::shared_ptr<SqlDatabase> database = *std::move(opened);
  return {std::make_unique<SqlCatalog>(database),
          std::make_unique<SqlBuildClaims>(database, server_id)};
}

class PostgresHarness : public BuildClaimsHarness {
 public:
  ClaimingServer Open(const std::string& server_id) override {
    return OpenAt(server_.Uri(name_), server_id);
  }

 private:
  PostgresServer& server_ = PostgresServer::Shared();
  const std::string name_ = server_.CreateDatabase();
};

class PoolerHarness : public BuildClaimsHarness {
 public:
  ClaimingServer Open(const std::string& server_id) override {
    return OpenAt(pooler_.Uri(name_), server_id);
  }

 private:
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
