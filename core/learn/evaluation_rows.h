// The rows of an evaluation in the form that its learner takes. They are added block by block.
#ifndef PHIMAP_CORE_LEARN_EVALUATION_ROWS_H_
#define PHIMAP_CORE_LEARN_EVALUATION_ROWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/engine/engine.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "core/plan/residual.h"

namespace phimap {

// Not thread-safe.
class EvaluationRows {
 public:
  // Called between slices of rows. A status other than OK ends the work and is returned.
  using Checkpoint = absl::FunctionRef<absl::Status()>;

  // kRows keeps the rows as they arrive. kFeatures keeps their features and, for F2, their lengths
  // in the kernel's space.
  enum class Keep { kRows, kFeatures };
  // `residual` is null for mappings other than F2. Both must outlive the rows.
  EvaluationRows(const Engine& engine, const Residual* residual, Keep keep);

  // Number of values kept per row.
  int64_t columns() const;
  // Number of bytes kept per row.
  int64_t row_bytes() const;
  int64_t rows() const { return rows_; }

  // Adds a block of rows. Errors count rows within the block: INVALID_ARGUMENT (COLUMNS_MISMATCH if
  // the first block had another number of columns, and the errors of CheckExamples) and
  // OUT_OF_RANGE (a row that cannot be represented). REQUIRES: the version takes these rows; with
  // kRows, they are rows of numbers. Does not call BLAS.
  absl::Status Add(const ExamplesView& block, Checkpoint checkpoint);

  // Returns all rows in one matrix, and keeps none. Only the rows of one block are in memory twice
  // at any time.
  Matrix<double> TakeRows();
  // Frees all rows and the data kept about them.
  void Drop();
  // Return K(x, x) of each row and the rounding error of its features. Both are empty unless
  // features of F2 are kept, and also if kernel values came without K(x, x).
  std::vector<double> TakeSelfKernel() { return std::move(self_kernel_); }
  std::vector<double> TakeRounding() { return std::move(rounding_); }

 private:
  absl::Status Map(const ExamplesView& slice, MatrixView<double> out);

  const Engine& engine_;
  const Residual* const residual_;
  const Keep keep_;
  int64_t rows_ = 0;
  // Number of columns of the first block.
  std::optional<int64_t> block_columns_;
  std::vector<Matrix<double>> blocks_;
  std::vector<double> self_kernel_;
  std::vector<double> rounding_;
  EngineScratch scratch_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_EVALUATION_ROWS_H_
