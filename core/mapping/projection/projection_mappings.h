// Parts shared by the mappings that project their inputs at random.
#ifndef PHIMAP_CORE_MAPPING_PROJECTION_PROJECTION_MAPPINGS_H_
#define PHIMAP_CORE_MAPPING_PROJECTION_PROJECTION_MAPPINGS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/linalg/tiles.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/projection/random_projection.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"

namespace phimap {

// Theorems are stated with probability 1 − kTheoremDelta; statements about many rows are about
// kTheoremRows rows.
inline constexpr double kTheoremDelta = 0.05;
inline constexpr int64_t kTheoremRows = 1000;
inline constexpr double kTheoremPairs = kTheoremRows * (kTheoremRows - 1) / 2.0;

// Returns the random matrix that the spec requests: one block, or one block per class.
ProjectionTask ProjectionTaskOf(const BuildSpec& spec);

// Returns FAILED_PRECONDITION (DIMENSIONS_TOO_MANY) if the spec requests more orthonormal rows than
// there are columns.
absl::Status CheckOrthonormalRows(const BuildSpec& spec, int64_t columns);

MappingCost CostOfProjectionMapping(const MappingShape& shape);

absl::StatusOr<BuiltMapping> BuildProjectionMapping(const BuildSpec& spec, const LandmarkTask& task,
                                                    const TileControl& control);

// Returns a text such as "e = 0.1", or "no e below 1". Here e bounds the relative change of squared
// lengths by a projection to `dimensions`. A change larger than e has a probability of at most
// `delta`.
std::string DistortionText(int64_t dimensions, double delta);

// Returns the theorem about squared lengths after a projection of this kind.
std::string ProjectionTheoremText(ProjectionKind kind, int64_t dimensions);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_PROJECTION_PROJECTION_MAPPINGS_H_
