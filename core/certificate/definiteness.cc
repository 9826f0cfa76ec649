#include "core/certificate/definiteness.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

std::string DefinitenessProbe::ToText() const {
  const std::string where = absl::StrCat("its Gram matrix on ", rows, " landmarks has ");
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
  return ProbeGram(std::move(gram), std::ldexp(1.0, -53));
}

absl::StatusOr<DefinitenessProbe> ProbeGram(Matrix<double> gram, double unit) {
  const int64_t n = gram.rows();
  PHIMAP_CHECK(n == gram.cols() && n <= kMaxProbeRows);
  double norm = 0;  // of the rows, which bounds every eigenvalue's error
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::abs(j <= i ? gram(i, j) : gram(j, i));
    norm = std::max(norm, sum);
    if (std::isfinite(sum)) continue;
    return MakeError(absl::StatusCode::kInvalidArgument, "NOT_FINITE", "kernel",
                     absl::StrCat("K(x, y) of landmark ", i,
                                  " and another is not a finite number; "
                                  "standardize the inputs or rescale the kernel"));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> values, SymmetricEigenvalues(gram.view()));
  // A kernel value errs by some units in the last place of what it is made of, and n of them add up
  // in an eigenvalue; LAPACK's own error is a small multiple of n·2⁻⁵³ of the norm.
  return DefinitenessProbe{.rows = n,
                           .smallest = values.front(),
                           .largest = values.back(),
                           .round_off = 64 * static_cast<double>(n) * norm * unit};
}

}  // namespace phimap
