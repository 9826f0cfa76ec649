#include "core/certificate/definiteness.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/value_error.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {

std::string DefinitenessProbe::ToText() const {
  const std::string where = absl::StrCat("its Gram matrix on ", CountOf(rows, "landmark"), " has ");
  if (indefinite()) {
    return absl::StrCat(where, "the eigenvalue ", smallest, ", the largest is ", largest);
  }
  return absl::StrCat(where, "no negative eigenvalue, which proves nothing about other rows");
}

absl::StatusOr<DefinitenessProbe> ProbeDefiniteness(const KernelProgram& program,
                                                    ConstMatrixView<double> rows,
                                                    Checkpoint checkpoint) {
  const int64_t n = std::min(rows.rows(), kMaxProbeRows);
  Matrix<double> gram = Matrix<double>::Uninit(n, n);
  PHIMAP_RETURN_IF_ERROR(KernelGram(program, rows.Rows(0, n), gram.view(), checkpoint));
  std::vector<int64_t> kept;
  std::vector<double> self;
  const std::vector<double> errors = SelfErrors(program, rows.Rows(0, n));
  for (int64_t i = 0; i < n; ++i) {
    if (!(gram(i, i) > kZeroRoundings * errors[i])) continue;
    kept.push_back(i);
    self.push_back(gram(i, i));
  }
  Matrix<double> live = Matrix<double>::Uninit(static_cast<int64_t>(kept.size()), rows.cols());
  for (size_t i = 0; i < kept.size(); ++i) {
    std::copy_n(rows.row(kept[i]), rows.cols(), live.row(static_cast<int64_t>(i)));
  }
  const double value_error = kept.empty() ? 0 : ValueErrorOf(program, live.view(), self);
  return ProbeGram(std::move(gram), std::ldexp(1.0, -53), value_error, ValueRemedy(program));
}

absl::StatusOr<DefinitenessProbe> ProbeGram(Matrix<double> gram, double unit, double value_error,
                                            absl::string_view remedy) {
  const int64_t n = gram.rows();
  PHIMAP_CHECK(n == gram.cols() && n <= kMaxProbeRows);
  double norm = 0;  // largest sum of |K| in a row; the error bounds of eigenvalues depend on it
  double trace = 0;
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::abs(j <= i ? gram(i, j) : gram(j, i));
    norm = std::max(norm, sum);
    trace += std::abs(gram(i, i));
    if (std::isfinite(sum)) continue;
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kValueNotFinite, "kernel",
        absl::StrCat("K(x, y) of landmark ", i, " with some landmark is not finite; ", remedy));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> values, SymmetricEigenvalues(gram.view()));
  // The bound on the error of the smallest eigenvalue has two parts. First, a kernel value has an
  // error of a few units in the last place of its operands. n such errors add up in an eigenvalue.
  // LAPACK's own error is a small multiple of n·2⁻⁵³ of the norm. Second, values may have further
  // errors of up to β·√(K(x, x)·K(y, y)), where β is `value_error`. For a unit vector z, these
  // change zᵀKz by at most β(Σ|z|√K(x, x))² ≤ β·tr K.
  return DefinitenessProbe{
      .rows = n,
      .smallest = values.front(),
      .largest = values.back(),
      .round_off = 64 * static_cast<double>(n) * norm * unit + value_error * trace};
}

}  // namespace phimap
