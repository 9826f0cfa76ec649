#include "core/head/conformal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/status/check.h"

namespace phimap {
namespace {

// Sets and calibration must agree on the last bit: a class that is as probable as that of the row
// at the threshold belongs to the set.
double Nonconformity(double probability) { return 1 - probability; }

std::optional<double> ThresholdOf(const std::vector<double>& rising, double confidence) {
  const auto rows = static_cast<int64_t>(rising.size());
  const int64_t rank = ConformalRank(rows, confidence);
  if (rank > rows) return std::nullopt;
  return rising[static_cast<size_t>(rank - 1)];
}

}  // namespace

CalibrationScores ScoresOfClasses(ConstMatrixView<double> probabilities,
                                  absl::Span<const int32_t> labels) {
  PHIMAP_CHECK(static_cast<int64_t>(labels.size()) == probabilities.rows());
  std::vector<std::pair<double, int32_t>> rows;
  rows.reserve(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    PHIMAP_CHECK(labels[i] >= 0 && labels[i] < probabilities.cols());
    rows.emplace_back(Nonconformity(probabilities(static_cast<int64_t>(i), labels[i])), labels[i]);
  }
  std::sort(rows.begin(), rows.end());
  CalibrationScores calibration;
  for (const auto& [score, label] : rows) {
    // A probability that rounding left over 1 conforms as well as one of 1.
    calibration.scores.push_back(std::max(score, 0.0));
    calibration.classes.push_back(label);
  }
  return calibration;
}

CalibrationScores ScoresOfNumbers(absl::Span<const double> predicted,
                                  absl::Span<const double> targets) {
  PHIMAP_CHECK(predicted.size() == targets.size());
  CalibrationScores calibration;
  calibration.scores.reserve(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    calibration.scores.push_back(std::abs(targets[i] - predicted[i]));
  }
  std::sort(calibration.scores.begin(), calibration.scores.end());
  return calibration;
}

int64_t ConformalRank(int64_t rows, double confidence) {
  PHIMAP_CHECK(rows >= 0 && confidence > 0 && confidence < 1);
  // The relative rounding of confidence and product is under 2^-51.
  const double place = static_cast<double>(rows + 1) * confidence;
  return static_cast<int64_t>(std::ceil(place * (1 - 0x1p-50)));
}

ConformalPredictor::ConformalPredictor(CalibrationScores calibration, int32_t class_count)
    : scores_(std::move(calibration.scores)), by_class_(static_cast<size_t>(class_count)) {
  PHIMAP_CHECK(std::is_sorted(scores_.begin(), scores_.end()));
  PHIMAP_CHECK(calibration.classes.size() == (class_count == 0 ? 0 : scores_.size()));
  for (size_t i = 0; i < calibration.classes.size(); ++i) {
    by_class_.at(static_cast<size_t>(calibration.classes[i])).push_back(scores_[i]);
  }
  class_conditional_ =
      class_count > 0 && std::all_of(by_class_.begin(), by_class_.end(), [](const auto& scores) {
        return static_cast<int64_t>(scores.size()) >= kClassConditionalRows;
      });
  if (!class_conditional_) {
    for (std::vector<double>& scores : by_class_) std::vector<double>().swap(scores);
  }
}

std::optional<double> ConformalPredictor::Threshold(double confidence) const {
  return ThresholdOf(scores_, confidence);
}

std::vector<double> ConformalPredictor::ClassThresholds(double confidence) const {
  std::vector<double> thresholds;
  thresholds.reserve(by_class_.size());
  for (const std::vector<double>& own : by_class_) {
    thresholds.push_back(ThresholdOf(class_conditional_ ? own : scores_, confidence)
                             .value_or(std::numeric_limits<double>::infinity()));
  }
  return thresholds;
}

void ConformalSet(absl::Span<const double> probabilities, absl::Span<const double> thresholds,
                  std::vector<int32_t>& set) {
  PHIMAP_CHECK(probabilities.size() == thresholds.size());
  for (size_t j = 0; j < probabilities.size(); ++j) {
    if (Nonconformity(probabilities[j]) <= thresholds[j]) set.push_back(static_cast<int32_t>(j));
  }
}

}  // namespace phimap
