#include "core/linalg/triangular_inverse.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kBlockRows = 128;

}  // namespace

absl::StatusOr<Matrix<double>> TransposedInverseOfLowerTriangle(ConstMatrixView<double> l,
                                                                const TileControl& control) {
  PHIMAP_CHECK(l.rows() == l.cols());
  const int64_t n = l.rows();
  for (int64_t i = 0; i < n; ++i) {
    if (l(i, i) != 0) continue;
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kTriangleSingular, "",
                     absl::StrCat("the triangular factor has a zero on its diagonal, in row ", i));
  }
  Matrix<double> w(n, n);
  // Computes the rows of W in block t. They begin as rows of the identity, and are solved from the
  // right with the part of L from row and column `begin` on. Their columns before `begin` are 0.
  const auto block = [&](int64_t t) {
    const int64_t begin = t * kBlockRows;
    const int64_t count = std::min(kBlockRows, n - begin);
    for (int64_t i = begin; i < begin + count; ++i) w(i, i) = 1;
    SolveLowerTriangleFromRight(l.Block(begin, begin, n - begin, n - begin),
                                w.view().Block(begin, begin, count, n - begin));
  };
  // The first block takes the most work, and the last ones nearly none.
  const auto progress = [&](double f) { return control(1 - (1 - f) * (1 - f) * (1 - f)); };
  PHIMAP_RETURN_IF_ERROR(
      ForEachTile(control.threads(), (n + kBlockRows - 1) / kBlockRows, progress, block));
  return w;
}

Work WorkOfTransposedInverse(int64_t n) {
  Work work;
  for (int64_t begin = 0; begin < n; begin += kBlockRows) {
    const double left = static_cast<double>(n - begin);
    work.factor_flops += static_cast<double>(std::min(kBlockRows, n - begin)) * left * left;
  }
  return work;
}

}  // namespace phimap
