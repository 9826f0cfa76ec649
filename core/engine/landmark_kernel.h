// A kernel program and everything that it reads of the landmarks alone: norms, offsets, factors.
#ifndef PHIMAP_CORE_ENGINE_LANDMARK_KERNEL_H_
#define PHIMAP_CORE_ENGINE_LANDMARK_KERNEL_H_

#include <cstdint>
#include <vector>

#include "core/engine/self_values.h"
#include "core/kernel/kernel_program.h"

namespace phimap {

// Immutable and thread-safe after the Take functions were called.
template <typename T>
class LandmarkKernel {
 public:
  // Numbers of a tile that the program reads; null if it does not read them.
  struct Operands {
    int64_t rows = 0;
    // x_i·a_j in row i, ‖x_i − a_j‖₁ in row i, ‖x_i‖².
    const T* const* products = nullptr;
    const T* const* l1_distances = nullptr;
    const T* norms = nullptr;
    // PairValues::Compute.
    const T* const* pair_values = nullptr;
    // K(x, x) of the tile's rows: the caller fills in pair values if the program has factors, and
    // Evaluate fills in the factors.
    SelfValues<T>* self = nullptr;
  };
  // Memory of one row.
  struct Memory {
    std::vector<const T*> pair_values;
    std::vector<T> factors;
  };

  LandmarkKernel() = default;
  LandmarkKernel(KernelProgram program, int64_t landmarks)
      : program_(std::move(program)), landmarks_(landmarks) {}

  // b_j and ‖a_j‖² of each landmark, and any number of zeros.
  void TakeOffsets(std::vector<T> offsets) { offsets_ = std::move(offsets); }
  void TakeNorms(std::vector<T> norms) { norms_ = std::move(norms); }
  // Pair values of the landmarks with themselves; the factors are made from them and the norms.
  void TakeSelfValues(SelfValues<T> self);

  // z[i][j] = e(operands of row i and landmark j). z may be the products, the distances or one of
  // the pair values.
  void Evaluate(const Operands& operands, T* const* z, Memory& memory) const;

  const KernelProgram& program() const { return program_; }
  int64_t landmarks() const { return landmarks_; }
  int64_t features() const { return landmarks_ * program_.results(); }
  // Null where there are none.
  const T* offsets() const { return offsets_.empty() ? nullptr : offsets_.data(); }
  const T* norms() const { return norms_.empty() ? nullptr : norms_.data(); }
  int64_t memory_bytes() const {
    return self_.memory_bytes() +
           static_cast<int64_t>((norms_.size() + offsets_.size()) * sizeof(T));
  }
  // Value of FeatureRunner::overflow_cause for stages that use this kernel.
  const char* overflow_cause() const {
    return program_.factors().empty() ? "" : ", or K(x, x) that it is divided by is not > 0";
  }

 private:
  KernelProgram program_;
  int64_t landmarks_ = 0;
  std::vector<T> norms_;
  std::vector<T> offsets_;
  SelfValues<T> self_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_LANDMARK_KERNEL_H_
