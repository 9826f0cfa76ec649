#include "core/certificate/kernel_error.h"

#include <algorithm>
#include <cmath>

#include "core/certificate/fidelity.h"
#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Number of rows in a tile of pairs. Each row is then in a few hundred pairs. That estimates the
// mean as well as all pairs would, and costs less than computing the features.
constexpr int64_t kPairRows = 128;

// Returns K for the rows of a tile of pairs, not centred.
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

// Subtracts the centre, if there is one, from kernel values. The first row of `values` is that of
// held-out row `begin`, and its first column that of row `first`.
void SubtractCentre(const MeasurementTask& task, int64_t begin, int64_t first,
                    MatrixView<double> values) {
  if (task.centre == nullptr) return;
  const std::vector<double>& means = task.centre->means;
  for (int64_t i = 0; i < values.rows(); ++i) {
    const double row = task.centre->mean - means[begin + i];
    for (int64_t j = 0; j < values.cols(); ++j) values(i, j) += row - means[first + j];
  }
}

// Returns the kernel that the features approximate, centred or not, for the rows of a tile of
// pairs.
Matrix<double> PairValues(const MeasurementTask& task, const Matrix<double>& x,
                          const std::vector<double>& norms, const PairTile& pairs, int64_t t) {
  Matrix<double> tile = PlainPairValues(task, x, norms, pairs, t);
  SubtractCentre(task, pairs.begin, pairs.first, tile.view());
  return tile;
}

// Returns the largest |K(x, x)| over the rows, of the centred kernel if there is a centre.
double ScaleOf(const MeasurementTask& task, const std::vector<double>& diagonal) {
  double scale = 0;
  for (size_t i = 0; i < diagonal.size(); ++i) {
    const double taken = task.centre != nullptr ? 2 * task.centre->means[i] - task.centre->mean : 0;
    scale = std::max(scale, std::abs(diagonal[i] - taken));
  }
  return scale;
}

// Contribution of a tile of pairs to KernelErrors.
struct TileErrors {
  double sum = 0;
  // This tile's contributions to the sums of rows first … end − 1: of the errors, of their squares
  // and of the kernel's squares.
  std::vector<double> row_sums;
  std::vector<double> error_squares;
  std::vector<double> kernel_squares;
  double max = 0;
  int64_t count = 0;
  int64_t unbounded = 0;
  std::vector<double> disjoint;
};

// Adds the square of a pair's value to the sums of both of its rows.
void AddSquare(double value, int64_t i, int64_t j, std::vector<double>& sums) {
  sums[i] += value * value;
  sums[j] += value * value;
}

// Returns the errors of one tile. `values`: K(x, y), and `differences`: K(x, y) − F(x)·F(y), for
// rows x = begin … end − 1 and y = first … end − 1.
TileErrors ErrorsOf(const PairTile& pairs, const Matrix<double>& values,
                    const Matrix<double>& differences, const std::vector<double>& bounds) {
  const auto [begin, end, first] = pairs;
  TileErrors errors;
  errors.row_sums.resize(static_cast<size_t>(end - first));
  errors.error_squares.resize(errors.row_sums.size());
  errors.kernel_squares.resize(errors.row_sums.size());
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = first; j < i; ++j) {
      const double difference = std::abs(differences(i - begin, j - first));
      errors.sum += difference;
      errors.row_sums[i - first] += difference;
      errors.row_sums[j - first] += difference;
      AddSquare(difference, i - first, j - first, errors.error_squares);
      AddSquare(values(i - begin, j - first), i - first, j - first, errors.kernel_squares);
      errors.max = std::max(errors.max, difference);
      if (bounds.empty()) continue;
      if (difference > std::sqrt(bounds[i]) * std::sqrt(bounds[j])) ++errors.unbounded;
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
    errors.error_squares[i] += tile.error_squares[i - first];
    errors.kernel_squares[i] += tile.kernel_squares[i - first];
    // Row i forms pairs with the rows before it, if it is one of begin … end − 1, and with those
    // rows of begin … end − 1 that come after it.
    errors.by_row.counts[i] += (i >= begin ? i - first : 0) + end - std::max(begin, i + 1);
  }
  errors.error.max = std::max(errors.error.max, tile.max);
  errors.error.count += tile.count;
  errors.unbounded += tile.unbounded;
  errors.disjoint.insert(errors.disjoint.end(), tile.disjoint.begin(), tile.disjoint.end());
}

}  // namespace

int64_t PairTileCount(int64_t rows) { return (rows + kPairRows - 1) / kPairRows; }

PairTile PairTileAt(int64_t rows, int64_t t) {
  const int64_t begin = t * kPairRows;
  return {.begin = begin,
          .end = std::min(rows, begin + kPairRows),
          .first = std::max<int64_t>(0, begin - kPairRows)};
}

absl::StatusOr<Matrix<double>> FirstRowsGram(const MeasurementTask& task, const Matrix<double>& x,
                                             const TileControl& control) {
  Matrix<double> gram;
  if (task.known == nullptr) {
    const ConstMatrixView<double> rows = x.view().Rows(0, std::min(x.rows(), kMaxFidelityRows));
    gram = Matrix<double>::Uninit(rows.rows(), rows.rows());
    PHIMAP_RETURN_IF_ERROR(KernelGram(*task.kernel, rows, gram.view(), control));
  } else {
    const int64_t m = std::min(task.rows.rows(), 2 * kPairRows);
    gram = Matrix<double>::Uninit(m, m);
    for (int64_t t = 0; t < PairTileCount(m); ++t) {
      const auto [begin, end, first] = PairTileAt(m, t);
      PHIMAP_CHECK(first == 0);
      const Matrix<double>& tile = task.known->pairs[t];
      for (int64_t i = begin; i < end; ++i) std::copy_n(tile.row(i - begin), end, gram.row(i));
    }
  }
  MirrorLowerTriangle(gram.view());
  SubtractCentre(task, 0, 0, gram.view());
  return gram;
}

std::vector<double> DiagonalOf(const MeasurementTask& task, const Matrix<double>& x,
                               const std::vector<double>& norms) {
  if (task.known != nullptr) return task.known->diagonal;
  return KernelDiagonal(*task.kernel, x.view(), norms);
}

absl::StatusOr<KernelErrors> KernelError(const MeasurementTask& task, const Matrix<double>& x,
                                         const Matrix<double>& features,
                                         const std::vector<double>& bounds,
                                         const TileControl& control) {
  const int64_t h = features.rows();
  const std::vector<double> norms = SquaredNorms(x.view());
  std::vector<TileErrors> tiles(static_cast<size_t>(PairTileCount(h)));
  const auto measure = [&](int64_t t) {
    const PairTile pairs = PairTileAt(h, t);
    const auto [begin, end, first] = pairs;
    const Matrix<double> values = PairValues(task, x, norms, pairs, t);
    Matrix<double> differences = values.Clone();
    MultiplyTransposed(-1, features.view().Rows(begin, end - begin),
                       features.view().Rows(first, end - first), 1, differences.view());
    tiles[t] = ErrorsOf(pairs, values, differences, bounds);
  };
  PHIMAP_RETURN_IF_ERROR(ForEachTile(control.threads(), PairTileCount(h), control, measure));
  KernelErrors errors(h);
  errors.error.scale = ScaleOf(task, DiagonalOf(task, x, norms));
  double sum = 0;
  for (int64_t t = 0; t < PairTileCount(h); ++t) {
    AddTile(PairTileAt(h, t), tiles[t], errors);
    sum += tiles[t].sum;
  }
  errors.error.mean = sum / static_cast<double>(errors.error.count);
  return errors;
}

}  // namespace phimap
