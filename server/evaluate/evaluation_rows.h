// Rows of an evaluation, as its learner takes them, growing block by block.
#ifndef PHIMAP_SERVER_EVALUATE_EVALUATION_ROWS_H_
#define PHIMAP_SERVER_EVALUATE_EVALUATION_ROWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/engine/engine.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "server/registry/version_handle.h"

namespace phimap {

// Not thread-safe.
class EvaluationRows {
 public:
  // Called between two slices of rows: any status but OK ends the work, and is returned.
  using Checkpoint = absl::FunctionRef<absl::Status()>;

  // Keeps the rows as they come, or their features and, of F2, their lengths in the kernel's space.
  enum class Keep { kRows, kFeatures };
  EvaluationRows(VersionHandle version, Keep keep);

  // Numbers that are kept of a row.
  int64_t columns() const;
  // Bytes that it keeps of a row.
  int64_t row_bytes() const;
  int64_t rows() const { return rows_; }

  // Errors: INVALID_ARGUMENT (COLUMNS_MISMATCH: others than the first block had; CheckExamples) and
  // OUT_OF_RANGE (a row that cannot be represented), with rows counted within the block. REQUIRES:
  // the version takes them; rows of numbers, if rows are kept. Calls no BLAS.
  absl::Status Add(const ExamplesView& block, Checkpoint checkpoint);

  // Moves all rows out, as one matrix. No row is in memory twice, except for the rows of one block.
  Matrix<double> TakeRows();
  // Frees all rows and the data kept about them.
  void Drop();
  // K(x, x) of each row and the error of its features; both empty except for the features of F2,
  // and where kernel values came without K(x, x).
  std::vector<double> TakeSelfKernel() { return std::move(self_kernel_); }
  std::vector<double> TakeRounding() { return std::move(rounding_); }

 private:
  absl::Status Map(const ExamplesView& slice, MatrixView<double> out);

  const VersionHandle version_;
  const Keep keep_;
  int64_t rows_ = 0;
  // Columns of the first block.
  std::optional<int64_t> block_columns_;
  std::vector<Matrix<double>> blocks_;
  std::vector<double> self_kernel_;
  std::vector<double> rounding_;
  EngineScratch scratch_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_EVALUATE_EVALUATION_ROWS_H_
