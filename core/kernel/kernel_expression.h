// Kernel expressions: similarities K(x, y) on dense rows that compose, with a text form.
//
//   linear()                                   xᵀy
//   poly(degree=q, gamma=1, coef0=0)           (γ xᵀy + r)^q, integer 1 ≤ q ≤ 64
//   rbf(gamma=scale)                           exp(−γ ‖x−y‖²), γ > 0 or one of `scale`, `median`
//   c*K   K1 + K2   K1*K2   ( K )              the algebra; * binds tighter than +
//
// `gamma=scale` is 1/(p·Var), Var the population variance of all entries of the stream after
// standardisation; `gamma=median` is 1/median ‖x−y‖² over pairs of pool rows. Both are resolved
// when a version is built, and the numbers are what is stored.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_EXPRESSION_H_
#define PHIMAP_CORE_KERNEL_KERNEL_EXPRESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// One node of an expression. Immutable and shared.
struct KernelNode {
  enum class Kind { kLinear, kPolynomial, kRbf, kScaled, kSum, kProduct };
  // Where gamma comes from.
  enum class Gamma { kNumber, kScale, kMedian };

  Kind kind = Kind::kLinear;
  Gamma gamma_source = Gamma::kNumber;
  double gamma = 1;   // kPolynomial, kRbf
  double coef0 = 0;   // kPolynomial
  int degree = 1;     // kPolynomial
  double factor = 1;  // kScaled
  // One child of kScaled, two or more of kSum and kProduct.
  std::vector<std::shared_ptr<const KernelNode>> children;
  // Where the node starts in the text it was parsed from, counted from 1; 0 if it was not parsed.
  int column = 0;
};

// An immutable expression; copies are cheap. Thread-safe.
class KernelExpression {
 public:
  // linear().
  KernelExpression();
  explicit KernelExpression(std::shared_ptr<const KernelNode> root);

  // Parses the text form: at most 4,096 bytes, 256 nodes, depth 32. INVALID_ARGUMENT (reason
  // BAD_EXPRESSION, metadata "column") names the column, counted from 1, what was expected there
  // and what stands there.
  static absl::StatusOr<KernelExpression> Parse(absl::string_view text);
  // Canonical text with every parameter; numbers in their shortest form that reads back equal.
  std::string ToText() const;

  const KernelNode& root() const { return *root_; }

  // Whether some gamma is still to be resolved from the data.
  bool NeedsScale() const;
  bool NeedsMedian() const;
  // The expression with `scale` and `median` replaced by numbers. REQUIRES: those needed are finite
  // and > 0.
  KernelExpression Resolved(double scale_gamma, double median_gamma) const;

  // K(x, y) depends on x − y alone: every leaf is an rbf.
  bool IsTranslationInvariant() const;
  // c · xᵀy with c ≥ 0 for some c, returned through `factor`: such a mapping folds into one matrix.
  bool IsScaledLinear(double* factor) const;
  // OK when the expression is positive semidefinite by construction; otherwise says which parameter
  // at which column breaks it (γ < 0 or r < 0 of a polynomial, a negative factor). Reason
  // NOT_POSITIVE_SEMIDEFINITE.
  absl::Status CheckPositiveSemidefinite() const;

 private:
  std::shared_ptr<const KernelNode> root_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_EXPRESSION_H_
