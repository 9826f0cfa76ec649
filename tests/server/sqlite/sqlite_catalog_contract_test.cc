#include "server/sqlite/sqlite_database.h"
#include "server/store/sql_catalog.h"
#include "tests/contract/catalog_contract.h"
#include "tests/server/sqlite/store_fixture.h"

namespace phimap {
namespace {

class SqliteHarness : public CatalogHarness {
 public:
  std::unique_ptr<Catalog> Open() override {
    absl::StatusOr<std::unique_ptr<SqliteDatabase>> database =
        SqliteDatabase::Open(directory_.path() + "/phimap.sqlite", absl::Seconds(60));
    EXPECT_TRUE(database.ok()) << database.status();
    return std::make_unique<SqlCatalog>(*std::move(database));
  }

 private:
  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, CatalogContractTest,
                         ::testing::Values(CatalogHarnessFactory{
                             "Sqlite", [] { return std::make_unique<SqliteHarness>(); }}),
                         CatalogHarnessName);

}  // namespace
}  // namespace phimap
