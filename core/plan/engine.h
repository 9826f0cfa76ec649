// The engine: executes any plan, fast, with bits that depend on the plan and the row alone.
//
// Loading packs the plan's matrices into panels for the vector unit at hand; a loaded engine is
// immutable. The order of every sum is fixed by the arithmetic number of the plan
// (panel_product.h), so a row's features do not depend on the rows beside it, on threads, on the
// float type that carried equal values, or on which machine with fused multiply-add computes them.
//
// Thread-safety: an Engine may be used by any number of threads, each with a scratch of its own.
#ifndef PHIMAP_CORE_PLAN_ENGINE_H_
#define PHIMAP_CORE_PLAN_ENGINE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/plan/examples.h"
#include "core/plan/plan.h"
#include "core/plan/rows.h"

namespace phimap {

// Working memory of one thread, grown as needed and reused between calls.
class EngineScratch {
 public:
  EngineScratch();
  ~EngineScratch();
  EngineScratch(const EngineScratch&) = delete;
  EngineScratch& operator=(const EngineScratch&) = delete;

 private:
  friend class Engine;
  template <typename T>
  friend class TypedEngine;
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

// One request's share of a batch.
struct TransformPart {
  // Checked before: CheckTakes and CheckExamples are OK.
  ExamplesView rows;
  // rows.rows() × output_columns() numbers of the serving type, at any alignment of that type;
  // aliases nothing.
  void* features = nullptr;
  // Filled in: OK, or OUT_OF_RANGE (reason NOT_REPRESENTABLE, field rows[i]) when a row's kernel
  // values or features overflow the serving type. Other parts are not affected.
  absl::Status status;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Packs `plan`. The plan is not needed afterwards. Errors: UNIMPLEMENTED for an arithmetic number
  // it does not know; RESOURCE_EXHAUSTED for a sparse projection whose dense form takes over 1 GiB;
  // FAILED_PRECONDITION for a landmark whose squared norm overflows the serving type. Throws
  // std::bad_alloc.
  static absl::StatusOr<std::unique_ptr<const Engine>> Load(const Plan& plan);

  // Of the rows that it takes; 0 of strings. Those of an external block are K(x, ·) of each
  // landmark in turn, and may have one number more, K(x, x), which the engine passes over.
  virtual int64_t input_columns() const = 0;
  virtual bool is_external() const { return false; }
  bool TakesColumns(int64_t columns) const {
    return columns == input_columns() || (is_external() && columns == input_columns() + 1);
  }
  virtual int64_t output_columns() const = 0;
  virtual FloatType serving_type() const = 0;
  // Bytes held by the packed plan.
  virtual int64_t memory_bytes() const = 0;
  // Multiplications of one dense row; what scheduling estimates are made of.
  virtual int64_t multiplications_per_row() const = 0;
  // The same of a block: sparse rows take fewer.
  virtual double Multiplications(const ExamplesView& rows) const {
    return static_cast<double>(rows.rows()) * static_cast<double>(multiplications_per_row());
  }
  // Whether it maps strings, of which there are 0 columns: texts, and other bytes too?
  virtual bool takes_strings() const { return false; }
  virtual bool takes_bytes() const { return false; }
  // Whether the plan maps such examples: INVALID_ARGUMENT (WRONG_KIND; WRONG_COLUMNS with both
  // numbers; field "examples.KIND" or "examples.KIND.columns") if it does not.
  virtual absl::Status CheckTakes(const ExamplesView& examples) const;

  // Maps every row of every part; rows of several parts share tiles. Allocates only to grow
  // `scratch`.
  virtual void Transform(absl::Span<TransformPart> parts, EngineScratch& scratch) const = 0;
};

// The vector unit that engines of this process use, for instance "AVX3" or "AVX2".
const char* EngineTargetName();

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_ENGINE_H_
