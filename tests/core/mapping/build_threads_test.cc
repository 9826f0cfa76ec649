// Tests builds on several threads.
#include <string>
#include <utility>
#include <vector>

#include "core/linalg/blas.h"
#include "core/mapping/build/version_build.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::NormalRows;
using testing::SpecOf;
using testing::ThreadedMonitor;
using testing::WireRows;

// There are enough landmarks, dimensions and held-out rows for several tiles in each step.
TEST(BuildThreadsTest, BytesDoNotDependOnTheNumberOfThreads) {
  UseOneBlasThread();
  const Matrix<double> rows = NormalRows({.rows = 9000, .cols = 5, .seed = 1});
  for (const char* text :
       {"f1(landmarks=700)", "f2(landmarks=700)", "f3(landmarks=600, dimensions=300)",
        "f2(landmarks=300, policy=rpcholesky, serving_type=float64)",
        "kpca(landmarks=1100, dimensions=40)", "kpca(landmarks=300, dimensions=292)",
        "kpca(landmarks=700, dimensions=10, centred=false, rounding=20)",
        "kpca(landmarks=700, dimensions=3, sparsify=4)",
        "kpca(landmarks=600, dimensions=3, quantise=true)",
        "kpca(landmarks=700, dimensions=3, sparsify=2, quantise=true)"}) {
    SCOPED_TRACE(text);
    const BuildSpec spec = SpecOf(text, "rbf(gamma=scale) + 0.1*laplacian(gamma=0.3)", true);
    std::vector<std::string> bytes;
    for (const int threads : {1, 2, 5}) {
      StreamSample sample(spec, rows.cols());
      ASSERT_TRUE(sample.Add(WireRows(rows)).ok());
      ThreadedMonitor monitor(threads);
      const absl::StatusOr<BuiltVersion> built = BuildVersion(spec, std::move(sample), monitor);
      ASSERT_TRUE(built.ok()) << built.status();
      bytes.push_back(built->bytes);
    }
    EXPECT_EQ(bytes[1], bytes[0]);
    EXPECT_EQ(bytes[2], bytes[0]);
  }
}

}  // namespace
}  // namespace phimap
