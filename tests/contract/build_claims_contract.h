// Requirements that every BuildClaims must meet, tested with two servers on one store. A new
// implementation instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, BuildClaimsContractTest,
//                            ::testing::Values(BuildClaimsHarnessFactory{"Sqlite", MakeHarness}),
//                            BuildClaimsHarnessName);
#ifndef PHIMAP_TESTS_CONTRACT_BUILD_CLAIMS_CONTRACT_H_
#define PHIMAP_TESTS_CONTRACT_BUILD_CLAIMS_CONTRACT_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "server/store/build_claims.h"
#include "server/store/catalog.h"

namespace phimap {

// The parts of a store, as one server process opens them.
struct ClaimingServer {
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<BuildClaims> claims;
};

// An empty storage place for a store.
class BuildClaimsHarness {
 public:
  virtual ~BuildClaimsHarness() = default;
  // Opens the store's catalog and claims, as another server process would. The harness outlives
  // them.
  virtual ClaimingServer Open(const std::string& server_id) = 0;
};

struct BuildClaimsHarnessFactory {
  std::string name;
  std::function<std::unique_ptr<BuildClaimsHarness>()> make;
};

inline std::string BuildClaimsHarnessName(
    const ::testing::TestParamInfo<BuildClaimsHarnessFactory>& info) {
  return info.param.name;
}

class BuildClaimsContractTest : public ::testing::TestWithParam<BuildClaimsHarnessFactory> {
 protected:
  // Takes the claim on build "u" of mapping "letters". Fails the test if the call returns an error.
  static BuildClaims::Taken Take(BuildClaims& claims, absl::Duration lease = absl::Hours(1));
  // Renews the claim on the same build. Fails the test if the call returns an error.
  static BuildClaims::Renewed Renew(BuildClaims& claims, int64_t epoch,
                                    const ClaimedProgress& progress = {});
  // Publishes a version as the result of the same build and returns the status of the publish.
  static absl::Status Publish(ClaimingServer& server, const BuildClaimant& claimant);

  const std::unique_ptr<BuildClaimsHarness> harness_ = GetParam().make();
  ClaimingServer a_ = harness_->Open("a");
  ClaimingServer b_ = harness_->Open("b");
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_CONTRACT_BUILD_CLAIMS_CONTRACT_H_
