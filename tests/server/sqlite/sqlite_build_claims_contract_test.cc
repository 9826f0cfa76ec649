#include "server/sqlite/sqlite_database.h"
#include "server/store/sql_build_claims.h"
#include "server/store/sql_catalog.h"
#include "tests/contract/build_claims_contract.h"
#include "tests/server/sqlite/store_fixture.h"

namespace phimap {
namespace {

class SqliteHarness : public BuildClaimsHarness {
 public:
  ClaimingServer Open(const std::string& server_id) override {
    absl::StatusOr<std::unique_ptr<SqliteDatabase>> opened =
        SqliteDatabase::Open(directory_.path() + "/phimap.sqlite", absl::Seconds(60));
    EXPECT_TRUE(opened.ok()) << opened.status();
    const std::shared_ptr<SqlDatabase> database = *std::move(opened);
    return {std::make_unique<SqlCatalog>(database),
            std::make_unique<SqlBuildClaims>(database, server_id)};
  }

 private:
  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, BuildClaimsContractTest,
                         ::testing::Values(BuildClaimsHarnessFactory{
                             "Sqlite", [] { return std::make_unique<SqliteHarness>(); }}),
                         BuildClaimsHarnessName);

}  // namespace
}  // namespace phimap
