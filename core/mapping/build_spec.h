// What to build: the mapping, the kernel, and how the stream is prepared.
#ifndef PHIMAP_CORE_MAPPING_BUILD_SPEC_H_
#define PHIMAP_CORE_MAPPING_BUILD_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/outside_kernel.h"
#include "core/mapping/mapping_spec.h"
#include "core/plan/examples.h"

namespace phimap {

inline constexpr int64_t kMaxColumns = 65536;

struct BuildSpec {
  MappingSpec mapping;
  KernelExpression kernel;
  // In the place of `kernel`, which then says nothing.
  std::optional<OutsideKernel> outside;
  bool standardize = false;
  uint64_t seed = 0;
  // Names of the columns, one for each; empty if they have none.
  std::vector<std::string> column_names = {};

  // mapping.Validate() with prefix "spec.", and whether the kernel suits the mapping: one that is
  // known not to be positive semidefinite is INVALID_ARGUMENT under F2, F3, kernel PCA and policy
  // rpcholesky (reason NOT_POSITIVE_SEMIDEFINITE, field "kernel"), any but c·linear() under a
  // random projection and c·rbf() or c·laplacian() under Fourier features (KERNEL_NOT_APPLICABLE).
  // One that is not computed here goes with F1, F2, F3 and kernel PCA, as the examples are and
  // without pivots that its values choose (KERNEL_NOT_APPLICABLE, and the field that it excludes).
  // Names of columns are such that people can be shown (column_names.h), and not of kernel values.
  absl::Status Validate() const;
  // What can only be said once the columns of the stream are known: FAILED_PRECONDITION, with the
  // parameter as field ("spec.dimensions"). REQUIRES: Validate() is OK, 1 <= columns <=
  // kMaxColumns.
  absl::Status CheckColumns(int64_t columns) const;
  // The same of a stream that begins with examples of this kind, strings being of 1 column: also
  // INVALID_ARGUMENT (KERNEL_NOT_APPLICABLE, field "kernel") if the kernel is of others, and
  // (BAD_COLUMN_NAMES) if there are names, and not one for each column.
  absl::Status CheckExamples(ExampleKind kind, int64_t columns) const;
  // Rows of the uniform sample that landmarks, or pairs for gamma=median, are drawn from: what the
  // spec says, or DefaultPoolRows; 0 where nothing is drawn.
  int64_t PoolRows(int64_t columns) const;
  bool is_precomputed() const {
    return outside.has_value() && outside->source == OutsideKernel::Source::kPrecomputed;
  }
  // Canonical text of the kernel as it was asked for.
  std::string KernelText() const { return outside ? outside->ToText() : kernel.ToText(); }
  // One line that two specs share exactly when they are equal.
  std::string ToText() const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_SPEC_H_
