// An evaluation from labeled rows to its result: the rows as the learner takes them, and the kernel
// of the artifact if the learner compares rows by it.
#ifndef PHIMAP_CORE_LEARN_EVALUATION_RUN_H_
#define PHIMAP_CORE_LEARN_EVALUATION_RUN_H_

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

// Checks that the learner can be created. Always OK for a learner on the kernel itself, which needs
// an artifact to be checked.
absl::Status CheckLearner(const LearnerSpec& learner);
// Checks that a learner on the kernel itself can compute the kernel with this text;
// FAILED_PRECONDITION (KERNEL_NOT_AVAILABLE, field "learner") if it is remote or compares strings.
// `owner` names in the message what has the kernel.
absl::Status CheckHasKernelFor(const LearnerSpec& learner, absl::string_view kernel_text,
                               bool takes_strings, absl::string_view owner);
// What is to be kept of rows for the learner.
EvaluationRows::Keep KeepFor(const LearnerSpec& learner);

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

// Learns from the rows, which are kept as KeepFor says, and tests. `rows` and `labels` are empty
// afterwards. `artifact` returns the bytes of the artifact whose engine took the rows; it is asked
// only for a learner on the kernel itself. Calls BLAS.
// Errors: those of LabelIndex::CheckClasses, of `artifact`, of the learner and of Evaluate, with
//         fields "labels" and "folds".
absl::StatusOr<EvaluationOutcome> RunEvaluation(
    const EvaluationSpec& spec, EvaluationRows& rows, LabelIndex& labels,
    absl::FunctionRef<absl::StatusOr<std::string>()> artifact, EvaluationMonitor monitor);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_EVALUATION_RUN_H_
