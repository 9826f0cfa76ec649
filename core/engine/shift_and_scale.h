// Computes (x − c) ∘ s of a row of float64.
#ifndef PHIMAP_CORE_ENGINE_SHIFT_AND_SCALE_H_
#define PHIMAP_CORE_ENGINE_SHIFT_AND_SCALE_H_

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace phimap {

// Immutable, thread-safe.
class ShiftAndScale {
 public:
  explicit ShiftAndScale(const InputStage& stage)
      : columns_(stage.columns), shift_(stage.shift), scale_(stage.scale) {}

  bool empty() const { return shift_.empty() && scale_.empty(); }
  // s; empty if all scales are 1.
  const std::vector<double>& scale() const { return scale_; }
  void Apply(double* row) const {
    if (!shift_.empty()) {
      for (int64_t k = 0; k < columns_; ++k) row[k] -= shift_[k];
    }
    if (!scale_.empty()) {
      for (int64_t k = 0; k < columns_; ++k) row[k] *= scale_[k];
    }
  }
  int64_t memory_bytes() const {
    return static_cast<int64_t>((shift_.size() + scale_.size()) * sizeof(double));
  }

 private:
  int64_t columns_ = 0;
  std::vector<double> shift_;
  std::vector<double> scale_;
};

// Rounds each of `count` numbers to T.
template <typename T>
void RoundRow(const double* from, int64_t count, T* to) {
  for (int64_t k = 0; k < count; ++k) to[k] = static_cast<T>(from[k]);
}

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_SHIFT_AND_SCALE_H_
