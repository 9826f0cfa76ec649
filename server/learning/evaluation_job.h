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
#include "core/learn/evaluation_run.h"
#include "core/learn/label_index.h"
#include "core/learn/learner_spec.h"
#include "core/plan/examples.h"
#include "server/admission/memory_budget.h"
#include "server/registry/version_handle.h"
#include "server/store/store.h"

namespace phimap {

// Checks that the learner can be evaluated on rows of this version. Errors name fields of the spec:
// FAILED_PRECONDITION (KERNEL_NOT_AVAILABLE) for a learner on the kernel itself if the version's
// kernel is remote or compares strings.
absl::Status CheckVersion(const LearnerSpec& learner, const VersionHandle& version);

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
