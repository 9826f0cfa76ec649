// Common parts of the mappings that are random projections of the inputs.
#ifndef PHIMAP_CORE_MAPPING_PROJECTION_PROJECTION_MAPPINGS_H_
#define PHIMAP_CORE_MAPPING_PROJECTION_PROJECTION_MAPPINGS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/linalg/tiles.h"
#include "core/mapping/builder/built_mapping.h"
#include "core/mapping/projection/random_projection.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/mapping.h"

namespace phimap {

// 1 − δ of a theorem's numbers, and how many rows a statement about many rows is of.
inline constexpr double kTheoremDelta = 0.05;
inline constexpr int64_t kTheoremRows = 1000;
inline constexpr double kTheoremPairs = kTheoremRows * (kTheoremRows - 1) / 2.0;

// The random matrix that a spec asks for: one block, or one for each class.
ProjectionTask ProjectionTaskOf(const BuildSpec& spec);

// FAILED_PRECONDITION (DIMENSIONS_TOO_MANY): only as many rows as columns can be orthonormal.
absl::Status CheckOrthonormalRows(const BuildSpec& spec, int64_t columns);

MappingCost CostOfProjectionMapping(const MappingShape& shape);

absl::StatusOr<BuiltMapping> BuildProjectionMapping(const BuildSpec& spec, const LandmarkTask& task,
                                                    const TileControl& control);

// "e = 0.1", or "no e below 1": by how much k dimensions change squared lengths but with
// probability `delta`.
std::string DistortionText(int64_t dimensions, double delta);

// Theorem about squared lengths after a projection with such entries.
std::string ProjectionTheoremText(ProjectionKind kind, int64_t dimensions);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_PROJECTION_PROJECTION_MAPPINGS_H_
