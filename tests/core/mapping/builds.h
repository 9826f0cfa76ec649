// Helpers for tests that build versions from rows and from the text of a spec.
#ifndef PHIMAP_TESTS_CORE_MAPPING_BUILDS_H_
#define PHIMAP_TESTS_CORE_MAPPING_BUILDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/linalg/matrix.h"
#include "core/mapping/build/version_build.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/examples.h"

namespace phimap::testing {

// Parses the texts to a spec, which is not validated. Ends the program if a text is malformed.
BuildSpec SpecOf(const std::string& mapping, const std::string& kernel, bool standardize = false,
                 uint64_t seed = 1);

// Records the phases and fractions of the checkpoints. If `stop_at` is not negative, checkpoint
// number `stop_at` (counted from 0) returns an error.
class RecordingMonitor final : public BuildMonitor {
 public:
  explicit RecordingMonitor(int64_t stop_at = -1) : stop_at_(stop_at) {}
  absl::Status Checkpoint(absl::string_view phase, double fraction) override {
    phases.emplace_back(phase);
    fractions.push_back(fraction);
    return static_cast<int64_t>(fractions.size()) - 1 == stop_at_ ? absl::CancelledError("stop")
                                                                  : absl::OkStatus();
  }
  std::vector<std::string> phases;
  std::vector<double> fractions;

 private:
  int64_t stop_at_;
};

// Allows a build to use `threads` threads, and records its phases in order.
class ThreadedMonitor final : public BuildMonitor {
 public:
  explicit ThreadedMonitor(int threads) : threads_(threads) {}
  absl::Status Checkpoint(absl::string_view phase, double fraction) override;
  int threads() const override { return threads_; }
  std::vector<std::string> phases;

 private:
  const int threads_;
  double last_ = 0;
};

// Builds from the rows as a stream in blocks of `block_rows` rows (0: one block).
absl::StatusOr<BuiltVersion> Build(const BuildSpec& spec, const ExamplesView& rows,
                                   int64_t block_rows = 0, KernelSource* source = nullptr);
absl::StatusOr<BuiltVersion> Build(const BuildSpec& spec, const Matrix<double>& rows);
BuiltVersion MustBuild(const BuildSpec& spec, const Matrix<double>& rows);

// Decodes the artifact, maps the rows with the engine, and returns their features, widened to
// float64.
Matrix<double> FeaturesFrom(const BuiltVersion& version, const Matrix<double>& rows);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_MAPPING_BUILDS_H_
