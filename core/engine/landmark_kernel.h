// A kernel program, together with the values that it reads and that depend on the landmarks alone:
// norms, offsets and factors.
#ifndef PHIMAP_CORE_ENGINE_LANDMARK_KERNEL_H_
#define PHIMAP_CORE_ENGINE_LANDMARK_KERNEL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "core/engine/pair_values.h"
#include "core/kernel/kernel_program.h"

namespace phimap {

// Immutable, and so thread-safe, once the Take functions were called.
template <typename T>
class LandmarkKernel {
 public:
  // Values that the program reads of a tile. Values that the program does not read may be null.
  struct Operands {
    int64_t rows = 0;
    // products[i][j] = x_i·a_j, l1_distances[i][j] = ‖x_i − a_j‖₁, norms[i] = ‖x_i‖².
    const T* const* products = nullptr;
    const T* const* l1_distances = nullptr;
    const T* norms = nullptr;
    // In the layout of PairValues::Compute.
    const T* const* pair_values = nullptr;
    // Values of the tile's rows with themselves. If the program has factors, the caller fills in
    // the pair values, and Evaluate fills in the factors.
    SelfValues<T>* self = nullptr;
  };
  // Scratch memory for one row.
  struct Memory {
    std::vector<const T*> pair_values;
    std::vector<T> factors;
  };

  LandmarkKernel() = default;
  LandmarkKernel(KernelProgram program, int64_t landmarks)
      : program_(std::move(program)), landmarks_(landmarks) {}

  // Take b_j or ‖a_j‖² of each landmark. Any number of zeros may follow.
  void TakeOffsets(std::vector<T> offsets) { offsets_ = std::move(offsets); }
  void TakeNorms(std::vector<T> norms) { norms_ = std::move(norms); }
  // Takes the pair values of the landmarks with themselves, and computes the factors from these and
  // the norms. REQUIRES: TakeNorms was called.
  void TakeSelfValues(SelfValues<T> self);

  // Computes z[i][j] from the operands of row i and landmark j. `z` may alias the products, the
  // distances or one of the pair values.
  void Evaluate(const Operands& operands, T* const* z, Memory& memory) const;

  const KernelProgram& program() const { return program_; }
  int64_t landmarks() const { return landmarks_; }
  int64_t features() const { return landmarks_ * program_.results(); }
  // Null if none were taken.
  const T* offsets() const { return offsets_.empty() ? nullptr : offsets_.data(); }
  const T* norms() const { return norms_.empty() ? nullptr : norms_.data(); }
  int64_t memory_bytes() const {
    return self_.memory_bytes() +
           static_cast<int64_t>((norms_.size() + offsets_.size()) * sizeof(T));
  }
  // FeatureRunner::overflow_cause of a stage that evaluates this program.
  const char* overflow_cause() const;

 private:
  KernelProgram program_;
  int64_t landmarks_ = 0;
  std::vector<T> norms_;
  std::vector<T> offsets_;
  SelfValues<T> self_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_LANDMARK_KERNEL_H_
