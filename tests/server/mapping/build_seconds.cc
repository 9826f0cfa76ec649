// Prints forecast and measured CPU times of builds side by side, and fails when a forecast is off
// by more than a factor of 3. CPU time is measured so that a busy machine does not matter.
#include <time.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "core/linalg/blas.h"
#include "core/mapping/build/version_build.h"
#include "core/status/check.h"
#include "server/mapping/forecasts.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

struct Case {
  const char* mapping;
  const char* kernel;
  int64_t rows;
  int64_t columns;
};

constexpr Case kCases[] = {
    {"f1(landmarks=500)", "rbf(gamma=scale)", 20'000, 16},
    {"f1(landmarks=4000)", "rbf(gamma=scale)", 20'000, 16},
    {"f1(landmarks=1000)", "linear()", 20'000, 200},
    {"f2(landmarks=20)", "rbf(gamma=scale)", 1'000, 4},
    {"f2(landmarks=100)", "rbf(gamma=scale)", 200'000, 16},
    {"f2(landmarks=500)", "rbf(gamma=scale)", 20'000, 16},
    {"f2(landmarks=500)", "rbf(gamma=scale)", 2'000, 2'000},
    {"f2(landmarks=1000)", "rbf(gamma=scale)", 20'000, 200},
    {"f2(landmarks=1000, serving_type=float64)", "rbf(gamma=scale)", 20'000, 16},
    {"f2(landmarks=1000)", "rbf(gamma=median)", 20'000, 16},
    {"f2(landmarks=1000)", "linear()", 20'000, 16},
    {"f2(landmarks=1000)", "poly(degree=2, coef0=1)", 20'000, 16},
    {"f2(landmarks=1000)", "rbf(gamma=scale) + 0.1*poly(degree=3)*rbf(gamma=1)", 20'000, 16},
    {"f2(landmarks=2000)", "rbf(gamma=scale)", 20'000, 16},
    {"f2(landmarks=4000)", "rbf(gamma=scale)", 20'000, 16},
    {"f3(landmarks=1000, dimensions=500)", "rbf(gamma=scale)", 20'000, 16},
    {"f3(landmarks=2000, dimensions=200)", "rbf(gamma=scale)", 20'000, 16},
    {"f3(landmarks=2000, dimensions=2000, projection=sign)", "rbf(gamma=scale)", 20'000, 16},
    {"random_projection(dimensions=256)", "linear()", 20'000, 64},
    {"random_projection(dimensions=2000)", "linear()", 20'000, 2'000},
    {"random_projection(dimensions=2000, projection=sparse)", "linear()", 2'000, 2'000},
    {"random_projection(dimensions=1000, projection=orthonormal)", "linear()", 2'000, 2'000},
};

class Unwatched final : public BuildMonitor {
 public:
  absl::Status Checkpoint(absl::string_view, double) override { return absl::OkStatus(); }
};

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double SecondsOfBuild(const BuildSpec& spec, const Matrix<double>& rows) {
  const double before = ThreadSeconds();
  StreamSample sample(spec, rows.cols());
  PHIMAP_CHECK(sample.Add(testing::WireRows(rows)).ok());
  Unwatched monitor;
  PHIMAP_CHECK(BuildVersion(spec, std::move(sample), monitor).ok());
  return ThreadSeconds() - before;
}

int Run() {
  UseOneBlasThread();
  BuildEstimator estimator;
  int off = 0;
  std::printf("%10s %10s %7s  build (%s)\n", "forecast", "measured", "ratio",
              BlasCoreName().c_str());
  for (const Case& c : kCases) {
    const BuildSpec spec{.mapping = MappingSpec::Parse(c.mapping).value(),
                         .kernel = KernelExpression::Parse(c.kernel).value(),
                         .standardize = true,
                         .seed = 1};
    const double forecast = estimator.Estimate(spec, c.rows, c.columns).seconds;
    const double measured =
        SecondsOfBuild(spec, testing::NormalRows({.rows = c.rows, .cols = c.columns}));
    const double ratio = forecast / measured;
    const bool good = ratio > 1.0 / 3 && ratio < 3;
    off += !good;
    std::printf("%8.4f s %8.4f s %7.2f  %s of %s, %lld rows of %lld%s\n", forecast, measured, ratio,
                c.mapping, c.kernel, static_cast<long long>(c.rows),
                static_cast<long long>(c.columns), good ? "" : "  OFF");
  }
  std::printf("%d of %zu off by more than a factor of 3\n", off, std::size(kCases));
  return off == 0 ? 0 : 1;
}

}  // namespace
}  // namespace phimap

int main() { return phimap::Run(); }
