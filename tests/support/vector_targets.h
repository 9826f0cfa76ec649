// Running a test on each vector unit that this machine has, not only on the best.
#ifndef PHIMAP_TESTS_SUPPORT_VECTOR_TARGETS_H_
#define PHIMAP_TESTS_SUPPORT_VECTOR_TARGETS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace phimap::testing {

struct VectorTarget {
  int64_t target = 0;
  std::string name;
  // Has fused multiply-add: belongs to the class that shares every bit.
  bool fused = false;
};

// Best first.
std::vector<VectorTarget> SupportedVectorTargets();

// While it lives, every dispatch goes to `target`. Matrices packed for another target cannot be
// used. Not thread-safe.
class ForcedVectorTarget {
 public:
  explicit ForcedVectorTarget(const VectorTarget& target);
  ~ForcedVectorTarget();
  ForcedVectorTarget(const ForcedVectorTarget&) = delete;
  ForcedVectorTarget& operator=(const ForcedVectorTarget&) = delete;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_VECTOR_TARGETS_H_
