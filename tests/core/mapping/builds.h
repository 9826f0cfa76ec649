// Building versions in tests, from spec text and rows.
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

// Ends the program when a text is malformed. Not validated.
BuildSpec SpecOf(const std::string& mapping, const std::string& kernel, bool standardize = false,
                 uint64_t seed = 1);

// Records what it is told; refuses at call number `stop_at` (from 0), if that is not negative.
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

// Says how many threads there are, and keeps the phases in order.
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

// The stream is the rows, in blocks of `block_rows` (0: one block).
absl::StatusOr<BuiltVersion> Build(const BuildSpec& spec, const ExamplesView& rows,
                                   int64_t block_rows = 0, KernelSource* source = nullptr);
absl::StatusOr<BuiltVersion> Build(const BuildSpec& spec, const Matrix<double>& rows);
BuiltVersion MustBuild(const BuildSpec& spec, const Matrix<double>& rows);

// Features of rows by the engine, from the plan of the artifact's bytes, widened to float64.
Matrix<double> FeaturesFrom(const BuiltVersion& version, const Matrix<double>& rows);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_MAPPING_BUILDS_H_
