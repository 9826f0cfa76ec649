// The answers of a head: classes or numbers, and what may be asked for beside them. Loaded from a
// version's plan and head, for a server or any other process.
#ifndef PHIMAP_CORE_HEAD_HEAD_ANSWERS_H_
#define PHIMAP_CORE_HEAD_HEAD_ANSWERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/engine/engine.h"
#include "core/head/conformal.h"
#include "core/head/head.h"
#include "core/head/head_program.h"
#include "core/head/head_variance.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "core/plan/plan.h"
#include "core/plan/residual.h"

namespace phimap {

// What a caller wants besides labels or values.
struct WantedAnswers {
  bool scores = false;
  bool probabilities = false;
  // In (0, 1), for sets of classes or for intervals; 0 for none.
  double confidence = 0;
  bool deviations = false;
};

// The answers to n rows. Only what was wanted is there; the others are empty.
struct Answers {
  // For classes: the index of each row's class. For numbers: the value of each row.
  std::vector<int32_t> labels;
  std::vector<double> values;
  // n × scores and n × classes.
  Matrix<double> scores;
  Matrix<double> probabilities;
  // For classes: the sets one after another, and where each ends.
  std::vector<int32_t> set_classes;
  std::vector<int64_t> set_ends;
  // For numbers: half the width of every interval; infinite if there are too few calibration rows.
  double interval_half_width = 0;
  // For numbers: the standard deviation of an observation at each row.
  std::vector<double> deviations;
};

// Immutable. Any number of threads may use it, each with its own scratch.
class HeadAnswers {
 public:
  // Loads the program of the scores. With `features`, engine() computes features, and deviations
  // can be computed if head.variance is not empty. Errors: those of HeadProgram and of
  // Engine::Load. Throws std::bad_alloc.
  static absl::StatusOr<std::unique_ptr<const HeadAnswers>> Load(Plan plan, Head head,
                                                                 bool features);

  // The engine that takes the rows and whose results Compute reads: of the folded plan, or of the
  // features.
  const std::shared_ptr<const Engine>& engine() const { return engine_; }
  // Without weights and variance, which are packed.
  const Head& head() const { return head_; }
  // Bytes, without those of engine().
  int64_t memory_bytes() const;

  // Returns OK if the head has what is wanted. Errors name fields of PredictRequest:
  // INVALID_ARGUMENT (FIELD_OUT_OF_RANGE: a confidence that is not in (0, 1)), FAILED_PRECONDITION
  // (OUTPUT_NOT_AVAILABLE).
  absl::Status Check(const WantedAnswers& wanted) const;

  // Computes the answers. `computed` is what engine() computed from `rows`; a row that overflows
  // has a score that is not finite, and then OUT_OF_RANGE (VALUE_NOT_REPRESENTABLE, field rows[i])
  // is returned. `residual` is the version's, and may be null unless deviations are wanted. The
  // answers to a row do not depend on other rows. Throws std::bad_alloc. REQUIRES: Check is OK.
  absl::StatusOr<Answers> Compute(const WantedAnswers& wanted, const ExamplesView& rows,
                                  const void* computed, const Residual* residual,
                                  EngineScratch& scratch) const;

 private:
  HeadAnswers(Head head, HeadProgram program);

  void AddClasses(const WantedAnswers& wanted, ConstMatrixView<double> scores, Answers& out) const;

  Head head_;
  const HeadProgram program_;
  const ConformalPredictor conformal_;
  // Set if deviations can be computed.
  std::optional<VarianceFunction> variance_;
  std::shared_ptr<const Engine> engine_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_HEAD_HEAD_ANSWERS_H_
