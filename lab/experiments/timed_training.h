// Kernel SGD by the approaches of the Cornell lecture, with its CPU time.
#ifndef PHIMAP_LAB_EXPERIMENTS_TIMED_TRAINING_H_
#define PHIMAP_LAB_EXPERIMENTS_TIMED_TRAINING_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/learn/learner.h"
#include "core/linalg/matrix.h"
#include "lab/examples.h"
#include "lab/experiments/engine_row_map.h"

namespace phimap::lab {

enum class SgdFeatures { kNone, kMonomials, kFourier };

struct SgdApproach {
  const char* name;
  // The cost, from the lecture's table.
  const char* cost;
  const char* strategy;
  SgdFeatures features;
};

// The approaches, with the lecture's numbers. The lecture gives no number and no cost for the last
// two; their cost follows from that of the first two.
inline constexpr SgdApproach kSgdApproaches[] = {
    {"1. exact features on the fly", "dDT", "features", SgdFeatures::kMonomials},
    {"2. exact features, stored", "ndD + DT", "stored_features", SgdFeatures::kMonomials},
    {"3. kernel values on the fly", "ndT", "kernel", SgdFeatures::kNone},
    {"4. Gram matrix, stored", "n²d + nT", "gram", SgdFeatures::kNone},
    {"5. Fourier features on the fly", "dDT", "features", SgdFeatures::kFourier},
    {"6. Fourier features, stored", "ndD + DT", "stored_features", SgdFeatures::kFourier}};

struct SgdSetting {
  // Number of Fourier features; not used for a polynomial kernel, whose number of features is
  // fixed.
  int64_t dimensions = 0;
  std::string kernel;
  double rate = 0.1;
  int64_t epochs = 1;
};

// A training that can be repeated, and the smallest CPU time of all repetitions.
class TimedTraining {
 public:
  // Prepares the training. The frequencies are drawn with `seed`, before timing starts.
  static absl::StatusOr<TimedTraining> Make(const SgdApproach& approach, const SgdSetting& setting,
                                            Examples examples, uint64_t seed);

  // Trains once more.
  absl::StatusOr<std::unique_ptr<const Model>> Train(uint64_t seed);
  double seconds() const { return seconds_; }
  const Examples& examples() const { return examples_; }
  // Returns D, the number of features; 0 if the approach has no features.
  int64_t dimensions() const { return map_ == nullptr ? 0 : map_->output_columns(); }

 private:
  TimedTraining() = default;

  Examples examples_;
  std::shared_ptr<const EngineRowMap> map_;
  std::unique_ptr<const Learner> learner_;
  double seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_TIMED_TRAINING_H_
