// The features of a built mapping, for learners that map raw rows themselves.
#ifndef PHIMAP_LAB_EXPERIMENTS_ENGINE_ROW_MAP_H_
#define PHIMAP_LAB_EXPERIMENTS_ENGINE_ROW_MAP_H_

#include <cstdint>
#include <utility>

#include "core/learn/learner_type.h"
#include "lab/built_map.h"

namespace phimap::lab {

// Maps rows by the engine, directly into the learner's memory. Scratch memory is reused between
// calls, so a row costs as much as on a server. Not thread-safe, unlike other row maps.
class EngineRowMap final : public RowMap {
 public:
  // REQUIRES: the mapping is served in float64.
  explicit EngineRowMap(BuiltMap map);

  int64_t input_columns() const override { return map_.engine().input_columns(); }
  int64_t output_columns() const override { return map_.output_columns(); }
  // REQUIRES: `rows` and `out` are contiguous.
  absl::Status Map(ConstMatrixView<double> rows, MatrixView<double> out) const override;

 private:
  BuiltMap map_;
  mutable EngineScratch scratch_;
};

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_ENGINE_ROW_MAP_H_
