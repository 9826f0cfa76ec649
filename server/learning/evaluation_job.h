// One evaluation, independent of RPCs: takes labeled rows and returns the learner's result.
#ifndef PHIMAP_SERVER_LEARNING_EVALUATION_JOB_H_
#define PHIMAP_SERVER_LEARNING_EVALUATION_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/learn/evaluation.h"
#include "core/learn/evaluation_rows.h"
#include "core/learn/label_index.h"
#include "core/learn/learner_spec.h"
#include "core/plan/examples.h"
#include "server/admission/memory_budget.h"
#include "server/registry/version_handle.h"
#include "server/store/store.h"

namespace phimap {

struct EvaluationSpec {
  LearnerSpec learner;
  EvaluationOptions options;
};

struct EvaluationOutcome {
  Evaluation evaluation;
  // Names of the classes, indexed by their numbers in the evaluation.
  std::vector<std::string> classes;
};

// Extends the field of a learner's error to its path in a request: "spec.C" for a parameter,
// "spec.learner" for the text as a whole.
absl::Status InLearner(const absl::Status& status);

// Checks that the learner can be created. Always OK for a learner on the kernel itself, which needs
// a version to be checked.
absl::Status CheckLearner(const LearnerSpec& learner);

// Checks that the learner can be evaluated on rows of this version. Errors name fields of the spec:
// FAILED_PRECONDITION (KERNEL_NOT_AVAILABLE) for a learner on the kernel itself if the version's
// kernel is remote or compares strings.
absl::Status CheckVersion(const LearnerSpec& learner, const VersionHandle& version);

// The size of a problem of learning.
struct LearningSize {
  int64_t rows = 0;
  // Number of columns of the rows that the learner takes.
  int64_t columns = 0;
  // Number of features that the learner itself computes from a row; 0 if it computes none.
  int64_t features = 0;
  int64_t classes = 0;
};

// Returns an upper bound of the bytes that learning takes in addition to the rows, from the
// formulas in the learners' headers. Saturates at the maximum of int64_t.
int64_t LearningBytes(const LearnerSpec& learner, const LearningSize& size);

// Reserves memory before it allocates. The memory is given back when the job fails or is destroyed.
// Not thread-safe: Add and Run must be called one at a time, on threads that may block for long.
class EvaluationJob {
 public:
  // `memory` must outlive the job. REQUIRES: the spec is valid.
  EvaluationJob(VersionHandle version, EvaluationSpec spec, MemoryBudget& memory);

  const VersionHandle& version() const { return version_; }
  const EvaluationSpec& spec() const { return spec_; }
  int64_t rows() const { return rows_.rows(); }

  // Adds rows with their labels, in the form that the version's engine takes: for a kernel service,
  // the service's values. Errors name fields of LabeledExamples ("examples.dense.rows[3]",
  // "labels"), and metadata "stream_row" counts rows from the start of the stream:
  // INVALID_ARGUMENT, OUT_OF_RANGE, RESOURCE_EXHAUSTED (BUILD_MEMORY_FULL; returned early, as soon
  // as the rows so far and the learner's memory for them can never fit). After an error the job is
  // unusable and holds no memory. REQUIRES: `label(i)` returns the label of row i.
  absl::Status Add(const ExamplesView& rows, absl::FunctionRef<absl::string_view(int64_t)> label,
                   EvaluationRows::Checkpoint checkpoint);

  // Learns from the rows. Must be called once, after all rows were added. Errors name fields of the
  // request: errors of Evaluate, errors of the store (a learner on the kernel needs the artifact),
  // and RESOURCE_EXHAUSTED (BUILD_MEMORY_FULL, MACHINE_MEMORY_FULL). The job holds no rows
  // afterwards. Calls BLAS.
  absl::StatusOr<EvaluationOutcome> Run(Store& store, EvaluationMonitor monitor);

 private:
  absl::Status TakeRows(const ExamplesView& rows,
                        absl::FunctionRef<absl::string_view(int64_t)> label,
                        EvaluationRows::Checkpoint checkpoint);
  absl::StatusOr<EvaluationOutcome> Learn(Store& store, EvaluationMonitor monitor);
  // Returns the bytes that `rows` rows and their labels take.
  int64_t KeptBytes(int64_t rows) const;
  // Returns the bytes that learning from `rows` rows takes in addition, with the classes seen so
  // far. The estimate never shrinks.
  int64_t LearningNeeds(int64_t rows) const;
  // Frees everything that the job holds, and its reservation.
  void Drop();

  const VersionHandle version_;
  const EvaluationSpec spec_;
  MemoryBudget& memory_;
  // Declared before the members whose memory it reserves.
  MemoryBudget::Reservation reserved_;
  EvaluationRows rows_;
  LabelIndex labels_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_LEARNING_EVALUATION_JOB_H_
