// An engine executes one plan, fast. The bits of a row's features depend only on the plan and the
// row.
//
// The arithmetic number of the plan fixes the order of every sum (panel_product.h). The features of
// a row therefore do not depend on the rows beside it or on the number of threads. They are also
// the same for float32 and float64 inputs of equal value, and on all machines with fused
// multiply-add.
//
// Schedulers and servers use this interface. A backend makes the engines: it is one way to execute
// plans, for instance with the vector unit of this machine (PanelBackend). To add another, derive a
// class from EngineBackend, with engines derived from Engine, and add it in EngineLoader::Default.
//
// Thread-safety: a loaded engine is immutable. Any number of threads may use it, each with its own
// scratch.
#ifndef PHIMAP_CORE_ENGINE_ENGINE_H_
#define PHIMAP_CORE_ENGINE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/plan/examples.h"
#include "core/plan/plan.h"
#include "core/plan/rows.h"

namespace phimap {

// Working memory of one thread that runs engines, grown as needed and reused between calls. Holds
// one object of each type that Of was called with. Every stage of an engine, and every backend, has
// its own type. Not thread-safe.
class EngineScratch {
 public:
  EngineScratch() = default;
  EngineScratch(const EngineScratch&) = delete;
  EngineScratch& operator=(const EngineScratch&) = delete;

  // Returns the object of type Memory, as its last user left it. The first call default-constructs
  // the object.
  template <typename Memory>
  Memory& Of() {
    for (const Slot& slot : slots_) {
      if (slot.key == &kKey<Memory>) return *static_cast<Memory*>(slot.memory.get());
    }
    slots_.push_back({&kKey<Memory>, std::make_shared<Memory>()});
    return *static_cast<Memory*>(slots_.back().memory.get());
  }

 private:
  // The address of kKey<Memory> identifies the type.
  template <typename Memory>
  static inline char kKey = 0;

  struct Slot {
    const char* key;
    std::shared_ptr<void> memory;
  };
  std::vector<Slot> slots_;
};

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

// A way to execute plans. Immutable, thread-safe.
class EngineBackend {
 public:
  virtual ~EngineBackend() = default;
  virtual absl::string_view name() const = 0;
  // Whether the backend executes plans of that arithmetic, with exactly the bits that it
  // prescribes.
  virtual bool RunsArithmetic(uint32_t arithmetic) const = 0;
  // Packs `plan`, which is not needed afterwards. REQUIRES: RunsArithmetic of the plan's
  // arithmetic, and plan.Validate() is OK. Errors: RESOURCE_EXHAUSTED if the plan would take too
  // much memory; FAILED_PRECONDITION if its numbers overflow the serving type. Throws
  // std::bad_alloc.
  virtual absl::StatusOr<std::unique_ptr<const Engine>> Load(const Plan& plan) const = 0;
};

// Runs plans on the vector unit of this machine. Loading returns RESOURCE_EXHAUSTED if the dense
// form of a sparse projection takes over 1 GiB, and FAILED_PRECONDITION if the squared norm of a
// landmark overflows the serving type.
const EngineBackend& PanelBackend();

// An ordered list of backends. Immutable, thread-safe.
class EngineLoader {
 public:
  // `backends` must outlive the loader.
  explicit EngineLoader(std::vector<const EngineBackend*> backends)
      : backends_(std::move(backends)) {}
  // All backends of this program, the fastest first.
  static const EngineLoader& Default();

  // Loads `plan` with the first backend that runs its arithmetic. Errors: UNIMPLEMENTED
  // (ARITHMETIC_UNKNOWN) if no backend runs it, INVALID_ARGUMENT for a plan that is not valid, and
  // the errors of EngineBackend::Load. Throws std::bad_alloc.
  absl::StatusOr<std::unique_ptr<const Engine>> Load(const Plan& plan) const;

 private:
  const std::vector<const EngineBackend*> backends_;
};

// The vector unit that engines of this process use, for instance "AVX3" or "AVX2".
const char* EngineTargetName();

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_ENGINE_H_
