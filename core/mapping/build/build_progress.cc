#include "core/mapping/build/build_progress.h"

#include <algorithm>

namespace phimap {
namespace {

// Shares of the build's time for drawing the sample and for encoding the artifact.
constexpr double kSampleShare = 0.01;
constexpr double kEncodeShare = 0.02;

}  // namespace

void BuildProgress::Apportion(const BuildShares& shares) {
  constexpr double kRest = 1 - kSampleShare - kEncodeShare;
  const std::array<double, kSteps> parts = {kSampleShare,
                                            kRest * shares.choose,
                                            kRest * shares.mapping,
                                            kRest * shares.spectrum,
                                            kRest * shares.measurement,
                                            kEncodeShare};
  for (int i = 0; i < kSteps; ++i) begins_[i + 1] = begins_[i] + parts[i];
  // The shares may add up to less than 1: all four are 0 if the steps that they are for have no
  // work.
  begins_[kSteps] = 1;
}

absl::Status BuildProgress::Report(BuildStep step, absl::string_view phase, double fraction) {
  const int i = static_cast<int>(step);
  reported_ = std::max(reported_, begins_[i] + (begins_[i + 1] - begins_[i]) * fraction);
  return monitor_.Checkpoint(phase, std::min(reported_, 1.0));
}

}  // namespace phimap
