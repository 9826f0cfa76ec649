// Leaf kernels, of which expressions are composed. Each is described by one descriptor in a file of
// core/kernel/leaf; leaf_kernels.cc lists them. The parser, the compiler, the mappings and the
// documentation read the descriptors, and none of them knows a kernel by name.
#ifndef PHIMAP_CORE_KERNEL_LEAF_KERNEL_H_
#define PHIMAP_CORE_KERNEL_LEAF_KERNEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/kernel/kernel_emitter.h"
#include "core/kernel/parameter.h"

namespace phimap {

// Kinds of rows that a kernel takes. An expression takes either numbers or strings; kAnything goes
// with both.
enum class KernelDomain { kNumbers, kText, kTextOrBytes, kAnything };

// (γ xᵀy + r)^q.
struct AffinePower {
  double gamma = 1;
  double coef0 = 0;
  int32_t degree = 1;
};

// The distribution of frequencies ω with E cos ω·(x − y) = K(x, y), for random Fourier features:
// ω_jk = s_j·u_jk with independent numbers u and a scale s of each row j.
struct FourierLaw {
  // kNormal: u is standard normal, so that a row's direction is uniform. kCauchy: each u is Cauchy.
  enum class Numbers { kNormal, kCauchy };
  Numbers numbers = Numbers::kNormal;
  // s_j, a function of the values, the seed and j alone.
  double (*row_scale)(const ParameterValues& values, uint64_t seed, int64_t row) = nullptr;
  // γ of the rbf that the kernel equals: frequencies are then normal, and there are bounds for all
  // rows at once. Null if it is not an rbf.
  double (*rbf_gamma)(const ParameterValues& values) = nullptr;
  // Factor f_k of the numbers of column k: ω_jk = s_j·u_jk·f_k. Null: 1.
  double (*column_factor)(const ParameterValues& values, int64_t column) = nullptr;
  // Random numbers for one s_j.
  int numbers_of_row = 0;
};

// A number of columns that does not fit a kernel.
struct WrongColumns {
  int64_t expected = 0;
  // "the matrix of bilinear is for rows of 3 numbers".
  std::string text;
};

// Immutable, one for each kernel. Functions are pure; each null function has the stated meaning.
struct LeafKernel {
  absl::string_view name;
  // The kernel as a formula, and in one line of words.
  absl::string_view formula;
  absl::string_view line;
  absl::Span<const Parameter> parameters = {};

  // Checks that the values are consistent; errors are ExpressionErrors about `call`. May change a
  // default that depends on other values. Null: any values are.
  absl::Status (*check)(const ParsedCall& call, ParameterValues& values) = nullptr;
  // Emits operations that push K(x, a_j). A number that is still to be resolved is NaN.
  void (*compile)(const ParameterValues& values, KernelEmitter& emitter) = nullptr;
  // Kind of rows that the kernel takes. Null: kNumbers.
  KernelDomain (*input)(const ParameterValues& values) = nullptr;
  // Returns nullopt if the kernel takes rows of `columns` numbers. Null: it takes any number of
  // columns.
  std::optional<WrongColumns> (*check_columns)(const ParameterValues& values,
                                               int64_t columns) = nullptr;

  // Whether numbers of that column must be at least 0; kernel values are NaN for a negative one.
  // Null: no column has to be.
  bool (*needs_nonnegative)(const ParameterValues& values, int64_t column) = nullptr;

  // "" for a positive semidefinite kernel, else the reason: "poly with coef0=-1 is not positive
  // semidefinite; expected coef0 >= 0". Null: it always is.
  std::string (*why_indefinite)(const ParameterValues& values) = nullptr;
  // Whether its definiteness is unknown in general, so that builds measure it.
  bool is_definiteness_unknown = false;
  // K(x, y) depends on x − y alone.
  bool is_translation_invariant = false;
  // The kernel's values jump where rows become equal.
  bool jumps_at_equal_rows = false;
  // Whether the kernel depends only on inner products and Euclidean distances, which random
  // projections preserve. Null: it does not.
  bool (*survives_projection)(const ParameterValues& values) = nullptr;
  // True for xᵀy itself; `affine_power` then describes it as (1·xᵀy + 0)¹.
  bool is_inner_product = false;

  // A bound on the dimension of φ for rows of `columns` numbers. Null: none.
  double (*dimension)(const ParameterValues& values, double columns) = nullptr;
  // The polynomial that the kernel equals, before or after gamma is resolved. Null: it is not a
  // polynomial.
  std::optional<AffinePower> (*affine_power)(const ParameterValues& values) = nullptr;
  // Null: it has no random Fourier features.
  const FourierLaw* fourier = nullptr;
};

// All leaf kernels, in the order in which help lists them.
absl::Span<const LeafKernel* const> LeafKernels();
// Returns the leaf kernel of that name, or null.
const LeafKernel* FindLeafKernel(absl::string_view name);
// linear().
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
