// Spec of a build: the mapping, the kernel, and the preparation of the stream.
#ifndef PHIMAP_CORE_MAPPING_SPEC_BUILD_SPEC_H_
#define PHIMAP_CORE_MAPPING_SPEC_BUILD_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/remote_kernel.h"
#include "core/mapping/spec/mapping_spec.h"
#include "core/plan/examples.h"

namespace phimap {

inline constexpr int64_t kMaxColumns = 65536;

struct BuildSpec {
  MappingSpec mapping;
  KernelExpression kernel;
  // Replaces `kernel`, which is then empty.
  std::optional<RemoteKernel> remote;
  bool standardize = false;
  uint64_t seed = 0;
  // Names of the columns, one for each; empty if they have none.
  std::vector<std::string> column_names = {};

  // mapping.Validate() with prefix "spec.", and whether the kernel suits mapping and policy
  // (INVALID_ARGUMENT: KERNEL_NOT_APPLICABLE, KERNEL_NOT_POSITIVE_SEMIDEFINITE; field "kernel" or
  // the excluded field). A remote kernel needs a mapping with landmarks, inputs that are neither
  // standardised nor projected, and a policy that needs no values. Column names must be printable
  // (column_names.h), and absent for kernel values.
  absl::Status Validate() const;
  // Checks that need the columns of the stream: FAILED_PRECONDITION, with the parameter as field
  // ("spec.dimensions"). REQUIRES: Validate() is OK, 1 <= columns <= kMaxColumns.
  absl::Status CheckColumns(int64_t columns) const;
  // Checks a stream that begins with examples of this kind, where strings have 1 column: also
  // INVALID_ARGUMENT (KERNEL_NOT_APPLICABLE, field "kernel") if the kernel takes others, and
  // (COLUMN_NAMES_INVALID) if there are names, and not one for each column.
  absl::Status CheckExamples(ExampleKind kind, int64_t columns) const;
  // Rows of the uniform sample that landmarks, or pairs for gamma=median, are drawn from: the
  // spec's, or DefaultPoolRows; 0 where nothing is drawn.
  int64_t PoolRows(int64_t columns) const;
  bool is_precomputed() const {
    return remote.has_value() && remote->source == RemoteKernel::Source::kPrecomputed;
  }
  // Canonical text of the kernel, with unresolved parameters as requested.
  std::string KernelText() const { return remote ? remote->ToText() : kernel.ToText(); }
  // One line that two specs share exactly when they are equal.
  std::string ToText() const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_BUILD_SPEC_H_
