// Tests claims of builds on PostgreSQL: with a direct connection, and through PgBouncer.
#include "tests/contract/build_claims_contract.h"
#include "tests/server/store/postgres/postgres_harness.h"

namespace phimap::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Postgres, BuildClaimsContractTest,
    ::testing::Values(
        BuildClaimsHarnessFactory{
            "Directly", [] { return std::make_unique<DirectHarness<BuildClaimsHarness>>(); }},
        BuildClaimsHarnessFactory{
            "ThroughPgBouncer",
            [] { return std::make_unique<PoolerHarness<BuildClaimsHarness>>(); }}),
    BuildClaimsHarnessName);

}  // namespace
}  // namespace phimap::testing
