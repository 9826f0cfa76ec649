// One evaluation without its client: labeled rows in, the learner's result out.
#ifndef PHIMAP_SERVER_EVALUATE_EVALUATION_JOB_H_
#define PHIMAP_SERVER_EVALUATE_EVALUATION_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/learn/evaluation.h"
#include "core/learn/learner_spec.h"
#include "core/plan/examples.h"
#include "server/evaluate/evaluation_rows.h"
#include "server/evaluate/label_index.h"
#include "server/memory/memory_budget.h"
#include "server/registry/version_handle.h"
#include "server/store/store.h"

namespace phimap {

struct EvaluationSpec {
  LearnerSpec learner;
  EvaluationOptions options;
};

struct EvaluationOutcome {
  Evaluation evaluation;
  // Indexed by the classes' numbers in the evaluation.
  std::vector<std::string> classes;
};

// The learner of a version's rows. Errors: UNIMPLEMENTED for one that this server does not have.
// For a learner on the kernel itself only that much is checked.
absl::Status CheckLearner(const LearnerSpec& learner);

// Whether the learner can be evaluated on rows of this version. Errors name fields of the spec:
// FAILED_PRECONDITION (KERNEL_NOT_AVAILABLE: a learner on the kernel itself, for a version with a
// remote or a string kernel).
absl::Status CheckVersion(const LearnerSpec& learner, const VersionHandle& version);

// Memory is reserved before it is taken, and given back when the job has failed, or with it. Not
// thread-safe: Add and Run are called one at a time, on threads that may work for long.
class EvaluationJob {
 public:
  // `memory` outlives the job. REQUIRES: the spec is valid.
  EvaluationJob(VersionHandle version, EvaluationSpec spec, MemoryBudget& memory);

  const VersionHandle& version() const { return version_; }
  const EvaluationSpec& spec() const { return spec_; }
  int64_t rows() const { return rows_.rows(); }

  // Takes rows with their labels, as the version's engine sees them: for a kernel service, its
  // values. Errors name fields of LabeledExamples ("examples.dense.rows[3]", "labels"), and
  // metadata "stream_row" counts all rows: INVALID_ARGUMENT, OUT_OF_RANGE, RESOURCE_EXHAUSTED
  // (BUILD_MEMORY_FULL; at once, when the rows so far and the learner's memory for them can never
  // fit). After an error the job is of no use, and holds nothing. REQUIRES: `labels` yields one
  // text for each row.
  absl::Status Add(const ExamplesView& rows, absl::FunctionRef<absl::string_view(int64_t)> label,
                   EvaluationRows::Checkpoint checkpoint);

  // Trains and tests; call once, after all rows. Errors name fields of the request: those of
  // Evaluate, of the store (a learner on the kernel needs the artifact), RESOURCE_EXHAUSTED
  // (BUILD_MEMORY_FULL, MACHINE_MEMORY_FULL). After an error the job holds nothing. Calls BLAS.
  absl::StatusOr<EvaluationOutcome> Run(Store& store, EvaluationMonitor monitor);

 private:
  absl::Status TakeRows(const ExamplesView& rows,
                        absl::FunctionRef<absl::string_view(int64_t)> label,
                        EvaluationRows::Checkpoint checkpoint);
  absl::StatusOr<EvaluationOutcome> Learn(Store& store, EvaluationMonitor monitor);
  // Bytes that so many rows and their labels take.
  int64_t KeptBytes(int64_t rows) const;
  // Bytes that learning from so many rows takes in addition, as far as known: the estimate only
  // grows.
  int64_t LearningNeeds(int64_t rows) const;
  // Frees all that the job holds, and its share of the budget.
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

#endif  // PHIMAP_SERVER_EVALUATE_EVALUATION_JOB_H_
