#include "core/kernel/value_error.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_rounding.h"

namespace phimap {
namespace {

constexpr double kUnit = 0x1p-53;

// Rows in the form that KernelRounding takes: for strings, k_m(x, x) of each string kernel m.
struct RoundingRows {
  RoundingRows(const KernelProgram& program, ConstMatrixView<double> rows) : view(rows) {
    if (!program.strings().empty()) {
      squares = SelfStringValues(program, rows);
      view = squares.view();
      norms.assign(static_cast<size_t>(rows.rows()), 0.0);
    } else {
      norms = SquaredNorms(rows);
    }
  }
  Matrix<double> squares;
  ConstMatrixView<double> view;
  std::vector<double> norms;
};

}  // namespace

std::vector<double> SelfErrors(const KernelProgram& program, ConstMatrixView<double> rows,
                               double row_unit) {
  const RoundingRows seen(program, rows);
  const KernelRounding rounding =
      KernelRounding::OfShares(program, seen.view.Rows(0, 0), {}, kUnit);
  std::vector<double> errors(static_cast<size_t>(rows.rows()));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    errors[i] = (kUnit + row_unit * row_unit) * rounding.SelfError(seen.view.row(i), seen.norms[i]);
  }
  return errors;
}

double ValueErrorOf(const KernelProgram& program, ConstMatrixView<double> rows,
                    const std::vector<double>& self) {
  const RoundingRows seen(program, rows);
  const KernelRounding rounding = KernelRounding::OfShares(program, seen.view, self, kUnit);
  // Every value has at least one rounding.
  const double worst = std::max(1.0, rounding.LargestShare(seen.view, self));
  return kUnit * worst;
}

bool DividesByRow(const KernelProgram& program) {
  const auto divides = [](const std::vector<KernelOp>& factor) {
    return std::any_of(factor.begin(), factor.end(),
                       [](const KernelOp& op) { return op.code == KernelOpCode::kInverse; });
  };
  return std::any_of(program.factors().begin(), program.factors().end(), divides);
}

absl::string_view ValueRemedy(const KernelProgram& program) {
  if (!DividesByRow(program)) return "standardize the inputs or rescale the kernel";
  return "the kernel divides by √K(x, x) (normalize) or by a power of the norm (weight), which is "
         "0 for a row of zeros: leave such rows out, or give the kernel in normalize() a constant, "
         "as in normalize(poly(degree=1, coef0=1)), or use cosine(), which is 0 there; if numbers "
         "are too large instead, standardize the inputs or rescale the kernel";
}

}  // namespace phimap
