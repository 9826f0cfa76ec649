// Progress of a build, and its observers.
#ifndef PHIMAP_CORE_MAPPING_BUILD_BUILD_PROGRESS_H_
#define PHIMAP_CORE_MAPPING_BUILD_BUILD_PROGRESS_H_

#include <array>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/mapping/build/build_cost.h"

namespace phimap {

// Observer of a build. Its functions are called on the thread that computes.
class BuildMonitor {
 public:
  virtual ~BuildMonitor() = default;
  // Called between tiles. `phase` is the current phase. `fraction` is the share of the whole build
  // that is done, 0..1, and never decreases. May block so that more urgent work runs first. If it
  // returns a status other than OK, the build ends with that status.
  //
  // The phases, in order:
  // - "sample";
  // - "choose" for policies that compute and for landmarks=auto(…), or "kernel" for a remote
  //   kernel;
  // - "gram" and "factor" for a mapping with a Gram matrix, or "draw" for any other mapping;
  // - "certificate" and "encode".
  virtual absl::Status Checkpoint(absl::string_view phase, double fraction) = 0;
  // Number of threads that a step may use now, at least 1. The artifact's bytes do not depend on
  // it.
  virtual int threads() const { return 1; }
};

// The monitor of a build that is a part of longer work, whose progress goes from `from` to `to`
// meanwhile.
class PartOfMonitor final : public BuildMonitor {
 public:
  // `phase`: that of the longer work; empty for those of the build.
  PartOfMonitor(BuildMonitor& whole, double from, double to, absl::string_view phase = "")
      : whole_(whole), from_(from), to_(to), phase_(phase) {}
  absl::Status Checkpoint(absl::string_view phase, double fraction) override {
    return whole_.Checkpoint(phase_.empty() ? phase : phase_, from_ + (to_ - from_) * fraction);
  }
  int threads() const override { return whole_.threads(); }

 private:
  BuildMonitor& whole_;
  const double from_;
  const double to_;
  const absl::string_view phase_;
};

// The steps of a build, in order.
enum class BuildStep { kSample, kChoose, kMapping, kSpectrum, kMeasurement, kEncode };

// Converts the progress of a step to the progress of the build.
class BuildProgress {
 public:
  explicit BuildProgress(BuildMonitor& monitor) : monitor_(monitor) {}

  // Sets each step's part of the whole. Until this is called, all reports have progress 0.
  void Apportion(const BuildShares& shares);
  // Reports to the monitor, and returns its status. Progress does not decrease when a step is
  // repeated.
  absl::Status Report(BuildStep step, absl::string_view phase, double fraction);
  int threads() const { return monitor_.threads(); }

 private:
  static constexpr int kSteps = 6;

  BuildMonitor& monitor_;
  // Progress at which each step begins. The last number is the progress at the end of the build.
  std::array<double, kSteps + 1> begins_ = {};
  double reported_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_BUILD_PROGRESS_H_
