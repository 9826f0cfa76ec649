// Requirements that every Blobs must meet, as a test suite. A new implementation instantiates it:
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

namespace phimap::testing {

// Returns pseudo-random bytes, so that bytes from a wrong position are noticed.
inline std::string SomeBytes(int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1'664'525 + 1'013'904'223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

// Reads and joins all pieces of a reader, or returns the first error.
inline absl::StatusOr<std::string> ReadAll(ArtifactReader& reader, int64_t limit_bytes) {
  std::string all;
  for (;;) {
    absl::StatusOr<std::string> piece = reader.Next(limit_bytes);
    if (!piece.ok()) return piece.status();
    if (piece->empty()) return all;
    EXPECT_LE(piece->size(), limit_bytes);
    all += *piece;
  }
}

// An empty storage place for blobs.
class BlobsHarness {
 public:
  virtual ~BlobsHarness() = default;
  // Opens a Blobs on the storage place and its present contents. The harness outlives the returned
  // object.
  virtual std::unique_ptr<Blobs> Open() = 0;
  // Replaces the bytes of a stored blob by `content`, bypassing Blobs.
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

  // Writes a blob and returns its digest. Fails the test if the write fails.
  std::string Write(const std::string& content);

  const std::unique_ptr<BlobsHarness> harness_;
  const std::unique_ptr<Blobs> blobs_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CONTRACT_BLOBS_CONTRACT_H_
