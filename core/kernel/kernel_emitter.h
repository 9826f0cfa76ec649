// Records the operations of a program while a kernel is compiled.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_EMITTER_H_
#define PHIMAP_CORE_KERNEL_KERNEL_EMITTER_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/kernel/kernel_parts.h"

namespace phimap {

// Appends operations to one list, either the program's or a factor's. Equal factors, forms, column
// sums and string kernels get the same number.
class KernelEmitter {
 public:
  using Ops = std::vector<KernelOp>;

  // `parts` and `ops` must outlive the emitter.
  KernelEmitter(KernelProgramParts& parts, Ops& ops) : parts_(parts), ops_(ops) {}

  void Emit(KernelOp op) { ops_.push_back(op); }
  // Pushes f(x)·f(a_j), where f is the result of `factor`.
  void PushFactor(Ops factor) {
    Emit({.code = KernelOpCode::kPushFactor, .n = IndexOf(parts_.factors, std::move(factor))});
  }
  // Pushes x·Aa_j.
  void PushForm(BilinearForm form) {
    Emit({.code = KernelOpCode::kPushForm, .n = IndexOf(parts_.forms, std::move(form))});
  }
  // Returns an operation that pushes a column sum, to be passed to Emit or made part of a factor.
  KernelOp ColumnSumOp(ColumnSum sum) {
    return {.code = KernelOpCode::kPushColumnSum, .n = IndexOf(parts_.sums, std::move(sum))};
  }
  // Pushes the value of a string kernel.
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
