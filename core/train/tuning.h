// Chooses the features and the learner of a training by labeled rows: kernel, length scales, policy
// and number of landmarks, and learner, by successive halving.
//
//  1. Kernels of several families and widths are tried on few rows and landmarks
//     (core/learn/kernel_trials.h). The best go on to more rows and landmarks, with widths between.
//  2. The best families get length scales that are learned (core/learn/learned_scales.h), and
//     compete with those that have none.
//  3. The best kernel is built as a version builds it: with policies, and with more and more
//     landmarks until they no longer help or there is no time for more.
//  4. Learners with a hinge or a logistic loss are tried for classes, if nobody asked for a
//  learner.
//     They keep the features of all rows in memory, so a training of more than kTuningRows rows
//     keeps ridge.
//
// Everything is chosen by the rows of the part validate. The order of trials, and what each gives,
// depend on the rows and the seed alone; the time decides how many there are.
#ifndef PHIMAP_CORE_TRAIN_TUNING_H_
#define PHIMAP_CORE_TRAIN_TUNING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/head/report.h"
#include "core/learn/learner.h"
#include "core/learn/learner_spec.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/spec/build_spec.h"

namespace phimap {

inline constexpr absl::Duration kLeastTuningBudget = absl::Seconds(1);
inline constexpr absl::Duration kLargestTuningBudget = absl::Hours(24);

struct TuningOptions {
  // Time for the trials and for the version that is built in the end, of kLeastTuningBudget to
  // kLargestTuningBudget. Trials stop early enough for the version; what has begun is not cut short
  // but for learners.
  absl::Duration budget = absl::Minutes(10);
  // No version with more is tried.
  int64_t max_landmarks = 4096;
  // Whether the learner of the training is kept as it is.
  bool keep_learner = false;

  std::string ToText() const;
};

// Rows that trials learn from at most. Their bytes, and those of the largest trial, are
// TuningBytes.
inline constexpr int64_t kTuningRows = 20'000;

// A spec whose mapping and kernel tuning replaces.
BuildSpec SpecToTune();

struct TunedSpec {
  BuildSpec spec;
  LearnerSpec learner;
  std::vector<TuningTrial> trials;
};

// Returns the largest memory of Tune for rows of `columns` numbers, in bytes.
double TuningBytes(const TuningOptions& options, int64_t columns, double classes);

// Chooses. `base` gives the seed, the names of the columns and the serving type; its mapping and
// kernel are replaced. `train` and `validate` have raw rows. `all_rows` is the number of rows of
// which `train` is a sample. Trials run on as many threads as the monitor allows.
//
// Errors: INVALID_ARGUMENT (ROWS_TOO_FEW) for fewer than kLeastTuningRows rows to learn from or to
//         choose by; FAILED_PRECONDITION (GAMMA_UNDEFINED) if all columns are constant; those of
//         the monitor, whose phase is "tune".
absl::StatusOr<TunedSpec> Tune(const BuildSpec& base, const LearnerSpec& learner,
                               const TrainingSet& train, const TrainingSet& validate,
                               int64_t all_rows, const TuningOptions& options,
                               BuildMonitor& monitor);
inline constexpr int64_t kLeastTuningRows = 20;

// Returns the kernel of `spec` with length scales that are learned from `train`, and chosen by
// `validate` among them and none; gamma is a number. The rows are raw.
// Errors: those of ResolvedKernel and LearnScales.
absl::StatusOr<KernelExpression> KernelWithLearnedScales(const BuildSpec& spec,
                                                         const TrainingSet& train,
                                                         const TrainingSet& validate,
                                                         Checkpoint checkpoint);

}  // namespace phimap

#endif  // PHIMAP_CORE_TRAIN_TUNING_H_
