// The input stage of strings, which passes them on unchanged.
#ifndef PHIMAP_CORE_ENGINE_STRING_INPUT_H_
#define PHIMAP_CORE_ENGINE_STRING_INPUT_H_

#include "core/engine/input_runner.h"

namespace phimap {

template <typename T>
class StringInput final : public InputRunner<T> {
 public:
  explicit StringInput(const EngineInput& input) : InputRunner<T>(input, /*stays_sparse=*/false) {}

  TileRows<T> Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const override;
  int64_t memory_bytes() const override { return 0; }

 private:
  struct Memory;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_STRING_INPUT_H_
