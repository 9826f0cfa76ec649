// Requirements of every Blobs, as a test suite. A new implementation instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(Files, BlobsContractTest,
//                            ::testing::Values(BlobsHarnessFactory{"Files", MakeHarness}),
//                            BlobsHarnessName);
#ifndef PHIMAP_TESTS_CONTRACT_BLOBS_CONTRACT_H_
#define PHIMAP_TESTS_CONTRACT_BLOBS_CONTRACT_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "server/store/blobs.h"

namespace phimap {

// An empty place for blobs.
class BlobsHarness {
 public:
  virtual ~BlobsHarness() = default;
  // Opens what is there. The harness outlives it.
  virtual std::unique_ptr<Blobs> Open() = 0;
  // Puts other bytes in the place of a blob's, behind everybody's back.
  virtual void Damage(const std::string& digest, const std::string& content) = 0;
};

struct BlobsHarnessFactory {
  std::string name;
  std::function<std::unique_ptr<BlobsHarness>()> make;
};

inline std::string BlobsHarnessName(const ::testing::TestParamInfo<BlobsHarnessFactory>& info) {
  return info.param.name;
}

class BlobsContractTest : public ::testing::TestWithParam<BlobsHarnessFactory> {
 protected:
  BlobsContractTest() : harness_(GetParam().make()), blobs_(harness_->Open()) {}

  // Writes it, and fails the test if that fails; returns its digest.
  std::string Write(const std::string& content);

  const std::unique_ptr<BlobsHarness> harness_;
  const std::unique_ptr<Blobs> blobs_;
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_CONTRACT_BLOBS_CONTRACT_H_
