// Measured computing speed of versions, the basis of the scheduler's estimates.
#ifndef PHIMAP_SERVER_SCHEDULE_COMPUTE_SPEED_H_
#define PHIMAP_SERVER_SCHEDULE_COMPUTE_SPEED_H_

#include <array>
#include <memory>
#include <unordered_map>

#include "core/engine/engine.h"

namespace phimap {

// Multiplications per second of one thread, smoothed. Versions differ by more than ten: a product
// of panels runs at the speed of the vector unit, a distance without one does not. Not thread-safe;
// the scheduler guards it.
class ComputeSpeed {
 public:
  // A batch of `engine` that took `seconds` > 0.
  void Learn(const std::shared_ptr<const Engine>& engine, double multiplications, double seconds);

  // Median of one version's last nine batches; 0 before its first. The estimate decides how long a
  // request may occupy an RPC thread, and a batch that the operating system interrupted would
  // distort that.
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

  // Entries of versions that were live when the newest of them was first computed.
  std::unordered_map<const Engine*, Entry> entries_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_COMPUTE_SPEED_H_
