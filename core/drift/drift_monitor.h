// Watches the rows that are served by one version for drift.
#ifndef PHIMAP_CORE_DRIFT_DRIFT_MONITOR_H_
#define PHIMAP_CORE_DRIFT_DRIFT_MONITOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/drift/drift_reference.h"
#include "core/drift/sequential_test.h"
#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "core/plan/rows.h"

namespace phimap {

// A served row with all that monitors need of it. The monitors of a version share it.
struct ScoredRow {
  // The numbers of the row; empty if the reference has no ranges.
  std::vector<double> numbers;
  std::vector<double> features;
  std::vector<double> scores;
  // Whether all of them are finite.
  bool is_finite = false;
};

// Scores one row. REQUIRES: as ComputeScores.
ScoredRow ScoreRow(const DriftReference& reference, const ExamplesView& row,
                   const RowsView& features, const Residual* residual);

// The size of a shift: the maximum mean discrepancy, the distance of the mean of F over served rows
// from its mean over held-out rows. It is a plain figure, not a test.
struct ShiftSize {
  // MMD² less its expectation without shift; 0 if that is negative.
  double squared_mmd = 0;
  // √tr Cov F: the distance of a held-out row's features from their mean, as a root mean square.
  double scale = 0;
};

// A column, and the share of the rows whose number in it is beyond the range of the stream that the
// version was built from.
struct ColumnBeyond {
  int64_t column = 0;
  double share = 0;
};

// The rows that are counted are those since the restart before last of the sequential test.
//
// Not thread-safe.
class DriftMonitor {
 public:
  DriftMonitor(std::shared_ptr<const DriftReference> reference, const SequentialTestSpec& spec);

  // Adds a row. A row that is not finite is counted, and changes nothing else.
  void Add(const ScoredRow& row);

  const DriftReference& reference() const { return *reference_; }
  const SequentialTest& test() const { return test_; }
  int64_t rows_not_finite() const { return rows_not_finite_; }
  // Number of rows that size() and beyond() describe.
  int64_t counted_rows() const { return now_.rows + earlier_.rows; }
  // nullopt until kMinReferenceRows rows are counted.
  std::optional<ShiftSize> size() const;
  // Returns at most `count` columns that have rows beyond their range, those with most such rows
  // first.
  std::vector<ColumnBeyond> beyond(int64_t count) const;
  // Share of all counted numbers that are beyond the range of their column.
  double share_beyond() const;
  // Expected share of rows beyond the range of a column without drift: at most 2/(n + 1), n the
  // rows of the stream.
  double expected_beyond() const;
  int64_t memory_bytes() const;

 private:
  // Sums over the rows since a restart.
  struct Sums {
    int64_t rows = 0;
    std::vector<double> features;
    std::vector<uint32_t> beyond;
  };

  void Restart();

  const std::shared_ptr<const DriftReference> reference_;
  const int64_t restart_rows_;
  SequentialTest test_;
  Sums now_;
  Sums earlier_;
  int64_t rows_not_finite_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_DRIFT_DRIFT_MONITOR_H_
