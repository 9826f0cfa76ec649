// Kernel expressions: similarities K(x, y) of rows of numbers, or of strings. Expressions can be
// composed and have a text form.
//
//   rbf(gamma=0.5)          a leaf kernel (leaf_kernel.h; core/kernel/leaf has a file for each)
//   c*K   K1 + K2   K1*K2   the algebra; * binds tighter than +; parentheses group
//   exp(K)                  e^K
//   normalize(K)            K/√(K(x,x)·K(y,y)); rows of numbers need K(x, x) > 0; for strings
//                           with K(x, x) = 0, the value is 0
//
// A leaf with `gamma=scale` or `gamma=median` takes gamma from the data. For `scale`, gamma is
// 1/(p·Var), where p is the number of columns and Var the population variance of all entries of the
// stream after standardisation. For `median`, gamma is 1/median ‖x−y‖² over pairs of pool rows.
// Both are resolved when a version is built, and the version stores the numbers.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_EXPRESSION_H_
#define PHIMAP_CORE_KERNEL_KERNEL_EXPRESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/kernel/leaf_kernel.h"
#include "core/kernel/parameter.h"

namespace phimap {

// One node of an expression. Immutable and shared.
struct KernelNode {
  enum class Kind { kLeaf, kScaled, kSum, kProduct, kExp, kNormalized };

  Kind kind = Kind::kLeaf;
  // Only for kLeaf.
  const LeafKernel* leaf = &LinearKernel();
  ParameterValues values = {};
  // Only for kScaled.
  double factor = 1;
  // One child for kScaled, kExp and kNormalized; two or more for kSum and kProduct.
  std::vector<std::shared_ptr<const KernelNode>> children = {};
  // Start of the node in the text it was parsed from, counted from 1; 0 if it was not parsed.
  int column = 0;
};

// An immutable expression; copies are cheap. Thread-safe.
class KernelExpression {
 public:
  // The expression linear().
  KernelExpression();
  explicit KernelExpression(std::shared_ptr<const KernelNode> root);

  // Parses the text form. Limits: 4,096 bytes, 256 nodes and depth 32. After compilation (normalize
  // repeats its argument), the limits are 1,024 operations, 16 different weights and norms, and 8
  // each of different bilinear forms, column sums and string kernels. For any other text, returns
  // INVALID_ARGUMENT (reason EXPRESSION_INVALID, metadata "column"). The message has the column,
  // counted from 1, and the expected and actual text.
  static absl::StatusOr<KernelExpression> Parse(absl::string_view text);
  // Returns the canonical text with every parameter. Numbers have their shortest form that reads
  // back equal.
  std::string ToText() const;

  const KernelNode& root() const { return *root_; }

  // Whether some gamma is `scale` (NeedsScale) or `median` (NeedsMedian), and must still be
  // resolved from the data.
  bool NeedsScale() const;
  bool NeedsMedian() const;
  // Returns the expression with `scale` and `median` replaced by numbers. REQUIRES: the numbers
  // that are needed are finite and > 0.
  KernelExpression Resolved(double scale_gamma, double median_gamma) const;

  // Whether K(x, y) depends only on x − y, because every leaf does.
  bool IsTranslationInvariant() const;
  // Whether some leaf is discontinuous where two rows become equal, as delta is.
  bool JumpsAtEqualRows() const;
  // Whether the expression depends only on Euclidean distances and inner products, which random
  // projections preserve.
  bool SurvivesProjection() const;
  // TakesStrings: whether the kernel compares strings. TakesBytes: whether these strings may be
  // bytes that are not text, because every string leaf counts bytes. No kernel takes both strings
  // and rows of numbers.
  bool TakesStrings() const;
  bool TakesBytes() const;
  // Returns the kernel on matrices of one column, whose numbers are indices into `strings`.
  // KernelBlock can evaluate the compiled result. REQUIRES: TakesStrings().
  KernelExpression Over(std::shared_ptr<const std::vector<std::string>> strings) const;
  const std::shared_ptr<const std::vector<std::string>>& strings() const { return strings_; }
  // Returns a leaf that needs nonnegative numbers in `column`, or in any column; null if no leaf
  // does.
  const KernelNode* NeedsNonnegative(int64_t column) const;
  const KernelNode* NeedsNonnegative() const;
  // Whether the kernel is c·xᵀy, for any c; sets *factor = c. A mapping of such a kernel folds into
  // one matrix.
  bool IsScaledLinear(double* factor) const;
  // If the expression is a leaf times numbers, returns the leaf and sets *factor to their product.
  // Otherwise returns null.
  const KernelNode* ScaledLeaf(double* factor) const;
  // CheckPositiveSemidefinite returns OK, or an error (reason KERNEL_NOT_POSITIVE_SEMIDEFINITE).
  // The error gives the parameter and the column that break positive semidefiniteness. The cause
  // may be a leaf's own condition or a negative factor. A leaf whose definiteness is unknown in
  // general, such as sigmoid, passes the check. IsProvenPositiveSemidefinite returns whether the
  // check is OK and the expression has no such leaf.
  absl::Status CheckPositiveSemidefinite() const;
  bool IsProvenPositiveSemidefinite() const;
  // Returns OK if rows of `columns` numbers have the length that every leaf needs; otherwise
  // INVALID_ARGUMENT (COLUMNS_MISMATCH, field "kernel") with the expected and the actual number.
  absl::Status CheckColumns(int64_t columns) const;

 private:
  std::shared_ptr<const KernelNode> root_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_EXPRESSION_H_
