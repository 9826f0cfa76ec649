// Decides whether a mapping accepts a kernel that is not positive semidefinite by construction.
#ifndef PHIMAP_CORE_MAPPING_BUILD_KERNEL_VERDICT_H_
#define PHIMAP_CORE_MAPPING_BUILD_KERNEL_VERDICT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/definiteness.h"
#include "core/mapping/spec/mapping_spec.h"

namespace phimap {

struct KernelVerdict {
  // Warning for the certificate; empty if there is none.
  std::string warning;
  // Whether the kernel is known to be indefinite or not symmetric. Only F1 accepts such a
  // similarity.
  bool indefinite = false;
};

// Returns the verdict for the result of a probe. FAILED_PRECONDITION
// (KERNEL_NOT_POSITIVE_SEMIDEFINITE, field "kernel") if the probe is indefinite and the mapping
// needs a positive semidefinite kernel. REQUIRES: the mapping has landmarks.
absl::StatusOr<KernelVerdict> VerdictOn(absl::string_view kernel_text, const MappingSpec& mapping,
                                        const DefinitenessProbe& probe);

// Returns the verdict on a kernel that is not symmetric. `asymmetry` is a text that shows two
// landmarks x and y for which K(x, y) and K(y, x) differ. FAILED_PRECONDITION
// (KERNEL_NOT_SYMMETRIC, field "kernel") unless the mapping accepts any similarity function.
absl::StatusOr<KernelVerdict> VerdictOnAsymmetry(absl::string_view kernel_text,
                                                 const MappingSpec& mapping,
                                                 absl::string_view asymmetry);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_KERNEL_VERDICT_H_
