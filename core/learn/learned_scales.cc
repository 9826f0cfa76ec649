#include "core/learn/learned_scales.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/kernel/call_syntax.h"
#include "core/learn/kernel_trials.h"
#include "core/learn/learner_type.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

extern const LearnerType kRidgeType;

namespace {

constexpr absl::string_view kScales = "scales";
constexpr absl::string_view kColumns = "columns";

// A leaf with scales, times a number.
struct ScaledKernel {
  const KernelNode* leaf = nullptr;
  double factor = 1;
  // 1/s_k of each column.
  std::vector<double> inverse_scales;
};

absl::StatusOr<ScaledKernel> ScaledKernelOf(const KernelExpression& kernel, int64_t columns) {
  PHIMAP_RETURN_IF_ERROR(kernel.CheckColumns(columns));
  PHIMAP_RETURN_IF_ERROR(CheckLearnsScales(kernel));
  ScaledKernel scaled;
  scaled.leaf = kernel.ScaledLeaf(&scaled.factor);
  if (kernel.NeedsScale() || kernel.NeedsMedian()) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kGammaUnresolved, "kernel",
                     absl::StrCat("expected a number for every gamma, got ", kernel.ToText()));
  }
  scaled.inverse_scales.assign(static_cast<size_t>(columns), 1.0);
  if (!scaled.leaf->values.Has(kScales)) return scaled;
  const std::vector<double>& scales = scaled.leaf->values.Numbers(kScales);
  for (size_t k = 0; k < scales.size(); ++k) scaled.inverse_scales[k] = 1 / scales[k];
  return scaled;
}

// A length of four significant digits, so that the text of a kernel with many scales stays short.
double Rounded(double length) {
  double rounded = 0;
  PHIMAP_CHECK(absl::SimpleAtod(absl::StrFormat("%.4g", length), &rounded));
  return rounded;
}

// Returns the kernel with scales whose 1/s_k² are in proportion to `shares`, which have the mean 1,
// and have the mean of the kernel's own, with all lengths then multiplied by `width`.
absl::StatusOr<KernelExpression> WithScales(const ScaledKernel& kernel,
                                            const std::vector<double>& shares, double width) {
  const std::vector<double>& inverse = kernel.inverse_scales;
  const double mean = std::inner_product(inverse.begin(), inverse.end(), inverse.begin(), 0.0) /
                      static_cast<double>(inverse.size());
  std::vector<double> scales;
  for (const double share : shares) scales.push_back(Rounded(width / std::sqrt(mean * share)));
  auto node = std::make_shared<KernelNode>(*kernel.leaf);
  node->values.SetNumbers(kScales, std::move(scales));
  std::shared_ptr<const KernelNode> root = std::move(node);
  if (kernel.factor != 1) {
    root = std::make_shared<const KernelNode>(
        KernelNode{.kind = KernelNode::Kind::kScaled, .factor = kernel.factor, .children = {root}});
  }
  KernelExpression expression(std::move(root));
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(expression.ToText()));
  return expression;
}

std::vector<double> SharesOf(std::vector<double> diagonal) {
  const double mean =
      std::accumulate(diagonal.begin(), diagonal.end(), 0.0) / static_cast<double>(diagonal.size());
  // A constant answer has no gradient, and says nothing of the columns.
  for (double& value : diagonal) {
    value = mean > 0 ? std::max(kLeastScaleShare, value / mean) : 1;
  }
  return diagonal;
}

// Factors by which the lengths of a round's scales are multiplied.
constexpr double kWidths[] = {1, 0.5, 2};

}  // namespace

absl::Status CheckLearnsScales(const KernelExpression& kernel) {
  double factor = 1;
  const KernelNode* const leaf = kernel.ScaledLeaf(&factor);
  if (leaf != nullptr && leaf->leaf->distance_form != nullptr && !leaf->values.Has(kColumns)) {
    return absl::OkStatus();
  }
  std::vector<absl::string_view> names;
  for (const LeafKernel* each : LeafKernels()) {
    if (each->distance_form != nullptr) names.push_back(each->name);
  }
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kKernelNotApplicable, "kernel",
                   absl::StrCat("scales are learned for ", Alternatives(names),
                                " of all columns, or a number times it, got ", kernel.ToText()));
}

absl::StatusOr<std::vector<double>> AverageSquaredGradient(const KernelExpression& kernel,
                                                           ConstMatrixView<double> landmarks,
                                                           ConstMatrixView<double> v,
                                                           ConstMatrixView<double> rows,
                                                           Checkpoint checkpoint) {
  const int64_t m = landmarks.rows();
  const int64_t p = landmarks.cols();
  const int64_t outputs = v.cols();
  PHIMAP_CHECK(v.rows() == m && rows.cols() == p);
  PHIMAP_ASSIGN_OR_RETURN(const ScaledKernel scaled, ScaledKernelOf(kernel, p));
  const DistanceForm& form = *scaled.leaf->leaf->distance_form;
  const bool squared = form.distance == DistanceForm::Distance::kSquared;
  std::vector<double> sums(static_cast<size_t>(p));
  // ∂D/∂x_k to each landmark, the slopes times v, and the gradients of a row.
  Matrix<double> differences = Matrix<double>::Uninit(m, p);
  Matrix<double> weighted = Matrix<double>::Uninit(outputs, m);
  Matrix<double> gradients = Matrix<double>::Uninit(outputs, p);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    PHIMAP_RETURN_IF_ERROR(checkpoint(static_cast<double>(r) / static_cast<double>(rows.rows())));
    for (int64_t i = 0; i < m; ++i) {
      double distance = 0;
      for (int64_t k = 0; k < p; ++k) {
        const double inverse = scaled.inverse_scales[k];
        const double difference = (rows(r, k) - landmarks(i, k)) * inverse;
        distance += squared ? difference * difference : std::abs(difference);
        const double sign = difference > 0 ? 1 : difference < 0 ? -1 : 0;
        differences(i, k) = inverse * (squared ? 2 * difference : sign);
      }
      const double slope = scaled.factor * form.slope(scaled.leaf->values, distance);
      for (int64_t j = 0; j < outputs; ++j) weighted(j, i) = slope * v(i, j);
    }
    Multiply(1, weighted.view(), differences.view(), 0, gradients.view());
    for (int64_t j = 0; j < outputs; ++j) {
      for (int64_t k = 0; k < p; ++k) sums[k] += gradients(j, k) * gradients(j, k);
    }
  }
  for (double& sum : sums) sum /= static_cast<double>(rows.rows() * outputs);
  return sums;
}

absl::StatusOr<LearnedScales> LearnScales(const KernelExpression& kernel, const TrainingSet& train,
                                          const TrainingSet& validate,
                                          const ScaleLearningOptions& options,
                                          Checkpoint checkpoint) {
  PHIMAP_RETURN_IF_ERROR(train.Validate(kRidgeType));
  PHIMAP_RETURN_IF_ERROR(validate.Validate(kRidgeType));
  const int64_t columns = train.rows.cols();
  PHIMAP_RETURN_IF_ERROR(ScaledKernelOf(kernel, columns).status());
  const KernelTrials trials(train, validate,
                            {.landmarks = options.landmarks, .seed = options.seed});
  const Matrix<double> gradient_rows = trials.TrainingRows(options.gradient_rows);
  const auto widths = static_cast<double>(std::size(kWidths));
  const double all = 1 + options.rounds * widths;
  LearnedScales learned;
  KernelTrials::Fit best;
  // Tries a kernel, and keeps it if it is the best of the round.
  const auto attempt = [&](const KernelExpression& candidate, std::optional<size_t>& of_round) {
    const auto part = [&](double share) {
      return checkpoint((static_cast<double>(learned.trials.size()) + share) / all);
    };
    absl::StatusOr<KernelTrials::Fit> fit = trials.Try(candidate, part);
    if (!fit.ok()) return fit.status();
    learned.trials.push_back({candidate, fit->error});
    if (of_round.has_value() && !(fit->error < learned.trials[*of_round].error)) {
      return absl::OkStatus();
    }
    of_round = learned.trials.size() - 1;
    best = *std::move(fit);
    return absl::OkStatus();
  };
  std::optional<size_t> first;
  PHIMAP_RETURN_IF_ERROR(attempt(kernel, first));
  size_t before = *first;
  for (int round = 0; round < options.rounds; ++round) {
    const KernelExpression of_before = learned.trials[before].kernel;
    PHIMAP_ASSIGN_OR_RETURN(const ScaledKernel scaled, ScaledKernelOf(of_before, columns));
    const double done = static_cast<double>(learned.trials.size()) / all;
    PHIMAP_ASSIGN_OR_RETURN(
        std::vector<double> diagonal,
        AverageSquaredGradient(of_before, best.landmarks.view(), best.v.view(),
                               gradient_rows.view(), [&](double) { return checkpoint(done); }));
    const std::vector<double> shares = SharesOf(std::move(diagonal));
    std::optional<size_t> of_round;
    for (const double width : kWidths) {
      PHIMAP_ASSIGN_OR_RETURN(const KernelExpression candidate, WithScales(scaled, shares, width));
      PHIMAP_RETURN_IF_ERROR(attempt(candidate, of_round));
    }
    before = *of_round;
  }
  learned.best = std::min_element(learned.trials.begin(), learned.trials.end(),
                                  [](const auto& a, const auto& b) { return a.error < b.error; }) -
                 learned.trials.begin();
  return learned;
}

}  // namespace phimap
