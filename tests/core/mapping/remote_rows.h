// Streams, kernel values and mappings that the tests of remote kernels share.
#ifndef PHIMAP_TESTS_CORE_MAPPING_REMOTE_ROWS_H_
#define PHIMAP_TESTS_CORE_MAPPING_REMOTE_ROWS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/linalg/matrix.h"
#include "core/mapping/build/version_build.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {

inline constexpr char kRbf[] = "rbf(gamma=0.2)";
inline constexpr char kService[] = "service(endpoint=here, kernel=rbf)";
inline constexpr int64_t kStreamRows = 300;
inline constexpr int64_t kStreamColumns = 5;

inline Matrix<double> StreamRows(int64_t rows = kStreamRows, uint64_t seed = 1) {
  return NormalRows({.rows = rows, .cols = kStreamColumns, .seed = seed});
}

inline Matrix<double> Gram(const Matrix<double>& x, const char* kernel = kRbf) {
  return NaiveKernelMatrix(MustParseKernel(kernel), x, x);
}

inline Matrix<double> Picked(const Matrix<double>& rows, const std::vector<int64_t>& which) {
  Matrix<double> picked = Matrix<double>::Uninit(static_cast<int64_t>(which.size()), rows.cols());
  for (size_t i = 0; i < which.size(); ++i) {
    std::copy_n(rows.row(which[i]), rows.cols(), picked.row(static_cast<int64_t>(i)));
  }
  return picked;
}

// Returns K(x, ·) for the version's landmarks, in the version's order.
inline Matrix<double> ValuesFor(const BuiltVersion& version, const Matrix<double>& stream,
                                const Matrix<double>& x) {
  return NaiveKernelMatrix(MustParseKernel(kRbf), x,
                           Picked(stream, version.certificate.landmark_rows));
}

struct Named {
  const char* name;
  const char* mapping;
};
inline constexpr Named kFamilies[] = {
    {"F1", "f1(landmarks=24, serving_type=float64)"},
    {"F2", "f2(landmarks=24, serving_type=float64)"},
    {"F3", "f3(landmarks=24, dimensions=12, serving_type=float64)"},
    {"KPCA", "kpca(landmarks=24, dimensions=6, serving_type=float64)"},
};
// Rounding drops the landmarks of this mapping that are left without a weight.
inline constexpr Named kRounded = {
    "rounded KPCA",
    "kpca(landmarks=24, dimensions=4, centred=false, rounding=6, serving_type=float64)"};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_MAPPING_REMOTE_ROWS_H_
