// Loads engines: chooses the backend that runs a plan, and loads the plan with it.
//
// A backend is one way to execute plans, for instance with the vector unit of this machine
// (panel_backend.h). To add another, derive a class from EngineBackend, with engines derived from
// Engine, and add a line in EngineLoader::Default.
#ifndef PHIMAP_CORE_ENGINE_ENGINE_LOADER_H_
#define PHIMAP_CORE_ENGINE_ENGINE_LOADER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/engine/engine.h"
#include "core/plan/plan.h"

namespace phimap {

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

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_ENGINE_LOADER_H_
