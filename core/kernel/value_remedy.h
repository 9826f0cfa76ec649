// What to do about kernel values that are not finite.
#ifndef PHIMAP_CORE_KERNEL_VALUE_REMEDY_H_
#define PHIMAP_CORE_KERNEL_VALUE_REMEDY_H_

#include "absl/strings/string_view.h"
#include "core/kernel/kernel_program.h"

namespace phimap {

// Whether the program divides by a number of the row alone, which is 0 for a row of zeros:
// normalize() by √K(x, x), weight() by a power of ‖x‖.
bool DividesByRow(const KernelProgram& program);

// Returns the remedy for a kernel value that is not finite, as the last clause of an error message.
// No scaling makes a row of zeros one that can be divided by, so a program that divides has a
// remedy of its own.
absl::string_view ValueRemedy(const KernelProgram& program);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_VALUE_REMEDY_H_
