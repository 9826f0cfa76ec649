// Working memory of one thread that runs engines, grown as needed and reused between calls.
#ifndef PHIMAP_CORE_ENGINE_ENGINE_SCRATCH_H_
#define PHIMAP_CORE_ENGINE_ENGINE_SCRATCH_H_

#include <memory>
#include <utility>
#include <vector>

namespace phimap {

// Holds one object of each type that Of was called with. Every stage of an engine, and every
// backend, has its own type. Not thread-safe.
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

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_ENGINE_SCRATCH_H_
