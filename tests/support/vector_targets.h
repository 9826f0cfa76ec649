// Lets tests run on each vector unit of this machine, not only on the best one.
#ifndef PHIMAP_TESTS_SUPPORT_VECTOR_TARGETS_H_
#define PHIMAP_TESTS_SUPPORT_VECTOR_TARGETS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace phimap::testing {

struct VectorTarget {
  int64_t target = 0;
  std::string name;
  // Whether the target has fused multiply-add. All such targets give results with equal bits.
  bool fused = false;
};

// Returns the vector targets that this machine has, best first.
std::vector<VectorTarget> SupportedVectorTargets();

// Makes every dispatch use `target` for as long as this object exists. During this time, matrices
// that were packed for another target must not be used. Not thread-safe.
class ForcedVectorTarget {
 public:
  explicit ForcedVectorTarget(const VectorTarget& target);
  ~ForcedVectorTarget();
  ForcedVectorTarget(const ForcedVectorTarget&) = delete;
  ForcedVectorTarget& operator=(const ForcedVectorTarget&) = delete;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_VECTOR_TARGETS_H_
