// The step of a build that calls the mapping's builder.
#ifndef PHIMAP_CORE_MAPPING_BUILD_MAPPING_BUILD_H_
#define PHIMAP_CORE_MAPPING_BUILD_MAPPING_BUILD_H_

#include "absl/status/statusor.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/builder/built_mapping.h"
#include "core/mapping/spec/build_spec.h"

namespace phimap {

// Builds the mapping, and reports to BuildStep::kMapping. Errors: those of the builder.
absl::StatusOr<BuiltMapping> BuildMapping(const BuildSpec& spec, const LandmarkTask& task,
                                          BuildProgress& progress);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_MAPPING_BUILD_H_
