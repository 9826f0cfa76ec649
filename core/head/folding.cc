#include "core/head/folding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/head/head_program.h"
#include "core/linalg/panel_product.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// γ of a chain of n terms.
double ChainError(int64_t n, double unit) {
  const int64_t roundings = std::min(n, kChainBlock) + (n + kChainBlock - 1) / kChainBlock + 1;
  const double share = static_cast<double>(roundings) * unit;
  return share / (1 - share);
}

// Returns (1 + a)(1 + b) − 1 without cancellation.
double Compound(double a, double b) { return a + b + a * b; }

// |W||V|, row after row of W. Sums of numbers of at least 0 have a relative error of γ(d, v), which
// the caller adds.
template <typename T>
struct Magnitudes {
  const Matrix<double>& v;

  void Add(int64_t k, int64_t j, T w, Matrix<double>& sums) const {
    const double factor = std::abs(static_cast<double>(w));
    for (int64_t s = 0; s < v.cols(); ++s) sums(k, s) += factor * std::abs(v(j, s));
  }
  Matrix<double> operator()(const NoProjection&) const {
    Matrix<double> sums = v.Clone();
    for (int64_t i = 0; i < sums.size(); ++i) sums.data()[i] = std::abs(sums.data()[i]);
    return sums;
  }
  Matrix<double> operator()(const TriangularProjection<T>& w) const {
    Matrix<double> sums(w.order, v.cols());
    const T* element = w.elements.data();
    for (int64_t k = 0; k < w.order; ++k) {
      for (int64_t j = k; j < w.order; ++j) Add(k, j, *element++, sums);
    }
    return sums;
  }
  Matrix<double> operator()(const DenseProjection<T>& w) const {
    Matrix<double> sums(w.matrix.rows(), v.cols());
    for (int64_t k = 0; k < w.matrix.rows(); ++k) {
      for (int64_t j = 0; j < w.matrix.cols(); ++j) Add(k, j, w.matrix(k, j), sums);
    }
    return sums;
  }
  Matrix<double> operator()(const SparseProjection<T>& w) const {
    Matrix<double> sums(w.rows, v.cols());
    for (int64_t k = 0; k < w.rows; ++k) {
      for (int64_t i = w.row_offsets[k]; i < w.row_offsets[k + 1]; ++i) {
        Add(k, w.column_indices[i], w.values[i], sums);
      }
    }
    return sums;
  }
};

// Loads the engine of the plan's stages before W: its features are z − μ.
absl::StatusOr<std::unique_ptr<const Engine>> LoadWithoutW(Plan& plan) {
  return std::visit(
      [&](auto& stages) {
        auto w = std::exchange(stages.projection, NoProjection{});
        auto engine = Engine::Load(plan);
        stages.projection = std::move(w);
        return engine;
      },
      plan.stages);
}

// Computes z − μ of the rows in float64.
absl::Status ComputeCentred(const Engine& engine, const ExamplesView& rows, Matrix<double>& q,
                            EngineScratch& scratch) {
  q = Matrix<double>::Uninit(rows.rows(), engine.output_columns());
  Matrix<float> narrow;
  TransformPart part{.rows = rows, .features = q.data(), .status = absl::OkStatus()};
  if (engine.serving_type() == FloatType::kFloat32) {
    narrow = Matrix<float>::Uninit(q.rows(), q.cols());
    part.features = narrow.data();
  }
  engine.Transform(absl::MakeSpan(&part, 1), scratch);
  if (!narrow.empty()) std::copy_n(narrow.data(), narrow.size(), q.data());
  return part.status;
}

double DeviationOf(const std::vector<double>& numbers) {
  double mean = 0;
  double squares = 0;
  double count = 0;
  for (const double number : numbers) {  // Welford 1962
    const double before = number - mean;
    mean += before / ++count;
    squares += before * (number - mean);
  }
  return std::sqrt(squares / count);
}

// Compares block after block of rows.
class FoldingComparison {
 public:
  FoldingComparison(const HeadProgram& folded, const HeadProgram& unfolded, const Engine& stage,
                    const FoldingBound& bound, HeadTask task)
      : folded_(folded), unfolded_(unfolded), stage_(stage), bound_(bound), task_(task) {}

  // `first` is the number of the block's first row.
  absl::Status Add(const ExamplesView& rows, int64_t first) {
    const int64_t scores = folded_.scores();
    Matrix<double> expected = Matrix<double>::Uninit(rows.rows(), scores);
    Matrix<double> actual = Matrix<double>::Uninit(rows.rows(), scores);
    ScorePart part{.rows = rows, .scores = expected.data(), .status = absl::OkStatus()};
    unfolded_.Scores(absl::MakeSpan(&part, 1), scratch_);
    PHIMAP_RETURN_IF_ERROR(WithRowOffset(part.status, first));
    // A row that overflows here has scores that are not finite, and counts as changed.
    part.scores = actual.data();
    folded_.Scores(absl::MakeSpan(&part, 1), scratch_);
    PHIMAP_RETURN_IF_ERROR(WithRowOffset(ComputeCentred(stage_, rows, centred_, scratch_), first));
    std::vector<double> bounds(static_cast<size_t>(scores));
    for (int64_t i = 0; i < rows.rows(); ++i) {
      bound_.Compute(centred_.row(i), bounds.data());
      AddRow(expected.row(i), actual.row(i), bounds);
    }
    result_.rows += rows.rows();
    return absl::OkStatus();
  }

  FoldingMeasurement Result() && {
    if (task_ == HeadTask::kNumbers) {
      const double most = kMostChangedAnswers * DeviationOf(numbers_);
      result_.changed += std::count_if(differences_.begin(), differences_.end(),
                                       [most](double d) { return d > most; });
    }
    return result_;
  }

 private:
  void AddRow(const double* expected, const double* actual, const std::vector<double>& bounds) {
    const auto scores = static_cast<int64_t>(bounds.size());
    result_.largest_bound =
        std::max(result_.largest_bound, *std::max_element(bounds.begin(), bounds.end()));
    if (!AllFinite(actual, scores)) {
      ++result_.changed;
      return;
    }
    double largest = 0;
    for (int64_t j = 0; j < scores; ++j) {
      largest = std::max(largest, std::abs(actual[j] - expected[j]));
    }
    result_.largest_difference = std::max(result_.largest_difference, largest);
    if (task_ == HeadTask::kNumbers) {
      numbers_.push_back(expected[0]);
      differences_.push_back(largest);
    } else if (ClassOf({expected, bounds.size()}) != ClassOf({actual, bounds.size()})) {
      ++result_.changed;
    }
  }

  const HeadProgram& folded_;
  const HeadProgram& unfolded_;
  const Engine& stage_;
  const FoldingBound& bound_;
  const HeadTask task_;
  EngineScratch scratch_;
  Matrix<double> centred_;
  // For numbers: those of the unfolded program, and what the folded ones differ by.
  std::vector<double> numbers_;
  std::vector<double> differences_;
  FoldingMeasurement result_;
};

constexpr int64_t kComparedRows = 64;

}  // namespace

FoldingBound::FoldingBound(const Plan& plan, const Head& head) : intercepts_(head.intercepts) {
  const auto fill = [&](const auto& stages) {
    using T = typename std::decay_t<decltype(stages)>::Element;
    constexpr double kUnit = std::numeric_limits<T>::epsilon() / 2;
    constexpr double kWide = std::numeric_limits<double>::epsilon() / 2;
    const int64_t m = stages.feature_count();
    const int64_t d = head.weights.rows();
    magnitudes_ = std::visit(Magnitudes<T>{head.weights}, stages.projection);
    const bool projects = !std::holds_alternative<NoProjection>(stages.projection);
    const double features = projects ? ChainError(m, kUnit) : 0;
    const double product = projects ? ChainError(d, kWide) : 0;
    const double unfolded = Compound(features, ChainError(d, kWide));
    const double folded = Compound(Compound(ChainError(m, kUnit), kUnit), product);
    // B itself is computed with an error, of sums of d and of m terms and some more operations.
    const double sums = 2 * kWide * static_cast<double>(m + d + 8);
    relative_ = (unfolded + folded) * (1 + sums);
    addition_ = 2 * kWide * (1 + folded) * (1 + sums);
    constexpr double kSmallest = std::numeric_limits<T>::denorm_min();
    constexpr double kSmallestWide = std::numeric_limits<double>::denorm_min();
    underflow_of_q_ = kSmallest + kSmallestWide * static_cast<double>(d);
    for (int64_t s = 0; s < head.scores(); ++s) {
      double norm = 0;
      for (int64_t j = 0; j < d; ++j) norm += std::abs(head.weights(j, s));
      underflow_.push_back(kSmallest * static_cast<double>(m) * (norm + 1) +
                           kSmallestWide * static_cast<double>(d));
    }
  };
  std::visit(fill, plan.stages);
}

void FoldingBound::Compute(const double* q, double* bounds) const {
  double norm = 0;
  std::fill_n(bounds, scores(), 0.0);
  for (int64_t k = 0; k < features(); ++k) {
    const double factor = std::abs(q[k]);
    norm += factor;
    for (int64_t s = 0; s < scores(); ++s) bounds[s] += factor * magnitudes_(k, s);
  }
  constexpr double kWide = std::numeric_limits<double>::epsilon();
  for (int64_t s = 0; s < scores(); ++s) {
    bounds[s] = (relative_ + addition_) * bounds[s] + kWide * std::abs(intercepts_[s]) +
                underflow_[s] + underflow_of_q_ * norm;
  }
}

absl::StatusOr<FoldingMeasurement> MeasureFolding(Plan plan, std::shared_ptr<const Engine> features,
                                                  const Head& head, const ExamplesView& rows) {
  PHIMAP_RETURN_IF_ERROR(features->CheckTakes(rows));
  PHIMAP_RETURN_IF_ERROR(head.Validate(plan.output_columns()));
  const FoldingBound bound(plan, head);
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Engine> stage, LoadWithoutW(plan));
  const absl::StatusOr<HeadProgram> folded = HeadProgram::Folded(std::move(plan), head);
  if (absl::IsFailedPrecondition(folded.status()) || absl::IsResourceExhausted(folded.status())) {
    return FoldingMeasurement();
  }
  PHIMAP_RETURN_IF_ERROR(folded.status());
  PHIMAP_ASSIGN_OR_RETURN(const HeadProgram unfolded,
                          HeadProgram::Unfolded(std::move(features), head));
  FoldingComparison comparison(*folded, unfolded, *stage, bound, head.task);
  for (int64_t first = 0; first < rows.rows(); first += kComparedRows) {
    const int64_t count = std::min(kComparedRows, rows.rows() - first);
    PHIMAP_RETURN_IF_ERROR(comparison.Add(rows.Slice(first, count), first));
  }
  return std::move(comparison).Result();
}

}  // namespace phimap
