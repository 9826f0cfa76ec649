// Leaf kernels, of which expressions are composed. A descriptor holds everything about one leaf
// kernel. Each leaf kernel has a file in core/kernel/leaf, and leaf_kernels.cc lists them all. The
// parser, the compiler, the mappings and the documentation read descriptors, and none of them
// mentions a particular leaf kernel.
#ifndef PHIMAP_CORE_KERNEL_LEAF_KERNEL_H_
#define PHIMAP_CORE_KERNEL_LEAF_KERNEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/kernel/kernel_parts.h"
#include "core/kernel/parameter.h"

namespace phimap {

// Kinds of rows that a kernel takes. An expression takes either numbers or strings; kAnything fits
// both.
enum class KernelDomain { kNumbers, kText, kTextOrBytes, kAnything };

// The polynomial (γ xᵀy + r)^q: `gamma` is γ, `coef0` is r, and `degree` is q.
struct AffinePower {
  double gamma = 1;
  double coef0 = 0;
  int32_t degree = 1;
};

// The distribution of the frequencies ω of random Fourier features. It satisfies E cos ω·(x − y) =
// K(x, y). Component k of frequency j is ω_jk = s_j·u_jk·f_k. The u_jk are independent random
// numbers, s_j is a scale for row j, and f_k is a factor for column k.
struct FourierLaw {
  // kNormal: u is standard normal, so the direction of a row is uniform. kCauchy: u is Cauchy.
  enum class Numbers { kNormal, kCauchy };
  Numbers numbers = Numbers::kNormal;
  // Returns s_j, which depends only on the values, the seed and j.
  double (*row_scale)(const ParameterValues& values, uint64_t seed, int64_t row) = nullptr;
  // Returns γ of an rbf. Null for other kernels. The frequencies of an rbf are normal, and there
  // are error bounds that hold for all rows at once.
  double (*rbf_gamma)(const ParameterValues& values) = nullptr;
  // Returns the factor f_k of column k. Null: 1 for every column.
  double (*column_factor)(const ParameterValues& values, int64_t column) = nullptr;
  // Maximum number of random numbers for one s_j.
  int numbers_of_row = 0;
};

// A kernel that is a function of one distance D, in which each column k has a length scale s_k of
// its own, the parameter `scales`.
struct DistanceForm {
  // kSquared: D = Σ ((x_k − y_k)/s_k)². kAbsolute: D = Σ |x_k − y_k|/s_k.
  enum class Distance { kSquared, kAbsolute };
  Distance distance = Distance::kSquared;
  // Returns dK/dD. Where that is infinite, at D = 0, it is 0: the gradient of K is taken as 0
  // there.
  double (*slope)(const ParameterValues& values, double distance) = nullptr;
};

// What check_columns returns for rows whose number of columns does not fit the kernel.
struct WrongColumns {
  int64_t expected = 0;
  // The message, for example "the matrix of bilinear is for rows of 3 numbers".
  std::string text;
};

// Descriptor of a leaf kernel. Immutable; one for each kernel. Functions are pure, and may be null
// if their comment says what null means.
struct LeafKernel {
  absl::string_view name;
  // The kernel as a formula, and in one line of words.
  absl::string_view formula;
  absl::string_view line;
  absl::Span<const Parameter> parameters = {};

  // Returns OK, or an ExpressionError if the values do not fit together. `call` is the call in the
  // text. May set a default that depends on other values. Null: all values fit together.
  absl::Status (*check)(const ParsedCall& call, ParameterValues& values) = nullptr;
  // Emits operations that push K(x, a_j). Numbers that are not resolved yet are NaN.
  void (*compile)(const ParameterValues& values, KernelEmitter& emitter) = nullptr;
  // Returns the kind of rows that the kernel takes. Null: kNumbers.
  KernelDomain (*input)(const ParameterValues& values) = nullptr;
  // Returns nullopt if rows of `columns` numbers fit the kernel. Null: all rows fit.
  std::optional<WrongColumns> (*check_columns)(const ParameterValues& values,
                                               int64_t columns) = nullptr;

  // Whether numbers in `column` must be at least 0; kernel values are NaN if one is negative. Null:
  // no column has this condition.
  bool (*needs_nonnegative)(const ParameterValues& values, int64_t column) = nullptr;

  // Returns "" for a positive semidefinite kernel, otherwise why it is not, for example "poly with
  // coef0=-1 is not positive semidefinite; expected coef0 >= 0". Null: the kernel is always
  // positive semidefinite, unless `is_definiteness_unknown`.
  std::string (*why_indefinite)(const ParameterValues& values) = nullptr;
  // Whether the kernel's definiteness is unknown in general; builds then measure it.
  bool is_definiteness_unknown = false;
  // Whether K(x, y) depends only on x − y.
  bool is_translation_invariant = false;
  // Whether the kernel is discontinuous where two rows become equal.
  bool jumps_at_equal_rows = false;
  // Whether the kernel depends only on inner products and Euclidean distances, which random
  // projections preserve. Null: no.
  bool (*survives_projection)(const ParameterValues& values) = nullptr;
  // True for xᵀy itself; `affine_power` then describes it as (1·xᵀy + 0)¹.
  bool is_inner_product = false;

  // Returns a bound on the dimension of φ for rows of `columns` numbers. Null: there is no bound.
  double (*dimension)(const ParameterValues& values, double columns) = nullptr;
  // Returns the polynomial that the kernel equals, before or after gamma is resolved; nullopt if
  // there is none. Null: never a polynomial.
  std::optional<AffinePower> (*affine_power)(const ParameterValues& values) = nullptr;
  // Null if the kernel has no random Fourier features.
  const FourierLaw* fourier = nullptr;
  // Null if the kernel has no parameter `scales`.
  const DistanceForm* distance_form = nullptr;
};

// Returns all leaf kernels, in the order in which they are listed to people.
absl::Span<const LeafKernel* const> LeafKernels();
// Returns the leaf kernel of that name, or null.
const LeafKernel* FindLeafKernel(absl::string_view name);
// Returns the leaf kernel linear().
const LeafKernel& LinearKernel();

// Description of a kernel, or of an operation on kernels, for people.
struct KernelCapability {
  absl::string_view name;
  absl::string_view formula;
  absl::string_view line;
  absl::Span<const Parameter> parameters;
};
// The leaf kernels, followed by the operations that compose them.
std::vector<KernelCapability> KernelCapabilities();

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_LEAF_KERNEL_H_
