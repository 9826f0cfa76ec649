#include "core/learn/test_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/learn/evaluation.h"
#include "core/random/portable_math.h"
#include "core/status/check.h"
#include "core/theory/binomial.h"
#include "core/theory/student.h"

namespace phimap {
namespace {

// The least probability that the log loss counts.
constexpr double kLeastProbability = 1e-15;
constexpr double kLargestNumber = std::numeric_limits<double>::max();

absl::Span<const double> RowOf(ConstMatrixView<double> matrix, int64_t i) {
  return {matrix.row(i), static_cast<size_t>(matrix.cols())};
}

// As a head answers: one score is of class 1 if it is over 0, and of more the first of the highest
// counts.
int32_t AnswerOf(absl::Span<const double> scores) {
  if (scores.size() == 1) return scores[0] > 0 ? 1 : 0;
  return static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

void CountClasses(const ClassAnswers& answers, const std::vector<int32_t>& predicted,
                  double confidence, ClassFigures& out) {
  out.rows = static_cast<int64_t>(predicted.size());
  out.classes.resize(static_cast<size_t>(answers.class_count));
  std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const int32_t actual = answers.labels[i];
    PHIMAP_CHECK(actual >= 0 && actual < answers.class_count);
    ++out.classes[static_cast<size_t>(actual)].rows;
    ++out.classes[static_cast<size_t>(predicted[i])].predicted;
    if (actual == predicted[i]) {
      ++out.classes[static_cast<size_t>(actual)].correct;
    } else {
      ++out.errors;
    }
    ++pairs[{actual, predicted[i]}];
  }
  if (static_cast<int64_t>(pairs.size()) <= kMaxConfusions) {
    for (const auto& [pair, count] : pairs) {
      out.confusion.push_back({pair.first, pair.second, count});
    }
  }
  const ProbabilityInterval interval = BinomialInterval(out.errors, out.rows, confidence);
  out.error = {static_cast<double>(out.errors) / static_cast<double>(out.rows), interval.low,
               interval.high};
  double recalls = 0;
  double present = 0;
  for (const ClassFigures::Class& c : out.classes) {
    if (c.rows == 0) continue;
    recalls += static_cast<double>(c.correct) / static_cast<double>(c.rows);
    ++present;
  }
  out.balanced_accuracy = recalls / present;
}

// The ROC curve of two classes, from the highest score down, and the area under it. Rows of equal
// score are one step of the curve: half of its area is over the diagonal of the step.
void MeasureRoc(const ClassAnswers& answers, ClassFigures& out) {
  const int64_t negatives = out.classes[0].rows;
  const int64_t positives = out.classes[1].rows;
  if (negatives == 0 || positives == 0) return;
  std::vector<std::pair<double, int32_t>> rows;
  rows.reserve(answers.labels.size());
  for (size_t i = 0; i < answers.labels.size(); ++i) {
    // Equal scores of either sign of 0 are equal.
    rows.emplace_back(answers.scores(static_cast<int64_t>(i), 0) + 0.0, answers.labels[i]);
  }
  std::sort(rows.begin(), rows.end(), std::greater<>());
  std::vector<ClassFigures::RocPoint> curve;
  int64_t called[2] = {0, 0};
  // Twice the number of pairs of which class 1 has the higher score, ties counting half.
  double twice_pairs = 0;
  for (size_t begin = 0; begin < rows.size();) {
    int64_t step[2] = {0, 0};
    size_t end = begin;
    for (; end < rows.size() && rows[end].first == rows[begin].first; ++end) {
      ++step[rows[end].second];
    }
    twice_pairs += static_cast<double>(step[0]) * static_cast<double>(2 * called[1] + step[1]);
    called[0] += step[0];
    called[1] += step[1];
    curve.push_back({rows[begin].first,
                     static_cast<double>(called[0]) / static_cast<double>(negatives),
                     static_cast<double>(called[1]) / static_cast<double>(positives)});
    begin = end;
  }
  out.auc = twice_pairs / 2 / static_cast<double>(negatives) / static_cast<double>(positives);
  const auto points = static_cast<int64_t>(curve.size());
  const int64_t kept = std::min(points, kMaxRocPoints);
  for (int64_t k = 0; k < kept; ++k) {
    const int64_t point = kept == 1 ? 0 : k * (points - 1) / (kept - 1);
    out.roc.push_back(curve[static_cast<size_t>(point)]);
  }
}

void MeasureProbabilities(const ClassAnswers& answers, const std::vector<int32_t>& predicted,
                          ClassFigures& out) {
  PHIMAP_CHECK(answers.probabilities.rows() == answers.scores.rows() &&
               answers.probabilities.cols() == answers.class_count);
  const auto n = static_cast<double>(predicted.size());
  std::vector<ClassFigures::ReliabilityBin> bins(kReliabilityBins);
  double log_loss = 0;
  double brier = 0;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const auto row = RowOf(answers.probabilities, static_cast<int64_t>(i));
    const int32_t actual = answers.labels[i];
    log_loss -= Log(std::max(row[static_cast<size_t>(actual)], kLeastProbability)) / n;
    for (size_t j = 0; j < row.size(); ++j) {
      const double miss = row[j] - (static_cast<int32_t>(j) == actual ? 1 : 0);
      brier += miss * miss / n;
    }
    const double confidence = row[static_cast<size_t>(predicted[i])];
    const auto bin =
        std::clamp(static_cast<int32_t>(confidence * kReliabilityBins), 0, kReliabilityBins - 1);
    ClassFigures::ReliabilityBin& into = bins[static_cast<size_t>(bin)];
    ++into.rows;
    into.correct += predicted[i] == actual;
    into.mean_confidence += confidence;
  }
  double calibration_error = 0;
  for (int32_t b = 0; b < kReliabilityBins; ++b) {
    ClassFigures::ReliabilityBin& bin = bins[static_cast<size_t>(b)];
    if (bin.rows == 0) continue;
    bin.bin = b;
    calibration_error += std::abs(static_cast<double>(bin.correct) - bin.mean_confidence) / n;
    bin.mean_confidence /= static_cast<double>(bin.rows);
    out.reliability.push_back(bin);
  }
  out.log_loss = log_loss;
  out.brier = answers.class_count == 2 ? brier / 2 : brier;
  out.calibration_error = calibration_error;
}

std::vector<double> Rising(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

void MeasureMargins(const ClassAnswers& answers, double confidence, ClassFigures& out) {
  const Separators& separators = *answers.separators;
  PHIMAP_CHECK(answers.squared_lengths.size() == answers.labels.size());
  PHIMAP_CHECK(answers.self_kernel.size() == answers.rounding.size());
  std::vector<double> margins, unnormalised, kernel;
  for (size_t i = 0; i < answers.labels.size(); ++i) {
    const auto scores = RowOf(answers.scores, static_cast<int64_t>(i));
    const int32_t label = answers.labels[i];
    margins.push_back(NormalisedMargin(separators, scores, answers.squared_lengths[i], label));
    unnormalised.push_back(UnnormalisedMargin(separators, scores, label));
    if (answers.self_kernel.empty()) continue;
    kernel.push_back(
        CertainMargin(separators, scores, answers.self_kernel[i], answers.rounding[i], label));
  }
  if (!separators.intercepts.empty()) out.intercept_scale = separators.intercept_scale;
  out.margins = Percentiles(Rising(std::move(margins)));
  out.unnormalised_margins = Percentiles(Rising(std::move(unnormalised)));
  if (kernel.empty()) return;
  kernel = Rising(std::move(kernel));
  out.kernel_margins = Percentiles(kernel);
  const double doubt = (1 - confidence) / static_cast<double>(kCertifiedAlphas.size() - 1);
  for (const double alpha : kCertifiedAlphas) {
    out.certified.push_back(
        {alpha, MarginOfRows(kernel, alpha), MarginOfDistribution(kernel, alpha, doubt)});
  }
}

// A mean of numbers that are at least 0, and the deviations a_i/A − 1 of its terms. Numbers are
// divided by `unit`, so that no square overflows.
struct PositiveMean {
  explicit PositiveMean(std::vector<double> terms) : deviations(std::move(terms)) {
    for (const double a : deviations) mean += a / static_cast<double>(deviations.size());
    for (double& a : deviations) a = mean > 0 ? a / mean - 1 : 0;
  }
  double mean = 0;
  std::vector<double> deviations;
};

// The factor by which an end of the interval of test_figures.h differs from the estimate.
double IntervalFactor(const std::vector<double>& deviations, double confidence) {
  const auto n = static_cast<double>(deviations.size());
  if (n < 2) return std::numeric_limits<double>::infinity();
  double squares = 0;
  for (const double deviation : deviations) squares += deviation * deviation;
  const double spread = std::sqrt(Log1p(squares / n / (n - 1)));
  return Exp(StudentQuantile(NormalQuantile((1 + confidence) / 2), n - 1) * spread);
}

Estimate WithFactor(double value, double factor) {
  // With an infinite factor even an estimate of 0 has no upper end.
  const double high = std::isinf(factor) ? kLargestNumber : value * factor;
  return {value, value / factor, std::min(high, kLargestNumber)};
}

// Sets each number to its square over that of the largest, and returns the largest.
double ScaleAndSquare(std::vector<double>& numbers) {
  double largest = 0;
  for (const double number : numbers) largest = std::max(largest, std::abs(number));
  for (double& number : numbers) {
    number = largest > 0 ? (number / largest) * (number / largest) : 0;
  }
  return largest;
}

Coverage WithInterval(Coverage coverage, double confidence) {
  const ProbabilityInterval interval =
      BinomialInterval(coverage.covered, coverage.rows, confidence);
  coverage.low = interval.low;
  coverage.high = interval.high;
  return coverage;
}

}  // namespace

ClassFigures MeasureClasses(const ClassAnswers& answers, double confidence) {
  const int64_t n = answers.scores.rows();
  PHIMAP_CHECK(n >= 1 && static_cast<int64_t>(answers.labels.size()) == n);
  PHIMAP_CHECK(answers.scores.cols() == (answers.class_count == 2 ? 1 : answers.class_count));
  std::vector<int32_t> predicted;
  predicted.reserve(answers.labels.size());
  for (int64_t i = 0; i < n; ++i) predicted.push_back(AnswerOf(RowOf(answers.scores, i)));
  ClassFigures figures;
  CountClasses(answers, predicted, confidence, figures);
  if (answers.class_count == 2) MeasureRoc(answers, figures);
  if (answers.probabilities.rows() > 0) MeasureProbabilities(answers, predicted, figures);
  if (answers.separators != nullptr) MeasureMargins(answers, confidence, figures);
  return figures;
}

NumberFigures MeasureNumbers(const NumberAnswers& answers, double confidence) {
  const size_t n = answers.targets.size();
  PHIMAP_CHECK(n >= 1 && answers.predicted.size() == n);
  NumberFigures figures;
  figures.rows = static_cast<int64_t>(n);
  std::vector<double> residuals(n);
  std::vector<double> sizes(n);
  for (size_t i = 0; i < n; ++i) {
    residuals[i] =
        std::clamp(answers.targets[i] - answers.predicted[i], -kLargestNumber, kLargestNumber);
    sizes[i] = std::abs(residuals[i]);
  }
  const PositiveMean absolute(std::move(sizes));
  figures.mae = WithFactor(absolute.mean, IntervalFactor(absolute.deviations, confidence));

  std::vector<double> squares = residuals;
  const double largest = ScaleAndSquare(squares);
  const PositiveMean error(std::move(squares));
  figures.rmse = WithFactor(largest * std::sqrt(error.mean),
                            std::sqrt(IntervalFactor(error.deviations, confidence)));

  double mean = 0;
  for (const double target : answers.targets) mean += target / static_cast<double>(n);
  std::vector<double> spread(n);
  for (size_t i = 0; i < n; ++i) {
    spread[i] = std::clamp(answers.targets[i] - mean, -kLargestNumber, kLargestNumber);
  }
  const double widest = ScaleAndSquare(spread);
  const PositiveMean variance(std::move(spread));
  if (variance.mean > 0) {
    std::vector<double> deviations(n);
    for (size_t i = 0; i < n; ++i) {
      deviations[i] = (largest > 0 ? error.deviations[i] : 0) - variance.deviations[i];
    }
    const double ratio = largest / widest * (largest / widest) * (error.mean / variance.mean);
    const Estimate rest = WithFactor(ratio, IntervalFactor(deviations, confidence));
    figures.r_squared = {1 - rest.value, 1 - rest.high, 1 - rest.low};
  }

  if (!answers.deviations.empty()) {
    PHIMAP_CHECK(answers.deviations.size() == n);
    std::vector<double> standardised(n);
    for (size_t i = 0; i < n; ++i) standardised[i] = residuals[i] / answers.deviations[i];
    const double scale = ScaleAndSquare(standardised);
    figures.standardised_error = scale * std::sqrt(PositiveMean(std::move(standardised)).mean);
  }
  figures.residuals = Percentiles(Rising(std::move(residuals)));
  return figures;
}

std::vector<Coverage> MeasureSets(ConstMatrixView<double> probabilities,
                                  absl::Span<const int32_t> labels,
                                  const ConformalPredictor& predictor,
                                  absl::Span<const double> confidences, double confidence) {
  PHIMAP_CHECK(probabilities.rows() == static_cast<int64_t>(labels.size()) && !labels.empty());
  std::vector<Coverage> coverages;
  std::vector<int32_t> set;
  for (const double of_sets : confidences) {
    if (!predictor.Threshold(of_sets).has_value()) continue;
    const std::vector<double> thresholds = predictor.ClassThresholds(of_sets);
    Coverage coverage{.confidence = of_sets, .rows = probabilities.rows()};
    for (int64_t i = 0; i < probabilities.rows(); ++i) {
      set.clear();
      ConformalSet(RowOf(probabilities, i), thresholds, set);
      coverage.covered += std::binary_search(set.begin(), set.end(), labels[i]);
      coverage.mean_size += static_cast<double>(set.size()) / static_cast<double>(coverage.rows);
    }
    coverages.push_back(WithInterval(coverage, confidence));
  }
  return coverages;
}

std::vector<Coverage> MeasureIntervals(absl::Span<const double> predicted,
                                       absl::Span<const double> targets,
                                       const ConformalPredictor& predictor,
                                       absl::Span<const double> confidences, double confidence) {
  PHIMAP_CHECK(predicted.size() == targets.size() && !targets.empty());
  std::vector<Coverage> coverages;
  for (const double of_intervals : confidences) {
    const std::optional<double> threshold = predictor.Threshold(of_intervals);
    if (!threshold.has_value()) continue;
    Coverage coverage{.confidence = of_intervals,
                      .rows = static_cast<int64_t>(targets.size()),
                      .mean_size = std::min(2 * *threshold, kLargestNumber)};
    for (size_t i = 0; i < targets.size(); ++i) {
      coverage.covered += std::abs(targets[i] - predicted[i]) <= *threshold;
    }
    coverages.push_back(WithInterval(coverage, confidence));
  }
  return coverages;
}

}  // namespace phimap
