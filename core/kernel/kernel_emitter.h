// Collects the operations of a program while a kernel is compiled.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_EMITTER_H_
#define PHIMAP_CORE_KERNEL_KERNEL_EMITTER_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/kernel/kernel_parts.h"

namespace phimap {

// Appends to one list of operations, which is the program's or a factor's. Factors, forms and
// kernels of strings that equal an earlier one share its number.
class KernelEmitter {
 public:
  using Ops = std::vector<KernelOp>;

  // Both must outlive it.
  KernelEmitter(KernelProgramParts& parts, Ops& ops) : parts_(parts), ops_(ops) {}

  void Emit(KernelOp op) { ops_.push_back(op); }
  // Pushes f(x)·f(a_j), f being the result of `factor`.
  void PushFactor(Ops factor) {
    Emit({.code = KernelOpCode::kPushFactor, .n = IndexOf(parts_.factors, std::move(factor))});
  }
  // Pushes x·Aa_j.
  void PushForm(BilinearForm form) {
    Emit({.code = KernelOpCode::kPushForm, .n = IndexOf(parts_.forms, std::move(form))});
  }
  // Makes an operation that pushes a column sum, for Emit or for a factor.
  KernelOp ColumnSumOp(ColumnSum sum) {
    return {.code = KernelOpCode::kPushColumnSum, .n = IndexOf(parts_.sums, std::move(sum))};
  }
  // Pushes the value of a kernel of strings.
  void PushString(StringKernel kernel) {
    Emit({.code = KernelOpCode::kPushString, .n = IndexOf(parts_.strings, kernel)});
  }

 private:
  template <typename Part>
  static int32_t IndexOf(std::vector<Part>& all, Part part) {
    const auto found = std::find(all.begin(), all.end(), part);
    const auto index = static_cast<int32_t>(found - all.begin());
    if (found == all.end()) all.push_back(std::move(part));
    return index;
  }

  KernelProgramParts& parts_;
  Ops& ops_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_EMITTER_H_
