// Trains the head of a version: labeled rows in, the artifact of the version with its head out.
//
//   Training training(engine, residual, spec);
//   while (rows come) training.Add(block, checkpoint);
//   absl::StatusOr<BuiltVersion> built = training.Finish(artifact, monitor);
//
// Or labeled rows in, and an artifact out whose features are built from the same rows: those of the
// part train alone, which are spooled to disk until the features are known.
//
//   Training training(features, spool_space, spec);
//   …
//   absl::StatusOr<BuiltVersion> built = training.Finish("", monitor);
//
// Each row belongs to a part (core/learn/parts.h). Rows of the part train are mapped to features
// and learned from as they come; those of the other parts are kept. Finish then chooses what is to
// be chosen, decides whether the head is folded, fits the link, takes the scores of the rows that
// calibrate sets, and reports on the test rows. The same rows in the same order, spec and seed give
// the same bytes.
//
// Memory: the parts' limit (PartsOptions::max_bytes, twice), the rows of the raw baseline, and what
// the learner takes: d² numbers a part for ridge, and all rows for the others.
#ifndef PHIMAP_CORE_TRAIN_TRAINING_H_
#define PHIMAP_CORE_TRAIN_TRAINING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/engine/engine.h"
#include "core/head/head.h"
#include "core/learn/learner_spec.h"
#include "core/learn/parts.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/build/version_build.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "core/train/row_spool.h"
#include "core/train/tuning.h"

namespace phimap {

struct TrainingSpec {
  LearnerSpec learner;
  // nullopt: told by the labels of the first rows.
  std::optional<HeadTask> task;
  uint64_t seed = 0;

  // One line of text. Two specs have the same text exactly when they are equal.
  std::string ToText() const;
};

// Returns OK if the learner can train a head, and otherwise INVALID_ARGUMENT
// (LEARNER_NOT_APPLICABLE), with the names of those that can. If the task is given, the learner
// must be able to learn that.
absl::Status CheckTrainsHeads(const TrainingSpec& spec);

// Features that a training builds from its own rows.
struct FeaturesOrder {
  // With `tuning`, its mapping and kernel say nothing.
  BuildSpec spec;
  // Whether the kernel gets length scales that are learned (core/learn/learned_scales.h).
  bool learn_scales = false;
  std::optional<TuningOptions> tuning;

  // INVALID_ARGUMENT: KERNEL_NOT_APPLICABLE (field "kernel") for a kernel that a service computes
  // or, with learn_scales, one without scales; FIELD_OUT_OF_RANGE for the options of tuning.
  // REQUIRES: spec.Validate() is OK.
  absl::Status Validate() const;
  // One line of text. Two orders have the same text exactly when they are equal.
  std::string ToText() const;
};

// Rows and what is known of each. The lists have one entry per row, or none where they may lack.
// Views must stay valid during Add.
struct TrainingBlock {
  ExamplesView rows = RowsView{};
  // Empty only for a build without labels, which is no training.
  std::vector<absl::string_view> labels = {};
  absl::Span<const double> weights = {};
  std::vector<absl::string_view> groups = {};
  // Parts that rows come with; nullopt where the rule of parts decides.
  std::vector<std::optional<Part>> parts = {};
};

// Not thread-safe.
class Training {
 public:
  using Checkpoint = absl::FunctionRef<absl::Status()>;

  // `engine` and `residual`, which is null for mappings other than F2, are the version's and must
  // outlive the training. REQUIRES: CheckTrainsHeads(spec) is OK.
  Training(const Engine& engine, const Residual* residual, TrainingSpec spec);
  // Builds the features from the rows. `space` must outlive the training. REQUIRES: also
  // features.Validate() is OK.
  Training(FeaturesOrder features, SpoolSpace& space, TrainingSpec spec);
  ~Training();

  // Threads on which products of features are added up while rows come, 1 unless set. The result
  // does not depend on it.
  void UseThreads(int threads);
  // Rows added.
  int64_t rows() const;
  // An upper bound of the bytes that the training takes once `block` is added, Finish included.
  int64_t BytesWith(const TrainingBlock& block) const;

  // Adds rows. `checkpoint` is called between tiles. Fields of errors are paths from the root of a
  // TrainRequest ("examples.labels", "spec.task").
  // Errors: INVALID_ARGUMENT with the row within the block: the errors of CheckExamples, a label
  //         that is missing or, for numbers, no finite number (LABEL_INVALID), a weight that is not
  //         over 0 (FIELD_OUT_OF_RANGE), weights that the learner does not take; labels of which
  //         the task cannot be told (TASK_UNCLEAR). OUT_OF_RANGE for a row whose features overflow.
  //         RESOURCE_EXHAUSTED for weights of classes without memory. After an error the training
  //         is unusable.
  absl::Status Add(const TrainingBlock& block, Checkpoint checkpoint);

  // Trains the head and returns the artifact of the version with it. `artifact` are the bytes of
  // the version's artifact; a head that it has is replaced. A training that builds its features
  // takes none. Call once.
  // Errors: FAILED_PRECONDITION if there are no rows (STREAM_EMPTY); INVALID_ARGUMENT for too few
  //         rows (ROWS_TOO_FEW) or classes (CLASSES_TOO_FEW) and the errors of the learner; those
  //         of the monitor, whose phases are "learn", "calibrate" and "report"; before them, if
  //         features are built, "tune" or "scales" and those of BuildVersion, with its errors.
  absl::StatusOr<BuiltVersion> Finish(absl::string_view artifact, BuildMonitor& monitor);

 private:
  class Run;
  const std::unique_ptr<Run> run_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_TRAIN_TRAINING_H_
