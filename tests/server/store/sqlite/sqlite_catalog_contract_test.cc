#include "server/store/sqlite/sqlite_database.h"
#include "tests/contract/catalog_contract.h"
#include "tests/server/store/sqlite/store_fixture.h"

namespace phimap::testing {
namespace {

class SqliteHarness : public CatalogHarness {
 private:
  std::shared_ptr<SqlDatabase> OpenDatabase() override {
    return SqliteDatabase::Open(directory_.path() + "/phimap.sqlite", absl::Seconds(60)).value();
  }

  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, CatalogContractTest,
                         ::testing::Values(CatalogHarnessFactory{
                             "Sqlite", [] { return std::make_unique<SqliteHarness>(); }}),
                         CatalogHarnessName);

}  // namespace
}  // namespace phimap::testing
