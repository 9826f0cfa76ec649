// Statements about kernel PCA, in words.
#ifndef PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_THEOREM_H_
#define PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_THEOREM_H_

#include <string>

#include "core/mapping/kernel_pca/kernel_pca.h"
#include "core/mapping/spec/mapping_spec.h"

namespace phimap {

// Returns the theorem for the certificate, with the results of the iteration and the error of
// randomization.
std::string KernelPcaTheorem(const MappingSpec& mapping, const KernelPca& found);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_THEOREM_H_
