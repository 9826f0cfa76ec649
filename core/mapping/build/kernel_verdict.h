// Verdict of a build on a kernel that is not positive semidefinite by construction.
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
  // Statement for the certificate; empty if there is none.
  std::string warning;
  // Indefinite: a similarity, which F1 alone accepts.
  bool indefinite = false;
};

// FAILED_PRECONDITION (KERNEL_NOT_POSITIVE_SEMIDEFINITE, field "kernel") for a mapping that needs a
// kernel and gets none. REQUIRES: a mapping with landmarks.
absl::StatusOr<KernelVerdict> VerdictOn(absl::string_view kernel_text, const MappingSpec& mapping,
                                        const DefinitenessProbe& probe);

// Verdict on a kernel that is not symmetric (KERNEL_NOT_SYMMETRIC), at the place that `asymmetry`
// names.
absl::StatusOr<KernelVerdict> VerdictOnAsymmetry(absl::string_view kernel_text,
                                                 const MappingSpec& mapping,
                                                 absl::string_view asymmetry);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_KERNEL_VERDICT_H_
