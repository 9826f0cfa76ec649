// Requirements of mappings on kernels.
#ifndef PHIMAP_CORE_MAPPING_SPEC_KERNEL_REQUIREMENTS_H_
#define PHIMAP_CORE_MAPPING_SPEC_KERNEL_REQUIREMENTS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/kernel/leaf_kernel.h"
#include "core/mapping/spec/build_spec.h"

namespace phimap {

// Returns the names of the leaf kernels for which `is` holds, such as "rbf() or laplacian()".
std::string LeafKernelNames(absl::FunctionRef<bool(const LeafKernel&)> is);

// Returns INVALID_ARGUMENT (KERNEL_NOT_APPLICABLE, field "kernel") with the message
// "fourier REQUIREMENT, got KERNEL".
absl::Status KernelNotApplicable(const BuildSpec& spec, absl::string_view requirement);

// Returns INVALID_ARGUMENT (KERNEL_NOT_POSITIVE_SEMIDEFINITE, field "kernel") for a kernel that is
// known not to be positive semidefinite.
absl::Status RequireDefinite(const BuildSpec& spec);

// Returns OK if the kernel is c·linear() with c > 0. Returns KernelNotApplicable for any other
// kernel.
absl::Status RequireLinear(const BuildSpec& spec);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_KERNEL_REQUIREMENTS_H_
