// Kernel expressions: similarities K(x, y) on rows of numbers, or on strings, that compose, with a
// text form.
//
//   linear()                         xᵀy
//   poly(degree=q, gamma=1, coef0=0) (γ xᵀy + r)^q, integer 1 ≤ q ≤ 64
//   sigmoid(gamma=scale, coef0=0)    tanh(γ xᵀy + r)
//   rbf(gamma=scale)                 exp(−γ ‖x−y‖²)
//   laplacian(gamma=scale)           exp(−γ ‖x−y‖₁)
//   delta()                          1 if x = y, else 0; as they are after standardisation and
//   rounding
//                                    to the serving type
//   cosine()                         xᵀy/(‖x‖‖y‖); 0 where a norm is 0
//   bilinear(matrix=[a, b; b, c])    xᵀAy for a symmetric A; diagonal=[a, c] for a diagonal one
//   spectrum(n=3, unit=character)    Σ c_x(g)·c_y(g) over the n-grams g of two strings
//   jaccard(n=3, unit=character)     |G_x ∩ G_y|/|G_x ∪ G_y| of their sets of n-grams; both of
//                                    1 ≤ n ≤ 64 characters, bytes or words (string_kernel.h), and
//                                    in one expression with each other and with constants alone
//   weight(norm_power=p)             f(x)·f(y) with f = ‖x‖^p for an integer −16 ≤ p ≤ 16,
//   weight(gaussian=a)               … exp(−a‖x‖²),
//   weight(constant=c)               … c; so f(x)·K(x, y)·f(y) is weight(…)*K
//   exp(K)   normalize(K)            e^K; K/√(K(x,x)·K(y,y)), for rows of K(x, x) > 0; of
//                                    strings 0 where K(x, x) is
//   c*K   K1 + K2   K1*K2   ( K )    the algebra; * binds tighter than +
//
// γ is a number (> 0 for rbf and laplacian) or one of `scale`, `median`.
// `gamma=scale` is 1/(p·Var), Var the population variance of all entries of the stream after
// standardisation; `gamma=median` is 1/median ‖x−y‖² over pairs of pool rows. Both are resolved
// when a version is built, and the numbers are what is stored.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_EXPRESSION_H_
#define PHIMAP_CORE_KERNEL_KERNEL_EXPRESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/kernel/bilinear_form.h"
#include "core/kernel/string_kernel.h"

namespace phimap {

// One node of an expression. Immutable and shared.
struct KernelNode {
  enum class Kind {
    kLinear,
    kPolynomial,
    kSigmoid,
    kRbf,
    kLaplacian,
    kDelta,
    kCosine,
    kBilinear,
    kSpectrum,
    kJaccard,
    kWeight,
    kScaled,
    kSum,
    kProduct,
    kExp,
    kNormalized
  };
  // Where gamma comes from.
  enum class Gamma { kNumber, kScale, kMedian };

  Kind kind = Kind::kLinear;
  Gamma gamma_source = Gamma::kNumber;
  double gamma = 1;   // kPolynomial, kSigmoid, kRbf, kLaplacian
  double coef0 = 0;   // kPolynomial, kSigmoid
  int degree = 1;     // kPolynomial
  double factor = 1;  // kScaled
  // kWeight: f, and its p, a or c.
  enum class Weight { kNormPower, kGaussian, kConstant };
  Weight weight = Weight::kConstant;
  double weight_parameter = 1;
  // kBilinear.
  std::shared_ptr<const BilinearForm> form;
  // kSpectrum, kJaccard.
  int32_t ngram = 1;
  StringUnit unit = StringUnit::kCharacter;
  // One child of kScaled, kExp and kNormalized, two or more of kSum and kProduct.
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

  // Parses the text form: at most 4,096 bytes, 256 nodes, depth 32, 1,024 operations once it is
  // compiled (normalize repeats what is inside of it), 16 different weights and 8 different
  // bilinear forms. INVALID_ARGUMENT (reason
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

  // K(x, y) depends on x − y alone: every leaf is an rbf, a laplacian or a delta.
  bool IsTranslationInvariant() const;
  // A delta is part of it: values jump where rows become equal.
  bool HasDelta() const;
  // Whether it is a kernel of strings, and whether those may be bytes that are no text: every
  // spectrum and jaccard of it counts bytes. No kernel is of strings and of rows of numbers.
  bool TakesStrings() const;
  bool TakesBytes() const;
  // The same, of strings that stand in a matrix by their place in `strings`: rows of one number.
  // What is compiled from it can be evaluated by KernelBlock. REQUIRES: TakesStrings().
  KernelExpression Over(std::shared_ptr<const std::vector<std::string>> strings) const;
  const std::shared_ptr<const std::vector<std::string>>& strings() const { return strings_; }
  // c · xᵀy with c ≥ 0 for some c, returned through `factor`: such a mapping folds into one matrix.
  bool IsScaledLinear(double* factor) const;
  // Whether the expression is positive semidefinite by construction. CheckPositiveSemidefinite: OK,
  // or which parameter at which column breaks it (γ < 0 or r < 0 of a polynomial, a negative
  // factor, an indefinite A; reason NOT_POSITIVE_SEMIDEFINITE). IsProvenPositiveSemidefinite: OK
  // there, and no sigmoid, of which nothing is known in general.
  absl::Status CheckPositiveSemidefinite() const;
  bool IsProvenPositiveSemidefinite() const;
  // Whether rows of `columns` numbers have the length that the bilinear forms need:
  // INVALID_ARGUMENT (WRONG_COLUMNS, field "kernel") with both numbers.
  absl::Status CheckColumns(int64_t columns) const;

 private:
  std::shared_ptr<const KernelNode> root_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_EXPRESSION_H_
