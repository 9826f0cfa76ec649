#include "lab/experiments/bbv_literal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/learn/evaluation.h"
#include "core/learn/margin.h"
#include "core/mapping/spec/mapping_spec.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"
#include "core/theory/landmark_bounds.h"
#include "lab/learning.h"

namespace phimap::lab {
namespace {

constexpr double kDeviation = 0.2;
constexpr int64_t kSeedsOfRow = 10'000;
// Values of C for the separators whose margins are measured. A large C gives few errors, a small C
// large margins.
constexpr std::array<const char*, 5> kWeights = {"0.01", "0.1", "1", "10", "1000"};

// Returns F(x)/√K(x, x).
absl::StatusOr<Examples> UnitFeatures(const BuiltMap& map, const Examples& examples,
                                      const std::string& kernel) {
  PHIMAP_ASSIGN_OR_RETURN(Examples features, Mapped(map, examples));
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> squares,
                          SelfKernel(kernel, examples.rows.view()));
  for (int64_t i = 0; i < features.rows.rows(); ++i) {
    for (int64_t k = 0; k < features.rows.cols(); ++k) {
      features.rows(i, k) /= std::sqrt(squares[i]);
    }
  }
  return features;
}

BbvLiteral LiteralAt(const std::vector<std::vector<double>>& separators, double alpha) {
  BbvLiteral literal{.alpha = alpha, .margin = BestMargin(separators, alpha), .landmarks = {}};
  if (literal.margin >= 1e-4) {
    literal.landmarks = LiteralLandmarks(literal.margin, kBbvError, kBbvDelta);
  }
  return literal;
}

// Returns the margins of learnt separators and of the true separator on drawn points.
absl::StatusOr<std::vector<std::vector<double>>> MarginsOfSurface(const BbvSource& source,
                                                                  uint64_t seed) {
  const Examples drawn = source.Population(seed);
  PHIMAP_ASSIGN_OR_RETURN(
      const BuiltMap map,
      BuiltMap::Build({"polynomial(dimensions=6, serving_type=float64)", source.kernel},
                      drawn.rows.view().Rows(0, 100), seed));
  PHIMAP_ASSIGN_OR_RETURN(std::vector<std::vector<double>> separators,
                          LearntMargins(map, drawn, source.kernel));
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> w, BoundaryVector(map, *source.surface));
  PHIMAP_ASSIGN_OR_RETURN(const Examples features, Mapped(map, drawn));
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> squares,
                          SelfKernel(source.kernel, drawn.rows.view()));
  separators.push_back(RisingMargins(w, features, squares));
  return separators;
}

// Returns margins on real data. Every row is a landmark of F2, so F2(x) is as long as φ(x) on all
// rows.
absl::StatusOr<std::vector<std::vector<double>>> MarginsOfRows(const BbvSource& source,
                                                               uint64_t seed) {
  const ConstMatrixView<double> rows = source.examples.rows.view();
  PHIMAP_ASSIGN_OR_RETURN(
      const BuiltMap map,
      BuiltMap::Build(
          {absl::StrCat("f2(landmarks=", rows.rows(), ", serving_type=float64)"), source.kernel},
          rows, seed));
  return LearntMargins(map, source.examples, source.kernel);
}

}  // namespace

Examples BbvSource::Draw(int64_t count, uint64_t seed) const {
  if (is_drawn()) return DrawSurface(*surface, kDeviation, count, seed);
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  std::vector<int64_t> rows(static_cast<size_t>(count));
  for (int64_t& row : rows) {
    row = static_cast<int64_t>(random.UniformBelow(static_cast<uint64_t>(examples.rows.rows())));
  }
  return Subset(examples, rows);
}

Examples BbvSource::Population(uint64_t seed) const {
  return is_drawn() ? Draw(kBbvPopulation, seed) : Slice(examples, 0, examples.rows.rows());
}

Examples BbvSource::DrawRun(uint64_t seed) const {
  if (is_drawn()) return Draw(d1 + train_rows + kBbvSurfaceTestRows, seed);
  return Subset(examples, ShuffledNumbers(examples.rows.rows(), seed));
}

absl::StatusOr<std::vector<BbvSource>> BbvSources(const Options& options) {
  std::vector<BbvSource> sources;
  for (const BbvSurface& surface : BbvSurfaces()) {
    const auto row = static_cast<int64_t>(sources.size());
    sources.push_back({.name = absl::StrCat(row + 1, ": ", surface.name),
                       .kernel = kBbvPolynomial,
                       .d1 = kBbvSurfaceLandmarks,
                       .train_rows = kBbvSurfaceTrainRows,
                       .first_seed = 200'000 + row * kSeedsOfRow,
                       .surface = &surface,
                       .examples = {}});
  }
  for (const BbvDataSet& data : BbvDataSets()) {
    PHIMAP_ASSIGN_OR_RETURN(Examples examples, ReadBbvDataSet(options.data_dir, data));
    const auto row = static_cast<int64_t>(sources.size());
    sources.push_back({.name = data.name,
                       .kernel = data.kernel,
                       .d1 = data.landmarks,
                       .train_rows = data.train_rows,
                       .first_seed = 200'000 + row * kSeedsOfRow,
                       .examples = std::move(examples)});
  }
  return sources;
}

absl::StatusOr<std::vector<std::vector<double>>> LearntMargins(const BuiltMap& map,
                                                               const Examples& examples,
                                                               const std::string& kernel) {
  PHIMAP_ASSIGN_OR_RETURN(const Examples unit, UnitFeatures(map, examples, kernel));
  const std::vector<double> ones(unit.labels.size(), 1);
  std::vector<std::vector<double>> margins;
  for (const char* weight : kWeights) {
    PHIMAP_ASSIGN_OR_RETURN(
        const std::unique_ptr<const Model> model,
        Trained(absl::StrCat("linear_svm(C=", weight, ", tolerance=0.001, bias=0)"), unit, 0));
    const Matrix<double>& weights = model->linear()->weights;
    std::vector<double> w(static_cast<size_t>(weights.cols()));
    for (int64_t k = 0; k < weights.cols(); ++k) w[k] = (weights(1, k) - weights(0, k)) / 2;
    margins.push_back(RisingMargins(w, unit, ones));
  }
  return margins;
}

double BestMargin(const std::vector<std::vector<double>>& separators, double alpha) {
  double best = -1;
  for (const std::vector<double>& margins : separators) {
    best = std::max(best, MarginOfRows(margins, alpha));
  }
  return best;
}

absl::StatusOr<BbvMeasured> MeasureBbvMargin(const BbvSource& source, uint64_t seed) {
  PHIMAP_ASSIGN_OR_RETURN(
      const std::vector<std::vector<double>> separators,
      source.is_drawn() ? MarginsOfSurface(source, seed) : MarginsOfRows(source, seed));
  double error = 0;
  if (!source.is_drawn()) {
    PHIMAP_ASSIGN_OR_RETURN(error, TestError("kernel_svm(C=10)", source.examples, source.examples,
                                             seed, source.kernel));
  }
  BbvMeasured measured{.own = LiteralAt(separators, error), .used = {}};
  std::vector<double> alphas = {error};
  for (const double alpha : kCertifiedAlphas) {
    if (alpha > error && alpha <= kBbvMostAlpha) alphas.push_back(alpha);
  }
  for (const double alpha : alphas) {
    const BbvLiteral literal = LiteralAt(separators, alpha);
    if (!literal.landmarks.has_value() || *literal.landmarks > kMaxLandmarks) continue;
    measured.used = literal;
    break;
  }
  return measured;
}

}  // namespace phimap::lab
