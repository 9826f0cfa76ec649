// What a build makes of a kernel that is not positive semidefinite by construction.
#ifndef PHIMAP_CORE_MAPPING_KERNEL_VERDICT_H_
#define PHIMAP_CORE_MAPPING_KERNEL_VERDICT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/definiteness.h"
#include "core/mapping/mapping_spec.h"

namespace phimap {

struct KernelVerdict {
  // What the certificate says; empty if nothing is to be said.
  std::string warning;
  // It is none: a similarity, which F1 alone takes.
  bool indefinite = false;
};

// FAILED_PRECONDITION (NOT_POSITIVE_SEMIDEFINITE, field "kernel") for a mapping that needs a kernel
// and gets none. REQUIRES: a mapping with landmarks.
absl::StatusOr<KernelVerdict> VerdictOn(absl::string_view kernel_text, const MappingSpec& mapping,
                                        const DefinitenessProbe& probe);

// The same of one that is not symmetric (NOT_SYMMETRIC), which `asymmetry` says where.
absl::StatusOr<KernelVerdict> VerdictOnAsymmetry(absl::string_view kernel_text,
                                                 const MappingSpec& mapping,
                                                 absl::string_view asymmetry);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_VERDICT_H_
