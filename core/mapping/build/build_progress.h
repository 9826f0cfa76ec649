// Progress of a build, and its observers.
#ifndef PHIMAP_CORE_MAPPING_BUILD_BUILD_PROGRESS_H_
#define PHIMAP_CORE_MAPPING_BUILD_BUILD_PROGRESS_H_

#include <array>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/mapping/build/build_cost.h"

namespace phimap {

// Watches a build; called on the thread that computes.
class BuildMonitor {
 public:
  virtual ~BuildMonitor() = default;
  // Called between tiles with the phase ("sample", then "choose" under policies that compute
  // and for landmarks=auto(…), or "kernel" for a remote kernel, "gram" and "factor" of a mapping
  // with landmarks or "draw" of one without, "certificate", "encode") and the share of the whole
  // build that is done, 0..1, never falling. May block to let more urgent work pass. A status other
  // than OK ends the build with that status.
  virtual absl::Status Checkpoint(absl::string_view phase, double fraction) = 0;
  // Number of threads that a step may use at the moment, at least 1. The bytes do not depend on it.
  virtual int threads() const { return 1; }
};

// The steps of a build, in order.
enum class BuildStep { kSample, kChoose, kMapping, kSpectrum, kMeasurement, kEncode };

// Makes of the share of a step that of the build.
class BuildProgress {
 public:
  explicit BuildProgress(BuildMonitor& monitor) : monitor_(monitor) {}

  // Sets each step's share of the whole. Before this call no step reports progress.
  void Apportion(const BuildShares& shares);
  // Reports to the monitor and returns its status. A repeated step does not move the bar back.
  absl::Status Report(BuildStep step, absl::string_view phase, double fraction);
  int threads() const { return monitor_.threads(); }

 private:
  static constexpr int kSteps = 6;

  BuildMonitor& monitor_;
  // Start of each step, and the end.
  std::array<double, kSteps + 1> begins_ = {};
  double reported_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_BUILD_PROGRESS_H_
