#include "tests/support/vector_targets.h"

#include "hwy/highway.h"
#include "hwy/targets.h"

namespace phimap::testing {

std::vector<VectorTarget> SupportedVectorTargets() {
#ifdef HWY_SSE2  // the Highway of Debian 12 does not define it
  constexpr int64_t kBelowSsse3 = HWY_SSE2;
#else
  constexpr int64_t kBelowSsse3 = 0;
#endif
  constexpr int64_t kUnfused = kBelowSsse3 | HWY_SSSE3 | HWY_SSE4 | HWY_EMU128 | HWY_SCALAR;
  std::vector<VectorTarget> targets;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    targets.push_back({target, hwy::TargetName(target), (target & kUnfused) == 0});
  }
  return targets;
}

ForcedVectorTarget::ForcedVectorTarget(const VectorTarget& target) {
  hwy::SetSupportedTargetsForTest(target.target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

ForcedVectorTarget::~ForcedVectorTarget() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace phimap::testing
