#include "core/certificate/measurement.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/pair_error.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_work.h"
#include "core/kernel/value_error.h"
#include "core/linalg/blas.h"
#include "core/plan/engine.h"
#include "core/plan/input_stage.h"
#include "core/plan/squared_norm.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kTileRows = 256;
// Of the kernel error, which takes as many pairs: a few hundred for each row tell the mean as well
// as all, and cost less than the features.
constexpr int64_t kPairRows = 128;

// Squared lengths of each held-out row's features, which several statements are made of.
struct FeatureLengths {
  FeatureLengths(const Matrix<double>& served_features, const Matrix<double>& reference_features) {
    const int64_t columns = served_features.cols();
    std::vector<double> apart(static_cast<size_t>(columns));
    for (int64_t i = 0; i < served_features.rows(); ++i) {
      const double* const f = served_features.row(i);
      const double* const exact = reference_features.row(i);
      for (int64_t j = 0; j < columns; ++j) apart[j] = f[j] - exact[j];
      served.push_back(SquaredNorm(f, columns));
      reference.push_back(SquaredNorm(exact, reference_features.cols()));
      difference.push_back(SquaredNorm(apart.data(), columns));
    }
  }
  int64_t rows() const { return static_cast<int64_t>(served.size()); }

  std::vector<double> served;
  std::vector<double> reference;
  // Of served less reference.
  std::vector<double> difference;
};

MeasuredError ServingError(const FeatureLengths& lengths) {
  MeasuredError error;
  error.count = lengths.rows();
  double sum = 0;
  for (int64_t i = 0; i < lengths.rows(); ++i) {
    const double norm = std::sqrt(lengths.difference[i]);
    sum += norm;
    error.max = std::max(error.max, norm);
    error.scale = std::max(error.scale, std::sqrt(lengths.reference[i]));
  }
  error.mean = sum / static_cast<double>(lengths.rows());
  return error;
}

double MeanSquaredNorm(const FeatureLengths& lengths) {
  double sum = 0;
  for (const double square : lengths.served) sum += square;
  return sum / static_cast<double>(lengths.rows());
}

struct KernelErrors {
  explicit KernelErrors(int64_t rows) : by_row(rows) {}

  MeasuredError error;
  // These errors, added up by row.
  RowErrors by_row;
  // Pairs whose error is over √(ρ(x)·ρ(y)).
  int64_t unbounded = 0;
  // |K(x, y) − F(x)·F(y)| of rows 0 and 1, 2 and 3 …: independent of each other.
  std::vector<double> disjoint;
};

int64_t TileCount(int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

// K of the rows of a tile of pairs, as it is.
Matrix<double> PlainPairValues(const MeasurementTask& task, const Matrix<double>& x,
                               const std::vector<double>& norms, const PairTile& pairs, int64_t t) {
  if (task.known != nullptr) return task.known->pairs[t].Clone();
  const auto [begin, end, first] = pairs;
  const std::vector<double> tile_norms(norms.begin() + begin, norms.begin() + end);
  const std::vector<double> other_norms(norms.begin() + first, norms.begin() + end);
  Matrix<double> tile = Matrix<double>::Uninit(end - begin, end - first);
  KernelBlock(*task.kernel, x.view().Rows(begin, end - begin), tile_norms,
              x.view().Rows(first, end - first), other_norms, tile.view());
  return tile;
}

// The kernel that the features stand for, of the rows of a tile of pairs.
Matrix<double> PairValues(const MeasurementTask& task, const Matrix<double>& x,
                          const std::vector<double>& norms, const PairTile& pairs, int64_t t) {
  Matrix<double> tile = PlainPairValues(task, x, norms, pairs, t);
  if (task.centre == nullptr) return tile;
  const std::vector<double>& means = task.centre->means;
  for (int64_t i = 0; i < tile.rows(); ++i) {
    const double row = task.centre->mean - means[pairs.begin + i];
    for (int64_t j = 0; j < tile.cols(); ++j) tile(i, j) += row - means[pairs.first + j];
  }
  return tile;
}

// Its largest value of a row with itself.
double ScaleOf(const MeasurementTask& task, const std::vector<double>& diagonal) {
  double scale = 0;
  for (size_t i = 0; i < diagonal.size(); ++i) {
    const double taken = task.centre != nullptr ? 2 * task.centre->means[i] - task.centre->mean : 0;
    scale = std::max(scale, std::abs(diagonal[i] - taken));
  }
  return scale;
}

// K(x, x) of each row.
std::vector<double> Diagonal(const MeasurementTask& task, const Matrix<double>& x,
                             const std::vector<double>& norms) {
  if (task.known != nullptr) return task.known->diagonal;
  return KernelDiagonal(*task.kernel, x.view(), norms);
}

// What a tile of pairs adds to KernelErrors.
struct TileErrors {
  double sum = 0;
  // This tile's part of the sums of rows first … end − 1.
  std::vector<double> row_sums;
  double max = 0;
  int64_t count = 0;
  int64_t unbounded = 0;
  std::vector<double> disjoint;
};

// `differences`: K(x, y) − F(x)·F(y) of the tile's rows with those from its first on.
TileErrors ErrorsOf(const PairTile& pairs, const Matrix<double>& differences,
                    const std::vector<double>& residuals) {
  const auto [begin, end, first] = pairs;
  TileErrors errors;
  errors.row_sums.resize(static_cast<size_t>(end - first));
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = first; j < i; ++j) {
      const double difference = std::abs(differences(i - begin, j - first));
      errors.sum += difference;
      errors.row_sums[i - first] += difference;
      errors.row_sums[j - first] += difference;
      errors.max = std::max(errors.max, difference);
      if (residuals.empty()) continue;
      if (difference > std::sqrt(residuals[i]) * std::sqrt(residuals[j])) ++errors.unbounded;
    }
    errors.count += i - first;
    if (i % 2 == 1) errors.disjoint.push_back(std::abs(differences(i - begin, i - 1 - first)));
  }
  return errors;
}

void AddTile(const PairTile& pairs, const TileErrors& tile, KernelErrors& errors) {
  const auto [begin, end, first] = pairs;
  for (int64_t i = first; i < end; ++i) {
    errors.by_row.sums[i] += tile.row_sums[i - first];
    // Those before it, if it is one of the tile's own rows, and those of the tile behind it.
    errors.by_row.counts[i] += (i >= begin ? i - first : 0) + end - std::max(begin, i + 1);
  }
  errors.error.max = std::max(errors.error.max, tile.max);
  errors.error.count += tile.count;
  errors.unbounded += tile.unbounded;
  errors.disjoint.insert(errors.disjoint.end(), tile.disjoint.begin(), tile.disjoint.end());
}

// |K(x, y) − F(x)·F(y)| over pairs of distinct rows: each with those before it in its own tile and
// in the tile before. The rows come in random order, so that these are a sample of all pairs, in
// which every row has a part. Each tile sums for itself and the tiles are added in order, so that
// the bits do not depend on who took which.
// `residuals`: ρ of each row, or empty.
absl::StatusOr<KernelErrors> KernelError(const MeasurementTask& task, const Matrix<double>& x,
                                         const Matrix<double>& features,
                                         const std::vector<double>& residuals,
                                         const TileControl& control) {
  const int64_t h = features.rows();
  const std::vector<double> norms = SquaredNorms(x.view());
  std::vector<TileErrors> tiles(static_cast<size_t>(PairTileCount(h)));
  const auto measure = [&](int64_t t) {
    const PairTile pairs = PairTileAt(h, t);
    const auto [begin, end, first] = pairs;
    Matrix<double> tile = PairValues(task, x, norms, pairs, t);
    MultiplyTransposed(-1, features.view().Rows(begin, end - begin),
                       features.view().Rows(first, end - first), 1, tile.view());
    tiles[t] = ErrorsOf(pairs, tile, residuals);
  };
  PHIMAP_RETURN_IF_ERROR(ForEachTile(control.threads(), PairTileCount(h), control, measure));
  KernelErrors errors(h);
  errors.error.scale = ScaleOf(task, Diagonal(task, x, norms));
  double sum = 0;
  for (int64_t t = 0; t < PairTileCount(h); ++t) {
    AddTile(PairTileAt(h, t), tiles[t], errors);
    sum += tiles[t].sum;
  }
  errors.error.mean = sum / static_cast<double>(errors.error.count);
  return errors;
}

// Held-out rows as an engine takes them: of strings, those whose places the rows say.
class HeldOutExamples {
 public:
  HeldOutExamples(ConstMatrixView<double> rows, const std::vector<std::string>* strings) {
    PHIMAP_CHECK(rows.stride() == rows.cols());
    if (strings == nullptr) {
      view_ = RowsView{.data = reinterpret_cast<const char*>(rows.data()),
                       .type = FloatType::kFloat64,
                       .rows = rows.rows(),
                       .columns = rows.cols()};
      return;
    }
    int64_t bytes = 0;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      named_.push_back(&(*strings)[static_cast<size_t>(rows(i, 0))]);
      bytes += static_cast<int64_t>(named_.back()->size());
    }
    // What is text may be taken for bytes, but not the other way round.
    view_ = StringsView{ExampleKind::kText, named_.data(), rows.rows(), bytes};
  }
  HeldOutExamples(const HeldOutExamples&) = delete;
  HeldOutExamples& operator=(const HeldOutExamples&) = delete;

  const ExamplesView& view() const { return view_; }

 private:
  std::vector<const std::string*> named_;
  ExamplesView view_;
};

// ρ of each row as it would be answered.
std::vector<double> ServedResiduals(const MeasurementTask& task, const Matrix<double>& served) {
  std::vector<double> residuals(static_cast<size_t>(served.rows()));
  const HeldOutExamples examples(task.rows, task.strings);
  const ExamplesView& rows = examples.view();
  if (task.served->serving_type() == FloatType::kFloat64) {
    task.residual->Compute(rows, served.data(), residuals.data());
    return residuals;
  }
  for (int64_t begin = 0; begin < rows.rows(); begin += kTileRows) {
    const int64_t count = std::min(kTileRows, rows.rows() - begin);
    const Matrix<float> features = Converted<float, double>(served.view().Rows(begin, count));
    task.residual->Compute(rows.Slice(begin, count), features.data(), residuals.data() + begin);
  }
  return residuals;
}

// ‖L⁻¹ k_r(x)‖² of each row: what of K(x, x) lies within the landmarks' span.
absl::StatusOr<std::vector<double>> ProjectedNorms(const MeasurementTask& task,
                                                   const Matrix<double>& x,
                                                   const std::vector<double>& norms,
                                                   const TileControl& control) {
  const int64_t h = task.rows.rows();
  const std::vector<double> pivot_norms = SquaredNorms(task.pivots);
  std::vector<double> projected(static_cast<size_t>(h));
  const auto measure = [&](int64_t t) {
    const int64_t begin = t * kTileRows;
    const int64_t count = std::min(kTileRows, h - begin);
    Matrix<double> block = Matrix<double>::Uninit(task.factor.rows(), count);
    if (task.known != nullptr) {
      for (int64_t k = 0; k < block.rows(); ++k) {
        for (int64_t j = 0; j < count; ++j) block(k, j) = task.rows(begin + j, k);
      }
    } else {
      const std::vector<double> tile_norms(norms.begin() + begin, norms.begin() + begin + count);
      KernelBlock(*task.kernel, task.pivots, pivot_norms, x.view().Rows(begin, count), tile_norms,
                  block.view());
    }
    SolveLowerTriangle(task.factor, block.view());
    for (int64_t k = 0; k < block.rows(); ++k) {
      for (int64_t j = 0; j < count; ++j) projected[begin + j] += block(k, j) * block(k, j);
    }
  };
  PHIMAP_RETURN_IF_ERROR(ForEachTile(control.threads(), TileCount(h), control, measure));
  return projected;
}

// Bounds the error of each row's K(x, x); 0 for values from elsewhere, of which nothing is known.
std::vector<double> DiagonalErrors(const MeasurementTask& task, const Matrix<double>& x,
                                   size_t count) {
  if (task.known != nullptr) return std::vector<double>(count, 0.0);
  return SelfErrors(*task.kernel, x.view());
}

// The least number that at least a share q of `sorted` is not over.
double QuantileOf(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

// Measures what of held-out rows lies outside of the landmarks' span, ρ(x) = K(x, x) − ‖L⁻¹
// k_r(x)‖²: Σ ρ(x)/Σ K(x, x), and the quantiles of ρ(x)/K(x, x).
//
// Of F2 a row's share is that of the features as they are served, whose length may also be too
// large: numbers too small for float32 vanish, and others are all rounding.
absl::Status MeasureResiduals(const MeasurementTask& task, const Matrix<double>& x,
                              const FeatureLengths& lengths, const TileControl& control,
                              Certificate& certificate) {
  const std::vector<double> norms = SquaredNorms(x.view());
  std::vector<double> projected = lengths.reference;
  if (!task.features_are_projection) {
    PHIMAP_ASSIGN_OR_RETURN(projected, ProjectedNorms(task, x, norms, control));
  }
  const std::vector<double> diagonal = Diagonal(task, x, norms);
  const std::vector<double> errors = DiagonalErrors(task, x, diagonal.size());
  double residual = 0;
  double trace = 0;
  std::vector<double> shares;
  std::vector<double> serving;
  for (int64_t i = 0; i < lengths.rows(); ++i) {
    // Round-off can leave a row inside of the span a little below 0.
    const double left = std::max(0.0, diagonal[i] - projected[i]);
    residual += left;
    trace += diagonal[i];
    if (!(diagonal[i] > kZeroRoundings * errors[i])) continue;
    const double share =
        task.features_are_projection ? std::abs(diagonal[i] - lengths.served[i]) / diagonal[i] : 0;
    shares.push_back(std::max(left / diagonal[i], share));
    serving.push_back(std::sqrt(lengths.difference[i]) / std::sqrt(diagonal[i]));
  }
  certificate.held_out_trace_residual = trace > 0 ? residual / trace : 0.0;
  ResidualShare share{.rows = static_cast<int64_t>(shares.size()),
                      .zero_rows = lengths.rows() - static_cast<int64_t>(shares.size())};
  std::sort(shares.begin(), shares.end());
  if (!shares.empty()) {
    share.median = QuantileOf(shares, 0.5);
    share.quantile_95 = QuantileOf(shares, 0.95);
    std::sort(serving.begin(), serving.end());
    certificate.serving_share = QuantileOf(serving, 0.95);
  }
  certificate.residual_share = share;
  return absl::OkStatus();
}

// Between two checkpoints: some milliseconds of a core.
constexpr int64_t kTileMultiplications = 64'000'000;

// Features of each row into `out`, which has the engine's columns and serving type. OUT_OF_RANGE
// as Engine, with the row of a tile; and whatever `control` returns.
template <typename Float>
absl::Status TransformTiles(const Engine& engine, const ExamplesView& rows, MatrixView<Float> out,
                            const TileControl& control) {
  const int64_t tile_rows = std::max<int64_t>(
      48, kTileMultiplications / std::max<int64_t>(1, engine.multiplications_per_row()));
  const int64_t tiles = (rows.rows() + tile_rows - 1) / tile_rows;
  std::vector<absl::Status> statuses(static_cast<size_t>(tiles));
  const auto transform = [&](int64_t t) {
    const int64_t first = t * tile_rows;
    TransformPart part{.rows = rows.Slice(first, std::min(tile_rows, rows.rows() - first)),
                       .features = &out(first, 0),
                       .status = absl::OkStatus()};
    EngineScratch scratch;
    engine.Transform(absl::MakeSpan(&part, 1), scratch);
    statuses[t] = part.status;
  };
  PHIMAP_RETURN_IF_ERROR(ForEachTile(control.threads(), tiles, control, transform));
  for (const absl::Status& status : statuses) PHIMAP_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Matrix<double>> FeaturesOf(const Plan& plan, ConstMatrixView<double> places,
                                          const TileControl& control,
                                          const std::vector<std::string>* strings) {
  const HeldOutExamples examples(places, strings);
  const ExamplesView& rows = examples.view();
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Engine> engine, Engine::Load(plan));
  if (engine->serving_type() == FloatType::kFloat64) {
    Matrix<double> features = Matrix<double>::Uninit(rows.rows(), engine->output_columns());
    PHIMAP_RETURN_IF_ERROR(TransformTiles(*engine, rows, features.view(), control));
    return features;
  }
  Matrix<float> features = Matrix<float>::Uninit(rows.rows(), engine->output_columns());
  PHIMAP_RETURN_IF_ERROR(TransformTiles(*engine, rows, features.view(), control));
  return Converted<double, float>(features.view());
}

int64_t PairTileCount(int64_t rows) { return (rows + kPairRows - 1) / kPairRows; }

PairTile PairTileAt(int64_t rows, int64_t t) {
  const int64_t begin = t * kPairRows;
  return {.begin = begin,
          .end = std::min(rows, begin + kPairRows),
          .first = std::max<int64_t>(0, begin - kPairRows)};
}

absl::Status MeasureHeldOut(const MeasurementTask& task, const TileControl& control,
                            Certificate& certificate) {
  if (task.rows.rows() < kMinHeldOutRows) {
    certificate.warnings.push_back(absl::StrCat("errors were not measured: ", task.rows.rows(),
                                                " held-out rows, at least ", kMinHeldOutRows,
                                                " are needed; stream more rows than landmarks"));
    return absl::OkStatus();
  }
  PHIMAP_RETURN_IF_ERROR(control(0));
  const ConstMatrixView<double> exact_rows =
      task.reference_rows.rows() > 0 ? task.reference_rows : task.rows;
  // Anything but OUT_OF_RANGE, which is a row's fault, came from a checkpoint.
  const auto stopped = [](const absl::Status& status) {
    return !status.ok() && status.code() != absl::StatusCode::kOutOfRange;
  };
  const absl::StatusOr<Matrix<double>> served =
      FeaturesOf(*task.served, task.rows,
                 {control.threads_ref(), [&](double f) { return control(0.1 * f); }}, task.strings);
  if (stopped(served.status())) return served.status();
  const absl::StatusOr<Matrix<double>> reference = FeaturesOf(
      *task.reference, exact_rows,
      {control.threads_ref(), [&](double f) { return control(0.1 + 0.1 * f); }}, task.strings);
  if (stopped(reference.status())) return reference.status();
  if (!served.ok() || !reference.ok()) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, "NOT_REPRESENTABLE", "spec.serving_type",
        absl::StrCat("features of the stream's own rows overflow ",
                     FloatTypeName(served.ok() ? FloatType::kFloat64 : task.served->serving_type()),
                     "; standardize the inputs or serve in float64"));
  }
  const FeatureLengths lengths(*served, *reference);
  certificate.serving_error = ServingError(lengths);
  certificate.mean_squared_norm = MeanSquaredNorm(lengths);
  if (!task.kernel.has_value() && task.known == nullptr) return absl::OkStatus();
  Matrix<double> x;
  if (task.strings != nullptr) {
    x = Converted<double, double>(task.rows);
  } else if (task.known == nullptr) {
    x = AfterInputStage(task.reference->input, exact_rows);
  }
  Matrix<double> seen;
  if (task.kernel_input != nullptr) seen = AfterInputStage(*task.kernel_input, task.rows);
  std::vector<double> residuals;
  if (task.residual != nullptr) residuals = ServedResiduals(task, *served);
  PHIMAP_ASSIGN_OR_RETURN(
      const KernelErrors errors,
      KernelError(task, seen.empty() ? x : seen, *served, residuals,
                  {control.threads_ref(), [&](double f) { return control(0.2 + 0.4 * f); }}));
  certificate.kernel_error = errors.error;
  certificate.kernel_error_interval = JackknifeInterval(errors.by_row);
  certificate.kernel_error_bound = BoundPairs(errors.disjoint);
  if (errors.unbounded > 0) {
    certificate.warnings.push_back(absl::StrCat(
        "residuals do not bound the kernel error of ", errors.unbounded, " of ", errors.error.count,
        " pairs of held-out rows: do not rely on them",
        task.served->serving_type() == FloatType::kFloat32 ? ", or serve in float64" : ""));
  }
  if (task.factor.rows() == 0) return absl::OkStatus();
  return MeasureResiduals(task, x, lengths,
                          {control.threads_ref(), [&](double f) { return control(0.6 + 0.4 * f); }},
                          certificate);
}

namespace {

// What the tiles of KernelError hold in all, for h rows.
double PairsOf(int64_t h) {
  double pairs = 0;
  for (int64_t t = 0; t < PairTileCount(h); ++t) {
    const auto [begin, end, first] = PairTileAt(h, t);
    pairs += static_cast<double>(end - begin) * static_cast<double>(end - first);
  }
  return pairs;
}

}  // namespace

Work WorkOfMeasurement(const MeasurementShape& shape) {
  if (shape.rows < kMinHeldOutRows) return {};
  const double h = static_cast<double>(shape.rows);
  const double columns = static_cast<double>(shape.columns);
  const double outputs = static_cast<double>(shape.output_columns);
  // Both plans; then their features are widened and compared, which for each takes as long as 2.5
  // values of an rbf.
  Work work{.product_flops = 2 * h * shape.row.product_flops,
            .elements = 2 * h * (shape.row.elements + 2.5 * outputs)};
  if (!shape.value.has_value()) return work;
  const ValueWork compared{shape.value->products, shape.value->elements + 1};
  // Each pair: a kernel value, a product of features, a comparison.
  const double pairs = PairsOf(shape.rows);
  work += WorkOfKernelBlock(1, pairs, columns, compared);
  work.product_flops += 2 * pairs * outputs;
  if (shape.centre_landmarks > 0) {
    const double landmarks = static_cast<double>(shape.centre_landmarks);
    work += WorkOfKernelBlock(h, landmarks, columns, *shape.value);
    if (shape.centre_gram) work += WorkOfKernelBlock(landmarks, landmarks, columns, *shape.value);
  }
  if (shape.rank == 0) return work;
  const double rank = static_cast<double>(shape.rank);
  work += WorkOfKernelBlock(rank, h, columns, compared);
  work.product_flops += rank * rank * h;
  return work;
}

int64_t BytesOfMeasurement(const MeasurementShape& shape, int threads) {
  if (shape.rows < kMinHeldOutRows) return 0;
  constexpr int64_t kDouble = sizeof(double);
  const int64_t features = 2 * shape.rows * shape.output_columns * kDouble;
  // The second plan's engine, or the rows and a tile of one of the two passes.
  const int64_t engine = shape.plan_numbers * kDouble;
  const int64_t tile =
      kTileRows *
      std::max({std::min(shape.rows, 2 * kTileRows), shape.rank, shape.centre_landmarks}) * kDouble;
  const int64_t tiles = std::min<int64_t>(threads, TileCount(shape.rows)) * tile;
  return features + std::max(engine, shape.rows * shape.columns * kDouble + tiles);
}

}  // namespace phimap
