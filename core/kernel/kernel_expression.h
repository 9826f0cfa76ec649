// Kernel expressions: similarities K(x, y) on rows of numbers, or on strings, that compose, with a
// text form.
//
//   rbf(gamma=0.5)          a leaf kernel (leaf_kernel.h; core/kernel/leaf has a file for each)
//   c*K   K1 + K2   K1*K2   the algebra; * binds tighter than +, ( K ) groups
//   exp(K)                  e^K
//   normalize(K)            K/√(K(x,x)·K(y,y)); rows need K(x, x) > 0; for strings, 0 where
//                           K(x, x) = 0
//
// If a leaf has `gamma=scale` or `gamma=median`, the number comes from the data: 1/(p·Var), where
// Var is the population variance of all entries of the stream after standardisation, or 1/median
// ‖x−y‖² over pairs of pool rows. Both are resolved when a version is built, and the numbers are
// what is stored.
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
  // kLeaf.
  const LeafKernel* leaf = &LinearKernel();
  ParameterValues values = {};
  // kScaled.
  double factor = 1;
  // One child of kScaled, kExp and kNormalized, two or more of kSum and kProduct.
  std::vector<std::shared_ptr<const KernelNode>> children = {};
  // Start of the node in the text it was parsed from, counted from 1; 0 if it was not parsed.
  int column = 0;
};

// An immutable expression; copies are cheap. Thread-safe.
class KernelExpression {
 public:
  // linear().
  KernelExpression();
  explicit KernelExpression(std::shared_ptr<const KernelNode> root);

  // Parses the text form: at most 4,096 bytes, 256 nodes, depth 32, 1,024 operations after
  // compilation (normalize repeats its argument), 16 different weights and 8 different bilinear
  // forms. INVALID_ARGUMENT (reason EXPRESSION_INVALID, metadata "column") names the column,
  // counted from 1, and the expected and actual text.
  static absl::StatusOr<KernelExpression> Parse(absl::string_view text);
  // Canonical text with every parameter; numbers in their shortest form that reads back equal.
  std::string ToText() const;

  const KernelNode& root() const { return *root_; }

  // Whether some gamma must still be resolved from the data.
  bool NeedsScale() const;
  bool NeedsMedian() const;
  // The expression with `scale` and `median` replaced by numbers. REQUIRES: the numbers that are
  // needed are finite and > 0.
  KernelExpression Resolved(double scale_gamma, double median_gamma) const;

  // Whether K(x, y) depends on x − y alone, because every leaf does.
  bool IsTranslationInvariant() const;
  // Whether some leaf's values jump where rows become equal.
  bool JumpsAtEqualRows() const;
  // Whether the expression depends only on Euclidean distances and inner products, which random
  // projections preserve.
  bool SurvivesProjection() const;
  // Whether the kernel compares strings; and whether the strings may be arbitrary bytes, because
  // every string leaf counts bytes. No kernel takes both strings and rows of numbers.
  bool TakesStrings() const;
  bool TakesBytes() const;
  // Returns the kernel on matrices of one column, whose numbers are indices into `strings`.
  // KernelBlock can evaluate the compiled result. REQUIRES: TakesStrings().
  KernelExpression Over(std::shared_ptr<const std::vector<std::string>> strings) const;
  const std::shared_ptr<const std::vector<std::string>>& strings() const { return strings_; }
  // Returns a leaf that needs nonnegative numbers in `column`, or in any column; null if there is
  // none.
  const KernelNode* NeedsNonnegative(int64_t column) const;
  const KernelNode* NeedsNonnegative() const;
  // Whether the kernel is c·xᵀy with c ≥ 0. Then *factor = c, and its mapping becomes a single
  // matrix.
  bool IsScaledLinear(double* factor) const;
  // Returns the leaf if the expression is a leaf times numbers, with their product in *factor; else
  // null.
  const KernelNode* ScaledLeaf(double* factor) const;
  // Whether the expression is positive semidefinite by construction. CheckPositiveSemidefinite is
  // OK or names the parameter and column that break it (a leaf's own condition, a negative factor;
  // reason KERNEL_NOT_POSITIVE_SEMIDEFINITE). IsProvenPositiveSemidefinite also requires that no
  // leaf is of unknown definiteness.
  absl::Status CheckPositiveSemidefinite() const;
  bool IsProvenPositiveSemidefinite() const;
  // Checks that rows of `columns` numbers have the length that every leaf needs; INVALID_ARGUMENT
  // (COLUMNS_MISMATCH, field "kernel"), with both numbers, otherwise.
  absl::Status CheckColumns(int64_t columns) const;

 private:
  std::shared_ptr<const KernelNode> root_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_EXPRESSION_H_
