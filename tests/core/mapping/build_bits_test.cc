// Tests that the bytes of a version depend on the spec, the seed and the rows alone, for every
// mapping and landmark policy. corpus/build_corpus_test compares small builds with the bytes that
// their release gave.
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/linalg/blas.h"
#include "core/mapping/build/version_build.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

BuiltVersion BuildOnThreads(const BuildSpec& spec, const Matrix<double>& rows, int threads) {
  StreamSample sample(spec, rows.cols());
  EXPECT_TRUE(sample.Add(WireRows(rows)).ok());
  ThreadedMonitor monitor(threads);
  BuiltVersion built = BuildVersion(spec, std::move(sample), monitor).value();
  const std::string text = spec.mapping.ToText();
  const bool chooses = text.find("policy=uniform") == std::string::npos ||
                       text.find("landmarks=auto") != std::string::npos;
  EXPECT_EQ(monitor.phases.at(0), "sample");
  EXPECT_EQ(monitor.phases.at(1) == "choose", chooses) << text;
  return built;
}

// There are enough landmarks, dimensions and held-out rows for several tiles in each step.
TEST(BuildBitsTest, DoNotDependOnTheNumberOfThreads) {
  UseOneBlasThread();
  const Matrix<double> rows = NormalRows({.rows = 9000, .cols = 5, .seed = 1});
  const char kSum[] = "rbf(gamma=scale) + 0.1*laplacian(gamma=0.3)";
  const char kRbf[] = "rbf(gamma=scale)";
  const struct {
    const char* mapping;
    const char* kernel;
  } kCases[] = {
      {"f1(landmarks=700)", kSum},
      {"f2(landmarks=700)", kSum},
      {"f3(landmarks=600, dimensions=300)", kSum},
      {"f1(landmarks=60, policy=rpcholesky)", kRbf},
      {"f2(landmarks=300, policy=rpcholesky, serving_type=float64)", kSum},
      {"f3(landmarks=60, dimensions=9, policy=rpcholesky)", kRbf},
      {"f2(landmarks=40, policy=d2)", kRbf},
      {"f2(landmarks=40, policy=kmeans)", kRbf},
      {"f2(landmarks=auto(residual=0.05))", kRbf},
      {"kpca(landmarks=1100, dimensions=40)", kSum},
      {"kpca(landmarks=300, dimensions=292)", kSum},
      {"kpca(landmarks=700, dimensions=10, centred=false, rounding=20)", kSum},
      {"kpca(landmarks=700, dimensions=3, sparsify=4)", kSum},
      {"kpca(landmarks=600, dimensions=3, quantise=true)", kSum},
      {"kpca(landmarks=700, dimensions=3, sparsify=2, quantise=true)", kSum},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.mapping);
    const BuildSpec spec = SpecOf(c.mapping, c.kernel, true);
    const std::string bytes = BuildOnThreads(spec, rows, 1).bytes;
    EXPECT_EQ(BuildOnThreads(spec, rows, 2).bytes, bytes);
    EXPECT_EQ(BuildOnThreads(spec, rows, 5).bytes, bytes);
  }
}

TEST(BuildBitsTest, DependOnTheSeedAndOnEveryParameter) {
  const Matrix<double> rows = NormalRows({.rows = 100, .cols = 8, .seed = 9});
  const struct {
    const char* mapping;
    const char* kernel;
  } kCases[] = {
      {"fourier(dimensions=20, form=phase, orthogonal=false)", "rbf(gamma=1)"},
      {"fourier(dimensions=20, form=phase, orthogonal=true)", "rbf(gamma=1)"},
      {"fourier(dimensions=20, form=sincos, orthogonal=false)", "rbf(gamma=1)"},
      {"fourier(dimensions=20, form=sincos, orthogonal=true)", "rbf(gamma=1)"},
      {"random_projection(dimensions=5, projection=gaussian)", "linear()"},
      {"random_projection(dimensions=5, projection=sign)", "linear()"},
      {"random_projection(dimensions=5, projection=sparse)", "linear()"},
      {"random_projection(dimensions=5, projection=orthonormal)", "linear()"},
      {"kpca(landmarks=80, dimensions=4, centred=false)", "rbf(gamma=0.2)"},
      {"kpca(landmarks=80, dimensions=4, centred=true)", "rbf(gamma=0.2)"},
      {"f2(landmarks=40, policy=d2)", "rbf(gamma=1)"},
      {"f2(landmarks=40, policy=kmeans)", "rbf(gamma=1)"},
  };
  std::set<std::string> different;
  for (const auto& c : kCases) {
    for (const uint64_t seed : {1, 2}) {
      const BuildSpec spec = SpecOf(c.mapping, c.kernel, false, seed);
      const std::string bytes = MustBuild(spec, rows).bytes;
      EXPECT_EQ(MustBuild(spec, rows).bytes, bytes) << c.mapping;
      different.insert(bytes);
    }
  }
  EXPECT_EQ(different.size(), 2 * std::size(kCases));
}

}  // namespace
}  // namespace phimap::testing
