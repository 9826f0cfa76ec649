#include "core/mapping/projection/projection_mappings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "core/theory/projection_bounds.h"

namespace phimap {
namespace {

// Returns the paper that proves the bound for matrices of this kind.
absl::string_view ProjectionSource(ProjectionKind kind) {
  switch (kind) {
    case ProjectionKind::kGaussian:
    case ProjectionKind::kSign:
      return "Balcan, Blum, Vempala 2006, Theorem 2, with the constants of Achlioptas, McSherry, "
             "Schölkopf 2001, eq. 4";
    case ProjectionKind::kSparse:
      return "Achlioptas 2003, Theorem 1.1";
    case ProjectionKind::kOrthonormal:
      return "Johnson, Lindenstrauss 1984, by Dasgupta, Gupta 2003";
  }
  PHIMAP_CHECK(false);
}

}  // namespace

ProjectionTask ProjectionTaskOf(const BuildSpec& spec) {
  return {.kind = spec.mapping.projection,
          .dimensions = spec.mapping.dimensions,
          .seed = spec.seed,
          .blocks = std::max<int64_t>(1, spec.mapping.classes)};
}

absl::Status CheckOrthonormalRows(const BuildSpec& spec, int64_t columns) {
  const int64_t dimensions = spec.mapping.dimensions;
  if (spec.mapping.projection != ProjectionKind::kOrthonormal || dimensions <= columns) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kDimensionsTooMany, "dimensions",
                   absl::StrCat("no more than ", CountOf(columns, "row"), " of ",
                                CountOf(columns, "column"), " can be orthonormal, got ", dimensions,
                                "; ask for fewer dimensions or another projection"),
                   {{"limit", absl::StrCat(columns)}, {"actual", absl::StrCat(dimensions)}});
}

MappingCost CostOfProjectionMapping(const MappingShape& shape) {
  const ProjectionTask task = ProjectionTaskOf(shape.spec);
  return CostOfRandomProjection({.kind = task.kind,
                                 .dimensions = task.dimensions,
                                 .blocks = task.blocks,
                                 .columns = shape.columns,
                                 .serving_type = shape.serving_type});
}

absl::StatusOr<BuiltMapping> BuildProjectionMapping(const BuildSpec& spec, const LandmarkTask& task,
                                                    const TileControl& control) {
  double factor = 0;
  PHIMAP_CHECK(task.kernel.IsScaledLinear(&factor));
  BuiltMapping built;
  PlanPair& plans = built;
  PHIMAP_ASSIGN_OR_RETURN(
      plans, BuildRandomProjection({.input = task.input, .serving_type = task.serving_type}, factor,
                                   ProjectionTaskOf(spec), [&](double f) { return control(f); }));
  return built;
}

std::string DistortionText(int64_t dimensions, double delta) {
  const std::optional<double> e = LengthDistortion(Tier::kDerived, dimensions, delta);
  return e.has_value() ? absl::StrFormat("e = %.2g", *e) : "no e below 1";
}

std::string ProjectionTheoremText(ProjectionKind kind, int64_t dimensions) {
  return absl::StrCat(
      ProjectionSource(kind),
      ": the squared length of a vector that is fixed in advance, as of the difference of two "
      "rows, is kept within 1 ± e but with probability 2 exp(−(k/2)(e²/2 − e³/3)). At k = ",
      dimensions, " with probability 0.95: ", DistortionText(dimensions, kTheoremDelta),
      " for one vector, ", DistortionText(dimensions, kTheoremDelta / kTheoremPairs),
      " for all differences of 1,000 rows at once");
}

}  // namespace phimap
