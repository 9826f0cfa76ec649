// Requirements of every BuildClaims, with two servers on one store. A new implementation
// instantiates it:
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

// A process's parts of a store.
struct ClaimingServer {
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<BuildClaims> claims;
};

// An empty place for a store.
class BuildClaimsHarness {
 public:
  virtual ~BuildClaimsHarness() = default;
  // Opens what is there, as another process would. The harness outlives it.
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
  // Takes the build "u" of "letters"; fails the test if that cannot be asked.
  static BuildClaims::Taken Take(BuildClaims& claims, absl::Duration lease = absl::Hours(1));
  // Renews it; as above.
  static BuildClaims::Renewed Renew(BuildClaims& claims, int64_t epoch,
                                    const ClaimedProgress& progress = {});
  // Result of publishing it.
  static absl::Status Publish(ClaimingServer& server, const BuildClaimant& claimant);

  const std::unique_ptr<BuildClaimsHarness> harness_ = GetParam().make();
  ClaimingServer a_ = harness_->Open("a");
  ClaimingServer b_ = harness_->Open("b");
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_CONTRACT_BUILD_CLAIMS_CONTRACT_H_
