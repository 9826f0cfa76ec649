#include "core/drift/drift_monitor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/linalg/matrix.h"

namespace phimap {
namespace {

bool AreFinite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

ScoredRow ScoreRow(const DriftReference& reference, const ExamplesView& row,
                   const RowsView& features, const Residual* residual) {
  ScoredRow scored;
  if (!reference.low.empty()) {
    scored.numbers.resize(reference.low.size());
    row.CopyRow(0, scored.numbers.data());
  }
  scored.features.resize(static_cast<size_t>(features.columns));
  features.CopyRow(0, scored.features.data());
  scored.scores.resize(static_cast<size_t>(reference.scores.count()));
  ComputeScores(reference.scores, row, features, residual,
                MatrixView<double>(scored.scores.data(), 1, reference.scores.count()));
  scored.is_finite =
      AreFinite(scored.numbers) && AreFinite(scored.features) && AreFinite(scored.scores);
  return scored;
}

DriftMonitor::DriftMonitor(std::shared_ptr<const DriftReference> reference,
                           const SequentialTestSpec& spec)
    : reference_(std::move(reference)), restart_rows_(spec.restart_rows), test_(*reference_, spec) {
  now_.features.resize(reference_->mean.size());
  now_.beyond.resize(reference_->low.size());
  earlier_ = now_;
}

void DriftMonitor::Restart() {
  std::swap(now_, earlier_);
  now_.rows = 0;
  std::fill(now_.features.begin(), now_.features.end(), 0.0);
  std::fill(now_.beyond.begin(), now_.beyond.end(), 0u);
}

void DriftMonitor::Add(const ScoredRow& row) {
  if (!row.is_finite) {
    ++rows_not_finite_;
    return;
  }
  if (now_.rows == restart_rows_) Restart();
  test_.Add(row.scores.data());
  ++now_.rows;
  for (size_t j = 0; j < row.features.size(); ++j) now_.features[j] += row.features[j];
  for (size_t j = 0; j < row.numbers.size(); ++j) {
    const double x = row.numbers[j];
    now_.beyond[j] += x < reference_->low[j] || x > reference_->high[j] ? 1 : 0;
  }
}

std::optional<ShiftSize> DriftMonitor::size() const {
  const auto rows = static_cast<double>(counted_rows());
  if (counted_rows() < kMinReferenceRows) return std::nullopt;
  double square = 0;
  for (size_t j = 0; j < reference_->mean.size(); ++j) {
    const double apart = (now_.features[j] + earlier_.features[j]) / rows - reference_->mean[j];
    square += apart * apart;
  }
  const double expected =
      reference_->scatter * (1 / rows + 1 / static_cast<double>(reference_->rows));
  return ShiftSize{.squared_mmd = std::max(0.0, square - expected),
                   .scale = std::sqrt(reference_->scatter)};
}

std::vector<ColumnBeyond> DriftMonitor::beyond(int64_t count) const {
  std::vector<std::pair<int64_t, int64_t>> columns;
  for (size_t j = 0; j < now_.beyond.size(); ++j) {
    const int64_t rows = int64_t{now_.beyond[j]} + earlier_.beyond[j];
    if (rows > 0) columns.emplace_back(-rows, static_cast<int64_t>(j));
  }
  const auto kept = std::min<int64_t>(count, columns.size());
  std::partial_sort(columns.begin(), columns.begin() + kept, columns.end());
  std::vector<ColumnBeyond> worst;
  for (int64_t i = 0; i < kept; ++i) {
    const auto& [rows, column] = columns[static_cast<size_t>(i)];
    worst.push_back({column, static_cast<double>(-rows) / static_cast<double>(counted_rows())});
  }
  return worst;
}

double DriftMonitor::share_beyond() const {
  double sum = 0;
  for (size_t j = 0; j < now_.beyond.size(); ++j) sum += now_.beyond[j] + earlier_.beyond[j];
  const double numbers =
      static_cast<double>(counted_rows()) * static_cast<double>(now_.beyond.size());
  return numbers > 0 ? sum / numbers : 0;
}

double DriftMonitor::expected_beyond() const {
  return reference_->low.empty() ? 0 : 2 / (static_cast<double>(reference_->stream_rows) + 1);
}

int64_t DriftMonitor::memory_bytes() const {
  return static_cast<int64_t>(sizeof(*this)) + test_.memory_bytes() +
         2 * static_cast<int64_t>(now_.features.size() * sizeof(double) +
                                  now_.beyond.size() * sizeof(uint32_t));
}

}  // namespace phimap
