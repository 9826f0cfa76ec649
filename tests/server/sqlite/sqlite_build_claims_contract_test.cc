#include "server/sqlite/sqlite_database.h"
#include "tests/contract/build_claims_contract.h"
#include "tests/server/sqlite/store_fixture.h"

namespace phimap {
namespace {

class SqliteHarness : public BuildClaimsHarness {
 private:
  std::shared_ptr<SqlDatabase> OpenDatabase() override {
    absl::StatusOr<std::unique_ptr<SqliteDatabase>> database =
        SqliteDatabase::Open(directory_.path() + "/phimap.sqlite", absl::Seconds(60));
    EXPECT_TRUE(database.ok()) << database.status();
    return *std::move(database);
  }

  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, BuildClaimsContractTest,
                         ::testing::Values(BuildClaimsHarnessFactory{
                             "Sqlite", [] { return std::make_unique<SqliteHarness>(); }}),
                         BuildClaimsHarnessName);

}  // namespace
}  // namespace phimap
