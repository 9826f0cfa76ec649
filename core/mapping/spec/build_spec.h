// Spec of a build: the mapping, the kernel, and the preparation of the stream.
#ifndef PHIMAP_CORE_MAPPING_SPEC_BUILD_SPEC_H_
#define PHIMAP_CORE_MAPPING_SPEC_BUILD_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/leaf_kernel.h"
#include "core/kernel/remote_kernel.h"
#include "core/mapping/spec/mapping_spec.h"
#include "core/plan/examples.h"

namespace phimap {

inline constexpr int64_t kMaxColumns = 65536;

struct BuildSpec {
  MappingSpec mapping;
  KernelExpression kernel;
  // The remote kernel, if the spec has one. `kernel` is then empty.
  std::optional<RemoteKernel> remote;
  bool standardize = false;
  uint64_t seed = 0;
  // Names of the columns, one per column; empty if the columns have no names.
  std::vector<std::string> column_names = {};

  // Validates the spec. Calls mapping.Validate(), and checks that the kernel suits the mapping and
  // the policy. Column names must be printable (column_names.h), and
  // absent if the rows are kernel values. A remote kernel needs a mapping with landmarks, inputs
  // that are neither standardised nor projected, and a policy that needs no kernel values.
  //
  // Errors: those of mapping.Validate(). INVALID_ARGUMENT (KERNEL_NOT_APPLICABLE or
  // KERNEL_NOT_POSITIVE_SEMIDEFINITE) if the kernel is not suitable; the field is "kernel", or the
  // field that the kernel excludes.
  absl::Status Validate() const;
  // Checks the requirements that depend on the number of columns. Returns FAILED_PRECONDITION, with
  // the offending parameter as field (for example "dimensions").
  //
  // REQUIRES: Validate() is OK, 1 <= columns <= kMaxColumns.
  absl::Status CheckColumns(int64_t columns) const;
  // Checks whether the spec suits a stream that begins with examples of this kind. Strings have 1
  // column.
  //
  // Errors: those of CheckColumns. INVALID_ARGUMENT (KERNEL_NOT_APPLICABLE, field "kernel") if the
  // kernel takes another kind of examples. INVALID_ARGUMENT (COLUMN_NAMES_INVALID) if there are
  // column names, but their number differs from the number of columns.
  absl::Status CheckExamples(ExampleKind kind, int64_t columns) const;
  // Returns the size of the uniform sample from which landmarks, or pairs for gamma=median, are
  // drawn: mapping.pool_rows, or DefaultPoolRows if that is 0. Returns 0 if nothing is drawn.
  int64_t PoolRows(int64_t columns) const;
  // Returns the largest number of rows that are held out for the certificate.
  int64_t MostHeldOutRows() const;
  bool is_precomputed() const {
    return remote.has_value() && remote->source == RemoteKernel::Source::kPrecomputed;
  }
  // Canonical text of the requested kernel, before its parameters are resolved.
  std::string KernelText() const { return remote ? remote->ToText() : kernel.ToText(); }
  // Returns one line of text. Two specs have the same text exactly when they are equal.
  std::string ToText() const;
};

// Returns the names of the leaf kernels for which `is` holds, such as "rbf() or laplacian()".
std::string LeafKernelNames(absl::FunctionRef<bool(const LeafKernel&)> is);

// Returns INVALID_ARGUMENT (KERNEL_NOT_APPLICABLE, field "kernel") with the message
// "fourier REQUIREMENT, got KERNEL".
absl::Status KernelNotApplicable(const BuildSpec& spec, absl::string_view requirement);

// Returns INVALID_ARGUMENT (KERNEL_NOT_POSITIVE_SEMIDEFINITE, field "kernel") for a kernel that is
// known not to be positive semidefinite.
absl::Status RequireDefinite(const BuildSpec& spec);

// Returns OK if the kernel is c·linear() with c > 0. Returns KernelNotApplicable for any other
// kernel.
absl::Status RequireLinear(const BuildSpec& spec);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_BUILD_SPEC_H_
