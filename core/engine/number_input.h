// The input stage x' = (x − c) ∘ s of rows of numbers. Remote kernel values pass through it too,
// without c and s.
#ifndef PHIMAP_CORE_ENGINE_NUMBER_INPUT_H_
#define PHIMAP_CORE_ENGINE_NUMBER_INPUT_H_

#include "core/engine/input_runner.h"
#include "core/engine/shift_and_scale.h"
#include "core/plan/plan.h"

namespace phimap {

template <typename T>
class NumberInput final : public InputRunner<T> {
 public:
  // REQUIRES: `stage` has no projection. Its shift c and scale s, if given, have input.columns
  //           numbers. stays_sparse may be true only if there is no shift. A number that is missing
  //           from a sparse row is 0. It stays 0 under any scale, but not under a shift.
  NumberInput(const EngineInput& input, const InputStage& stage, bool stays_sparse);

  TileRows<T> Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const override;
  int64_t memory_bytes() const override { return scaling_.memory_bytes(); }

 private:
  struct Memory;

  TileRows<T> RunSparse(absl::Span<const RowPlace> tile, Memory& memory) const;

  const ShiftAndScale scaling_;
  const int64_t stride_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_NUMBER_INPUT_H_
