// Statements about kernel PCA, in words.
#ifndef PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_THEOREM_H_
#define PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_THEOREM_H_

#include <string>

#include "core/mapping/kernel_pca/kernel_pca.h"
#include "core/mapping/spec/mapping_spec.h"

namespace phimap {

// The statement of a certificate, with the iteration's findings and the randomization's error.
std::string KernelPcaTheorem(const MappingSpec& mapping, const KernelPca& found);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_THEOREM_H_
