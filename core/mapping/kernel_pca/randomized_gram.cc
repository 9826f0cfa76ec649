#include "core/mapping/kernel_pca/randomized_gram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/linalg/lanczos.h"
#include "core/random/portable_math.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Rows of a tile, which one thread fills: a block of SparseSymmetric. A multiple of 8, so that two
// tiles never share a byte of `bits_`.
constexpr int64_t kTileRows = SparseSymmetric::kBlockRows;
static_assert(kTileRows % 8 == 0);

// Error of Lanczos at either end of the spectrum of K̂ − K, relative to the spread of that
// spectrum, which is up to twice the norm.
constexpr double kNormError = 0.01;
// Margin for float32: entries and products in float32 change the norm by a share of about 1e-5.
constexpr double kSingleRounding = 1e-4;

GramSampling SamplingOf(const GramRandomization& randomization) {
  if (!randomization.quantise) return GramSampling::kSparsify;
  return randomization.sparsify > 1 ? GramSampling::kBoth : GramSampling::kQuantise;
}

// Puts the kept columns of row i below the diagonal into `columns`, in ascending order.
void KeptColumns(const RandomStream& gaps, int64_t m, double s, int64_t i,
                 std::vector<uint16_t>& columns) {
  columns.clear();
  if (s == 1) {
    for (int64_t j = 0; j < i; ++j) columns.push_back(static_cast<uint16_t>(j));
    return;
  }
  const double log_skip = Log1p(-1 / s);
  int64_t j = -1;
  for (int64_t k = 0;; ++k) {
    const double skipped =
        std::floor(Log(gaps.UniformOpen01(static_cast<uint64_t>(i * m + k))) / log_skip);
    // Compared before the conversion, because `skipped` can exceed the range of int64_t.
    if (!(skipped < static_cast<double>(i - j - 1))) return;
    j += 1 + static_cast<int64_t>(skipped);
    columns.push_back(static_cast<uint16_t>(j));
  }
}

// Computes kernel values of one row with selected other rows, which it copies side by side. Not
// thread-safe.
class RowValues {
 public:
  // `norms` are the squared norms of `rows`. All arguments must outlive this object.
  RowValues(const KernelProgram& program, ConstMatrixView<double> rows,
            const std::vector<double>& norms)
      : program_(program), rows_(rows), norms_(norms) {}

  // Returns K(x_i, x_j) for each j in `columns`. The result is valid until the next call.
  const double* At(int64_t i, const std::vector<uint16_t>& columns) {
    const auto count = static_cast<int64_t>(columns.size());
    if (gathered_.rows() < count) {
      const int64_t room = std::min(rows_.rows(), count + count / 4 + 16);
      gathered_ = Matrix<double>::Uninit(room, rows_.cols());
      values_ = Matrix<double>::Uninit(1, room);
    }
    gathered_norms_.resize(columns.size());
    for (int64_t k = 0; k < count; ++k) {
      std::copy_n(rows_.row(columns[k]), rows_.cols(), gathered_.row(k));
      gathered_norms_[k] = norms_[columns[k]];
    }
    row_norm_[0] = norms_[i];
    if (count > 0) {
      KernelBlock(program_, rows_.Rows(i, 1), row_norm_,
                  std::as_const(gathered_).view().Rows(0, count), gathered_norms_,
                  MatrixView<double>(values_.row(0), 1, count));
    }
    return values_.row(0);
  }

 private:
  const KernelProgram& program_;
  ConstMatrixView<double> rows_;
  const std::vector<double>& norms_;
  std::vector<double> row_norm_ = {0};
  std::vector<double> gathered_norms_;
  Matrix<double> gathered_;
  Matrix<double> values_;
};

Matrix<float> StartOf(uint64_t seed, int64_t m) {
  const RandomStream normals(seed, StreamId::kStartVectors);
  Matrix<float> start = Matrix<float>::Uninit(1, m);
  for (int64_t i = 0; i < m; ++i) {
    start(0, i) = static_cast<float>(normals.Normal(static_cast<uint64_t>(i)));
  }
  return start;
}

// Sets the members of `found` that need only the entries of K.
absl::Status MeasureEntries(ConstMatrixView<float> k, const TileControl& control,
                            GramError& found) {
  const auto m = static_cast<size_t>(k.rows());
  std::vector<double> squares(m);
  std::vector<double> sums(m);
  PHIMAP_RETURN_IF_ERROR(
      ForEachRange(k.rows(), kTileRows, control, [&](int64_t begin, int64_t count) {
        for (int64_t i = begin; i < begin + count; ++i) {
          double square = 0;
          double sum = 0;
          for (int64_t j = 0; j < k.cols(); ++j) {
            const auto entry = static_cast<double>(k(i, j));
            sum += entry;
            if (j != i) square += entry * entry;
          }
          squares[i] = square;
          sums[i] = sum;
        }
      }));
  found.largest_row = *std::max_element(squares.begin(), squares.end());
  found.kernel_mean = std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(m * m);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RandomizedGram> RandomizedGram::Draw(const KernelProgram& program,
                                                    ConstMatrixView<double> rows,
                                                    const GramRandomization& randomization,
                                                    uint64_t seed, const TileControl& control) {
  PHIMAP_CHECK(randomization.any() && std::isfinite(randomization.sparsify));
  const std::vector<double> diagonal = KernelDiagonal(program, rows, SquaredNorms(rows));
  const double largest = *std::max_element(diagonal.begin(), diagonal.end());
  if (!(largest > 0)) {
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kKernelZero, "kernel",
                     "K(x, x) is 0 on every landmark: there is no direction");
  }
  RandomizedGram gram(rows.rows(), {.sampling = SamplingOf(randomization),
                                    .m = rows.rows(),
                                    .b = largest,
                                    .s = randomization.sparsify});
  PHIMAP_RETURN_IF_ERROR(gram.DrawRows(program, rows, seed, control));
  return gram;
}

absl::Status RandomizedGram::DrawRows(const KernelProgram& program, ConstMatrixView<double> rows,
                                      uint64_t seed, const TileControl& control) {
  const int64_t m = rows.rows();
  const RandomStream gaps(seed, StreamId::kGramGaps);
  const RandomStream signs(seed, StreamId::kGramSigns);
  const std::vector<double> norms = SquaredNorms(rows);
  const std::vector<double> diagonal = KernelDiagonal(program, rows, norms);
  const bool quantised = law_.sampling != GramSampling::kSparsify;
  if (in_bits()) {
    row_bytes_ = (m + 7) / 8;
    bits_.assign(static_cast<size_t>(row_bytes_ * m), 0);
  }
  const auto tile = [&](int64_t begin, int64_t count) {
    RowValues kernel(program, rows, norms);
    std::vector<uint16_t> columns;
    std::vector<float> values;
    for (int64_t i = begin; i < begin + count; ++i) {
      KeptColumns(gaps, m, law_.s, i, columns);
      const double* const k = kernel.At(i, columns);
      values.clear();
      for (size_t n = 0; n < columns.size(); ++n) {
        double value = k[n];
        if (quantised) {
          const double u = signs.UniformOpen01(static_cast<uint64_t>(i * m + columns[n]));
          value = u < 0.5 + k[n] / (2 * law_.b) ? law_.b : -law_.b;
        }
        values.push_back(static_cast<float>(law_.s * value));
      }
      if (in_bits()) {
        SetBits(i, values);
        columns.clear();
        values.clear();
      }
      sparse_.AddRow(i, static_cast<float>(diagonal[i]), columns, values);
    }
  };
  // Row i has up to i entries, so progress grows with the square of the rows done.
  PHIMAP_RETURN_IF_ERROR(ForEachRange(
      m, kTileRows, {control.threads_ref(), [&](double f) { return control(f * f); }}, tile));
  return sparse_.Mirror({control.threads_ref(), [&](double) { return control(1); }});
}

void RandomizedGram::SetBits(int64_t i, const std::vector<float>& values) {
  for (int64_t j = 0; j < i; ++j) {
    if (values[j] < 0) continue;
    bits_[i * row_bytes_ + j / 8] |= static_cast<uint8_t>(1 << (j % 8));
    bits_[j * row_bytes_ + i / 8] |= static_cast<uint8_t>(1 << (i % 8));
  }
}

void RandomizedGram::Unpack(int64_t first, MatrixView<float> out) const {
  // Table of the eight entries for each value of a byte.
  const auto b = static_cast<float>(law_.b);
  std::array<std::array<float, 8>, 256> entries;
  for (int byte = 0; byte < 256; ++byte) {
    for (int bit = 0; bit < 8; ++bit) entries[byte][bit] = (byte >> bit) & 1 ? b : -b;
  }
  const int64_t m = rows();
  for (int64_t i = 0; i < out.rows(); ++i) {
    const uint8_t* const bytes = bits_.data() + (first + i) * row_bytes_;
    float* const row = out.row(i);
    for (int64_t j = 0; j + 8 <= m; j += 8) std::copy_n(entries[bytes[j / 8]].data(), 8, row + j);
    if (m % 8 != 0) std::copy_n(entries[bytes[m / 8]].data(), m % 8, row + m / 8 * 8);
    row[first + i] = sparse_.diagonal(first + i);
  }
}

absl::Status RandomizedGram::Multiply(ConstMatrixView<double> v, MatrixView<double> out,
                                      const TileControl& control) const {
  if (!in_bits()) return sparse_.Multiply(v, out, control);
  const int64_t m = rows();
  const Matrix<float> from = Converted<float, double>(v);
  return ForEachRange(m, kTileRows, control, [&](int64_t first, int64_t count) {
    Matrix<float> tile = Matrix<float>::Uninit(count, m);
    Matrix<float> product = Matrix<float>::Uninit(v.rows(), count);
    Unpack(first, tile.view());
    MultiplyTransposedSingle(from.view(), std::as_const(tile).view(), product.view());
    for (int64_t n = 0; n < v.rows(); ++n) {
      for (int64_t i = 0; i < count; ++i) out(n, first + i) = product(n, i);
    }
  });
}

absl::Status RandomizedGram::SubtractFrom(MatrixView<float> k, const TileControl& control) const {
  const int64_t m = rows();
  PHIMAP_CHECK(k.rows() == m && k.cols() == m);
  return ForEachRange(m, kTileRows, control, [&](int64_t first, int64_t count) {
    if (!in_bits()) {
      sparse_.ForEachStored(first, first + count, [&](int64_t i, int64_t j, float value) {
        k(i, j) -= value;
        if (i != j) k(j, i) -= value;
      });
      return;
    }
    Matrix<float> tile = Matrix<float>::Uninit(count, m);
    Unpack(first, tile.view());
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < m; ++j) k(first + i, j) -= tile(i, j);
    }
  });
}

absl::StatusOr<Matrix<float>> SingleGram(const KernelProgram& program, ConstMatrixView<double> rows,
                                         const TileControl& control) {
  constexpr int64_t kGramTileRows = 256;
  const int64_t m = rows.rows();
  Matrix<float> gram = Matrix<float>::Uninit(m, m);
  const std::vector<double> norms = SquaredNorms(rows);
  const std::vector<double> diagonal = KernelDiagonal(program, rows, norms);
  const auto compute = [&](int64_t begin, int64_t count) {
    const int64_t end = begin + count;
    const std::vector<double> tile_norms(norms.begin() + begin, norms.begin() + end);
    Matrix<double> tile = Matrix<double>::Uninit(count, end);
    KernelBlock(program, rows.Rows(begin, count), tile_norms, rows.Rows(0, end), norms,
                tile.view());
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < i; ++j) gram(i, j) = static_cast<float>(tile(i - begin, j));
      gram(i, i) = static_cast<float>(diagonal[i]);
    }
    // The upper triangle is written by columns of the tile, so that each row is written
    // contiguously.
    for (int64_t j = 0; j < end; ++j) {
      for (int64_t i = std::max(begin, j + 1); i < end; ++i) gram(j, i) = gram(i, j);
    }
  };
  // The work of a tile grows with its index, so progress is the square of the tiles done.
  PHIMAP_RETURN_IF_ERROR(
      ForEachRange(m, kGramTileRows,
                   {control.threads_ref(), [&](double f) { return control(f * f); }}, compute));
  return gram;
}

int64_t GramErrorSteps(int64_t m) { return NormSteps(m, kNormError, kNormDoubt); }

absl::StatusOr<GramError> MeasureGramError(const KernelProgram& program,
                                           ConstMatrixView<double> rows, const RandomizedGram& gram,
                                           uint64_t seed, const TileControl& control) {
  constexpr int64_t kVectorRows = 512;
  const int64_t m = rows.rows();
  PHIMAP_ASSIGN_OR_RETURN(Matrix<float> error,
                          SingleGram(program, rows, {control.threads_ref(), [&](double f) {
                                                       return control(0.5 * f);
                                                     }}));
  const auto half = [&](double) { return control(0.5); };
  const TileControl between(control.threads_ref(), half);
  GramError found;
  PHIMAP_RETURN_IF_ERROR(MeasureEntries(std::as_const(error).view(), between, found));
  PHIMAP_RETURN_IF_ERROR(gram.SubtractFrom(error.view(), between));
  std::vector<float> from(static_cast<size_t>(m));
  std::vector<float> to(static_cast<size_t>(m));
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out,
                            const TileControl& within) {
    std::copy_n(v.row(0), m, from.begin());
    return ForEachRange(m, kVectorRows, within, [&](int64_t begin, int64_t count) {
      MultiplyVectorSingle(std::as_const(error).view().Rows(begin, count), from.data(),
                           to.data() + begin);
      std::copy_n(to.begin() + begin, count, out.row(0) + begin);
    });
  };
  const Matrix<float> start = StartOf(seed, m);
  PHIMAP_ASSIGN_OR_RETURN(
      const NormBounds bounds,
      BoundNorm(multiply, {start.data(), start.data() + m}, kNormError, kNormDoubt,
                {control.threads_ref(), [&](double f) { return control(0.5 + 0.5 * f); }}));
  found.norm_from_below = bounds.below;
  found.norm = bounds.above * (1 + kSingleRounding);
  return found;
}

}  // namespace phimap
