// F2 in the coordinates of Balcan, Blum, Vempala 2006: Gram–Schmidt in the order of drawing.
#ifndef PHIMAP_LAB_GRAM_SCHMIDT_MAP_H_
#define PHIMAP_LAB_GRAM_SCHMIDT_MAP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"

namespace phimap::lab {

// The mapping F2(x) = F1(x)·U⁺ of the paper's section 3, where K(S, S) = UᵀU and U is upper
// triangular, with the landmarks S in the order in which they were drawn. The product's F2 takes
// them in the order of their residuals, which is safer and differs by a rotation. A rotation
// matters to learners such as Winnow alone, so this mapping exists in the laboratory alone.
//
// Row r of U belongs to the r-th landmark that is independent of those before it: its residual
// outside their span is more than its rounding error. The other rows of U are 0. U then has
// full row rank, so U⁺ gives the coordinates of φ(x) in the Gram–Schmidt basis of these landmarks,
// which forward substitution computes.
//
// Accuracy: an unpivoted factor loses the digits that the smallest residual loses, so this is for a
//           few landmarks in float64.
class GramSchmidtMap {
 public:
  // β: a kernel value errs by at most β·√(K(x, x)·K(y, y)), the factor's own rounding included.
  static constexpr double kValueError = 0x1p-49;

  // `kernel` is a positive semidefinite kernel of numbers, such as "poly(degree=2, gamma=1,
  // coef0=1)".
  static absl::StatusOr<GramSchmidtMap> Make(const std::string& kernel,
                                             ConstMatrixView<double> landmarks);

  // Returns the features of the rows: n×rank() for n×p rows.
  Matrix<double> Map(ConstMatrixView<double> rows) const;
  int64_t rank() const { return landmarks_.rows(); }
  // Numbers of the landmarks that gave a feature, in the order of the features.
  const std::vector<int64_t>& independent() const { return independent_; }

 private:
  explicit GramSchmidtMap(KernelProgram kernel) : kernel_(std::move(kernel)) {}

  KernelProgram kernel_;
  Matrix<double> landmarks_;  // the independent ones
  std::vector<int64_t> independent_;
  Matrix<double> upper_;  // rank×rank, the columns of U that belong to them
};

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_GRAM_SCHMIDT_MAP_H_
