#include "server/store/sqlite/sqlite_database.h"
#include "tests/contract/build_claims_contract.h"
#include "tests/server/store/sqlite/store_fixture.h"

namespace phimap::testing {
namespace {

class SqliteHarness : public BuildClaimsHarness {
 private:
  std::shared_ptr<SqlDatabase> OpenDatabase() override {
    return SqliteDatabase::Open(directory_.path() + "/phimap.sqlite", absl::Seconds(60)).value();
  }

  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, BuildClaimsContractTest,
                         ::testing::Values(BuildClaimsHarnessFactory{
                             "Sqlite", [] { return std::make_unique<SqliteHarness>(); }}),
                         BuildClaimsHarnessName);

}  // namespace
}  // namespace phimap::testing
