// Measured computing speed of versions, the basis of the scheduler's estimates.
#ifndef PHIMAP_SERVER_SCHEDULE_COMPUTE_SPEED_H_
#define PHIMAP_SERVER_SCHEDULE_COMPUTE_SPEED_H_

#include <array>
#include <memory>
#include <unordered_map>

#include "core/engine/engine.h"

namespace phimap {

// The speed of one thread in multiplications per second, smoothed, for each version. Versions
// differ by a factor of more than ten: matrix products run at the speed of the vector unit, but
// distances that are computed without matrix products do not. Not thread-safe; the scheduler guards
// it.
class ComputeSpeed {
 public:
  // Records a batch of `engine` that took `seconds` > 0.
  void Learn(const std::shared_ptr<const Engine>& engine, double multiplications, double seconds);

  // Returns the median speed of the last nine batches of the version, or 0 before its first batch.
  // A mean would be distorted by a batch that the operating system interrupted. The speed decides
  // how long a request may occupy an RPC thread.
  double Of(const std::shared_ptr<const Engine>& engine) const;

 private:
  struct Entry {
    // Distinguishes a version from another one that was loaded at the same address later.
    std::weak_ptr<const Engine> engine;
    std::array<double, 9> recent;
    int batches = 0;
    double median = 0;
    void Add(double rate);
  };
  const Entry* Find(const std::shared_ptr<const Engine>& engine) const;

  // Entries of the versions that were live when a version was last added.
  std::unordered_map<const Engine*, Entry> entries_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_COMPUTE_SPEED_H_
