// What to build: the mapping and its parameters, the kernel, and how the stream is prepared.
#ifndef PHIMAP_CORE_MAPPING_BUILD_SPEC_H_
#define PHIMAP_CORE_MAPPING_BUILD_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/kernel/kernel_expression.h"
#include "core/plan/rows.h"

namespace phimap {

inline constexpr int64_t kMaxLandmarks = 8192;
inline constexpr int64_t kMaxDimensions = 65536;
inline constexpr int64_t kMaxPoolRows = int64_t{1} << 24;
inline constexpr int64_t kMaxColumns = 65536;

enum class MappingKind { kF1, kF2, kF3 };
enum class ProjectionKind { kGaussian, kSign, kSparse, kOrthonormal };
enum class LandmarkPolicy { kUniform, kRandomlyPivotedCholesky };

// A mapping and its parameters; text form "f3(landmarks=2000, dimensions=256,
// projection=gaussian)".
struct MappingSpec {
  MappingKind kind = MappingKind::kF2;
  int64_t landmarks = 0;
  // F3 only; 0 elsewhere.
  int64_t dimensions = 0;
  // F3 only.
  ProjectionKind projection = ProjectionKind::kGaussian;
  LandmarkPolicy policy = LandmarkPolicy::kUniform;
  // 0: DefaultPoolRows.
  int64_t pool_rows = 0;
  // nullopt: float32, or float64 where that errs too much (kServingTolerance).
  std::optional<FloatType> serving_type;

  // Parses the text form. INVALID_ARGUMENT (reason BAD_EXPRESSION) names the column, counted from
  // 1, what was expected there and what stands there. The result is validated.
  static absl::StatusOr<MappingSpec> Parse(absl::string_view text);
  // Ranges and combinations; names the parameter as field, without a prefix ("landmarks").
  // UNIMPLEMENTED for what this build does not offer.
  absl::Status Validate() const;
  // Canonical text with every parameter that applies; Parse(ToText()) gives an equal spec.
  std::string ToText() const;
};

struct BuildSpec {
  MappingSpec mapping;
  KernelExpression kernel;
  bool standardize = false;
  uint64_t seed = 0;

  // mapping.Validate() with prefix "spec.", and whether the kernel suits the mapping: one that is
  // known not to be positive semidefinite is INVALID_ARGUMENT under F2 and F3 (reason
  // NOT_POSITIVE_SEMIDEFINITE, field "kernel").
  absl::Status Validate() const;
  // One line that two specs share exactly when they are equal.
  std::string ToText() const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_SPEC_H_
