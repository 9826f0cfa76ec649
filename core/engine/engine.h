// An engine executes one plan, fast. The bits of a row's features depend only on the plan and the
// row.
//
// The arithmetic number of the plan fixes the order of every sum (panel_product.h). The features of
// a row therefore do not depend on the rows beside it or on the number of threads. They are also
// the same for float32 and float64 inputs of equal value, and on all machines with fused
// multiply-add.
//
// Schedulers and servers use this interface. engine_loader.h makes engines from plans.
//
// Thread-safety: a loaded engine is immutable. Any number of threads may use it, each with its own
// scratch.
#ifndef PHIMAP_CORE_ENGINE_ENGINE_H_
#define PHIMAP_CORE_ENGINE_ENGINE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/engine/engine_scratch.h"
#include "core/plan/examples.h"
#include "core/plan/plan.h"
#include "core/plan/rows.h"

namespace phimap {

// One request's share of a batch.
struct TransformPart {
  // REQUIRES: CheckTakes and CheckExamples are OK.
  ExamplesView rows;
  // Output: rows.rows() × output_columns() numbers of the serving type, aligned for that type. Must
  // not alias anything.
  void* features = nullptr;
  // Output: OK, or OUT_OF_RANGE (reason VALUE_NOT_REPRESENTABLE, field rows[i]) if the kernel
  // values or features of a row overflow the serving type. Other parts are not affected.
  absl::Status status;
};

// Rows that an engine takes.
struct EngineInput {
  // Numbers per row; 0 for strings. A row of remote kernel values holds K(x, a) for each landmark
  // a, in order. It may end with K(x, x), which the engine ignores.
  int64_t columns = 0;
  bool remote = false;
  // Whether examples are strings, and whether these may be bytes that are not text.
  bool strings = false;
  bool bytes = false;
};

// Input and output shapes of an engine.
struct EngineShape {
  EngineInput input;
  int64_t output_columns = 0;
  FloatType serving_type = FloatType::kFloat32;
};

class Engine {
 public:
  explicit Engine(const EngineShape& shape) : shape_(shape) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Loads `plan` with EngineLoader::Default(), by the first backend that runs it.
  static absl::StatusOr<std::unique_ptr<const Engine>> Load(const Plan& plan);

  int64_t input_columns() const { return shape_.input.columns; }
  bool is_remote() const { return shape_.input.remote; }
  bool takes_strings() const { return shape_.input.strings; }
  bool takes_bytes() const { return shape_.input.bytes; }
  bool TakesColumns(int64_t columns) const {
    return columns == input_columns() || (is_remote() && columns == input_columns() + 1);
  }
  int64_t output_columns() const { return shape_.output_columns; }
  FloatType serving_type() const { return shape_.serving_type; }
  // Returns OK if the plan maps examples of this kind and number of columns. Otherwise returns
  // INVALID_ARGUMENT with field "examples.KIND" or "examples.KIND.columns". The reason is
  // EXAMPLE_KIND_MISMATCH, or COLUMNS_MISMATCH with both numbers.
  absl::Status CheckTakes(const ExamplesView& examples) const;

  // Bytes held by the loaded plan.
  virtual int64_t memory_bytes() const = 0;
  // Multiplications of one dense row; the basis of scheduling estimates.
  virtual int64_t multiplications_per_row() const = 0;
  // Multiplications for a block; sparse rows take fewer than dense rows.
  virtual double Multiplications(const ExamplesView& rows) const {
    return static_cast<double>(rows.rows()) * static_cast<double>(multiplications_per_row());
  }

  // Maps every row of every part. Rows of different parts share tiles. Allocates only to grow
  // `scratch`.
  virtual void Transform(absl::Span<TransformPart> parts, EngineScratch& scratch) const = 0;

 private:
  const EngineShape shape_;
};

// The vector unit that engines of this process use, for instance "AVX3" or "AVX2".
const char* EngineTargetName();

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_ENGINE_H_
