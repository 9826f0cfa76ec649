// How fast versions were computed so far: what estimates of the scheduler rest on.
#ifndef PHIMAP_SERVER_SCHEDULE_COMPUTE_SPEED_H_
#define PHIMAP_SERVER_SCHEDULE_COMPUTE_SPEED_H_

#include <array>
#include <memory>
#include <unordered_map>

#include "core/plan/engine.h"

namespace phimap {

// Multiplications per second of one thread, smoothed. Versions differ by more than ten: a product
// of panels runs at the speed of the vector unit, a distance without one does not. Not thread-safe;
// the scheduler guards it.
class ComputeSpeed {
 public:
  // A pass over work of `engine` that took `seconds` > 0.
  void Learn(const std::shared_ptr<const Engine>& engine, double multiplications, double seconds);

  // Of all versions, over some ten passes; 0 before the first.
  double overall() const { return overall_; }
  // Of one, the median of its last nine passes; 0 before its first. It decides what may hold an RPC
  // thread, and a pass that the operating system interrupted says nothing about that.
  double Of(const std::shared_ptr<const Engine>& engine) const;

 private:
  struct Entry {
    // Tells a version from another that was loaded at its address later.
    std::weak_ptr<const Engine> engine;
    std::array<double, 9> recent;
    int passes = 0;
    double median = 0;
    void Add(double rate);
  };
  const Entry* Find(const std::shared_ptr<const Engine>& engine) const;

  double overall_ = 0;
  // Of versions that were live when the newest of them was first computed.
  std::unordered_map<const Engine*, Entry> entries_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_COMPUTE_SPEED_H_
