// Requirements that every Store must meet, as a test suite. A new implementation instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContractTest,
//                            ::testing::Values(StoreHarnessFactory{"Sqlite", MakeHarness}),
//                            StoreHarnessName);
#ifndef PHIMAP_TESTS_CONTRACT_STORE_CONTRACT_H_
#define PHIMAP_TESTS_CONTRACT_STORE_CONTRACT_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "server/store/store.h"

namespace phimap::testing {

// An empty store to be tested, with a clock that only the test moves.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;
  virtual Store& store() = 0;
  // Closes the store and opens it again on the same data.
  virtual void Restart() = 0;
  virtual absl::Time Now() = 0;
  virtual void AdvanceClock(absl::Duration duration) = 0;
};

struct StoreHarnessFactory {
  std::string name;
  std::function<std::unique_ptr<StoreHarness>()> make;
};

inline std::string StoreHarnessName(const ::testing::TestParamInfo<StoreHarnessFactory>& info) {
  return info.param.name;
}

class StoreContractTest : public ::testing::TestWithParam<StoreHarnessFactory> {
 protected:
  StoreContractTest() : harness_(GetParam().make()) {}
  Store& store() { return harness_->store(); }
  // Publishes a version. Fails the test if the publish fails.
  VersionRecord MustPublish(const std::string& mapping, const std::string& build_id,
                            const std::string& artifact = "artifact");
  // Publishes versions 1 to `count` of "letters", by the builds b1, b2 … with the artifacts a1, a2
  // …
  void PublishLetters(int count);

  const std::unique_ptr<StoreHarness> harness_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CONTRACT_STORE_CONTRACT_H_
