// Tests the catalog on PostgreSQL: with a direct connection, and through PgBouncer.
#include "tests/contract/catalog_contract.h"
#include "tests/server/store/postgres/postgres_harness.h"

namespace phimap::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Postgres, CatalogContractTest,
    ::testing::Values(
        CatalogHarnessFactory{"Directly",
                              [] { return std::make_unique<DirectHarness<CatalogHarness>>(); }},
        CatalogHarnessFactory{"ThroughPgBouncer",
                              [] { return std::make_unique<PoolerHarness<CatalogHarness>>(); }}),
    CatalogHarnessName);

}  // namespace
}  // namespace phimap::testing
