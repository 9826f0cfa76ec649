// The program that computes the scores of rows from a version's plan and head, s = F(x)·V + b.
//
// There are two ways to execute it. z are the features of the plan's feature stage, and T is the
// serving type.
//
//     folded     s = fl((z − μ)·M + b)   M = fl_T(W·V)
//     unfolded   s = fl(F(x)·V + b)      F(x) = (z − μ)·W, as served
//
// Folded, the engine runs the plan with M in place of W. M has as many columns as a row has scores,
// so a row of F2 at d landmarks with c classes takes d·c multiplications in place of d²/2. The
// product W·V is computed in float64 and rounded once to T. A plan without W has V itself for W·V.
// Unfolded, the features of the plan's engine are multiplied with V in float64. b is added in
// float64 and rounded once in both ways.
//
// Every product, W·V too, is a chain of arithmetic 1 (panel_product.h), so the bits of a row's
// scores depend only on plan, head and row. The two ways differ in rounding; folding.h bounds and
// measures the difference.
#ifndef PHIMAP_CORE_HEAD_HEAD_PROGRAM_H_
#define PHIMAP_CORE_HEAD_HEAD_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/engine/engine.h"
#include "core/head/head.h"
#include "core/linalg/panel_product.h"
#include "core/plan/examples.h"
#include "core/plan/plan.h"

namespace phimap {

// Returns the plan with M in place of W; it computes the scores without b.
// Errors: those of Head::Validate; RESOURCE_EXHAUSTED (PROJECTION_TOO_LARGE) if M takes over 1 GiB
//         in float64; FAILED_PRECONDITION (VALUE_NOT_REPRESENTABLE) if M overflows T. Throws
//         std::bad_alloc.
// Cost:   2·m·d·c flops for W of m rows and d columns and c scores; for a sparse W 2·c for each
//         element. One thread.
absl::StatusOr<Plan> FoldPlan(Plan plan, const Head& head);

// One request's share of a batch.
struct ScorePart {
  // REQUIRES: CheckTakes of the program's engine and CheckExamples are OK.
  ExamplesView rows;
  // Output: rows.rows() × scores() numbers. Must not alias anything.
  double* scores = nullptr;
  // Output: OK, or OUT_OF_RANGE (VALUE_NOT_REPRESENTABLE, field rows[i]) if the kernel values,
  // features or scores of a row overflow. Other parts are not affected.
  absl::Status status;
};

// Immutable. Any number of threads may use it, each with its own scratch.
class HeadProgram {
 public:
  // Makes the folded program. Errors: those of FoldPlan and EngineLoader::Load.
  static absl::StatusOr<HeadProgram> Folded(Plan plan, const Head& head);
  // Makes the unfolded program on the engine of the features, which other users may share. Errors:
  // those of Head::Validate.
  static absl::StatusOr<HeadProgram> Unfolded(std::shared_ptr<const Engine> features,
                                              const Head& head);

  // Computes the scores of every row of every part. Allocates only to grow `scratch`.
  void Scores(absl::Span<ScorePart> parts, EngineScratch& scratch) const;
  // Computes the scores of `rows` rows from their features, row after row in the serving type; the
  // bits are those of Scores. A row that overflows has a score that is not finite. REQUIRES: not
  // folded(); `scores` has room for rows × scores() numbers.
  void ScoresOfFeatures(const void* features, int64_t rows, double* scores,
                        EngineScratch& scratch) const;

  // Computes the scores of `rows` rows from what engine() computed of them, row after row in the
  // serving type. Otherwise as ScoresOfFeatures.
  void ScoresOfComputed(const void* computed, int64_t rows, double* scores,
                        EngineScratch& scratch) const;

  // The engine that takes the rows: of the folded plan, or of the features.
  const Engine& engine() const { return *engine_; }
  const std::shared_ptr<const Engine>& shared_engine() const { return engine_; }
  bool folded() const { return weights_.columns() == 0; }
  int64_t scores() const { return static_cast<int64_t>(intercepts_.size()); }
  // Bytes that the program holds. An engine of features that it was given is not counted.
  int64_t memory_bytes() const;
  // Multiplications of one dense row, and of a block, as those of an Engine.
  int64_t multiplications_per_row() const;
  double Multiplications(const ExamplesView& rows) const;

 private:
  HeadProgram(std::shared_ptr<const Engine> engine, std::vector<double> intercepts,
              PanelMatrix<double> weights);

  template <typename T>
  void ScoresWhenFolded(absl::Span<ScorePart> parts, EngineScratch& scratch) const;
  template <typename T>
  void ScoresByFeatures(absl::Span<ScorePart> parts, EngineScratch& scratch) const;
  template <typename T>
  void MultiplyFeatures(const T* features, int64_t rows, double* const* scores,
                        EngineScratch& scratch) const;
  void AddIntercepts(double* row) const;

  std::shared_ptr<const Engine> engine_;
  std::vector<double> intercepts_;
  // V, if the program is not folded.
  PanelMatrix<double> weights_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_HEAD_HEAD_PROGRAM_H_
