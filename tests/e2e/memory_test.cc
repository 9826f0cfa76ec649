// Streaming many rows takes no more memory than streaming few.
#include <iostream>

#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"

namespace phimap::e2e {
namespace {

int64_t PeakAfterBuild(int64_t rows) {
  TemporaryFolder folder;
  ServerProcess server(folder.path());
  GeneratedRows source(rows, 16, 1);
  const auto version = server.Connect()->Build({.mapping = "stream",
                                                .mapping_text = "f2(landmarks=100)",
                                                .kernel_text = "rbf(gamma=scale)",
                                                .standardize = true},
                                               source);
  EXPECT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(version.ok() ? version->certificate().stream_rows() : -1, rows);
  return server.PeakMemoryBytes();
}

TEST(MemoryTest, TwoMillionRowsRaiseThePeakByUnder64MiBOverTwentyThousand) {
  const int64_t few = PeakAfterBuild(20'000);
  const int64_t many = PeakAfterBuild(2'000'000);
  std::cout << "peak " << few / 1048576.0 << " MiB for 20,000 rows, " << many / 1048576.0
            << " MiB for 2,000,000\n";
  EXPECT_LT(many - few, 64 << 20);
}

}  // namespace
}  // namespace phimap::e2e
