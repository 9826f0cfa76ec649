// The mapping of a version: the plans, and what building them found.
#ifndef PHIMAP_CORE_MAPPING_BUILT_MAPPING_H_
#define PHIMAP_CORE_MAPPING_BUILT_MAPPING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mapping/build_progress.h"
#include "core/mapping/build_spec.h"
#include "core/mapping/kernel_pca.h"
#include "core/mapping/landmark_mapping.h"

namespace phimap {

struct BuiltMapping : LandmarkMapping {
  // Of kernel PCA; its plans are this one's.
  KernelPca kernel_pca;
  // The landmarks whose values the plan takes, in its order.
  std::vector<int64_t> used;
};

// Calls the mapping's builder, whose errors it returns, and reports to BuildStep::kMapping.
absl::StatusOr<BuiltMapping> BuildMapping(const BuildSpec& spec, const LandmarkTask& task,
                                          BuildProgress& progress);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILT_MAPPING_H_
