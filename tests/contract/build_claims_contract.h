// Requirements that claims of builds must meet on every database, tested with two servers on one
// store. A new database instantiates the suite:
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
#include "server/store/store.h"
#include "tests/contract/memory_blobs.h"

namespace phimap::testing {

// The parts of a store, as one server process opens them.
struct ClaimingServer {
  std::unique_ptr<Store> catalog;
  std::unique_ptr<BuildClaims> claims;
};

// An empty storage place for a store.
class BuildClaimsHarness {
 public:
  virtual ~BuildClaimsHarness() = default;
  // Opens the store and its claims, as another server process would. The harness outlives them.
  ClaimingServer Open(const std::string& server_id) {
    const std::shared_ptr<SqlDatabase> database = OpenDatabase();
    return {std::make_unique<Store>(database, blobs_),
            std::make_unique<BuildClaims>(database, server_id)};
  }

 private:
  virtual std::shared_ptr<SqlDatabase> OpenDatabase() = 0;

  const std::shared_ptr<Blobs> blobs_ = std::make_shared<MemoryBlobs>();
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

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CONTRACT_BUILD_CLAIMS_CONTRACT_H_
