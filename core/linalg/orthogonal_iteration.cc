#include "core/linalg/orthogonal_iteration.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Rows that one thread multiplies at a time.
constexpr int64_t kTileRows = 128;

// Returns how many columns of b rows one thread rotates or solves at a time. They take about 0.1
// ms, much longer than a thread takes to start.
int64_t TileColumns(int64_t b) { return std::max<int64_t>(1024, 2'000'000 / (b * b)); }

double Dot(const double* a, const double* b, int64_t count) {
  return std::inner_product(a, a + count, b, 0.0);
}

double Norm(const double* a, int64_t count) { return std::sqrt(Dot(a, a, count)); }

// Orthogonalizes row i against the rows before it, which are orthonormal. Repeats until a pass
// leaves most of the row's length, because rounding otherwise hides components ("twice is enough",
// Parlett 1980).
void OrthogonalizeAgainstEarlierRows(MatrixView<double> rows, int64_t i) {
  const int64_t m = rows.cols();
  double* row = rows.row(i);
  for (int pass = 0; pass < 4; ++pass) {
    const double before = Norm(row, m);
    for (int64_t j = 0; j < i; ++j) {
      const double part = Dot(rows.row(j), row, m);
      for (int64_t k = 0; k < m; ++k) row[k] -= part * rows(j, k);
    }
    if (Norm(row, m) > 0.5 * before) return;
  }
}

// Factors gram = L·Lᵀ and stores L in the lower triangle of `gram`, which holds the inner products
// of some unit vectors. Returns false if these vectors are so close to dependent that most digits
// would be lost.
bool Factor(MatrixView<double> gram) {
  for (int64_t j = 0; j < gram.rows(); ++j) {
    const double square = gram(j, j) - Dot(gram.row(j), gram.row(j), j);
    if (!(square > 1e-6)) return false;
    gram(j, j) = std::sqrt(square);
    for (int64_t i = j + 1; i < gram.rows(); ++i) {
      gram(i, j) = (gram(i, j) - Dot(gram.row(i), gram.row(j), j)) / gram(j, j);
    }
  }
  return true;
}

// Orthonormalizes rows that are nearly orthonormal, as they are after a sweep. If the rows are far
// from orthonormal, returns false and leaves rows with the same span. One pass of Cholesky QR
// leaves an error of 2⁻⁵³ times the squared condition number of its input (Yamamoto, Nakatsukasa,
// Yanagisawa, Fukaya 2015). The second pass therefore leaves only rounding errors.
absl::StatusOr<bool> OrthonormalizeNear(MatrixView<double> rows, const TileControl& control) {
  Matrix<double> gram = Matrix<double>::Uninit(rows.rows(), rows.rows());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const double norm = Norm(rows.row(i), rows.cols());
    if (!(norm > 0)) return false;
    for (int64_t k = 0; k < rows.cols(); ++k) rows(i, k) /= norm;
  }
  for (int pass = 0; pass < 2; ++pass) {
    PHIMAP_RETURN_IF_ERROR(
        ForEachRange(rows.rows(), kTileRows, control, [&](int64_t begin, int64_t count) {
          MultiplyTransposed(1, rows.Rows(begin, count), rows.Rows(0, begin + count), 0,
                             gram.view().Block(begin, 0, count, begin + count));
        }));
    if (!Factor(gram.view())) return false;
    PHIMAP_RETURN_IF_ERROR(ForEachRange(
        rows.cols(), TileColumns(rows.rows()), control, [&](int64_t begin, int64_t count) {
          SolveLowerTriangle(std::as_const(gram).view(), rows.Block(0, begin, rows.rows(), count));
        }));
  }
  return true;
}

// Makes the rows orthonormal. A row that depends on the others is replaced by a coordinate unit
// vector.
absl::Status Orthonormalize(MatrixView<double> rows, const TileControl& control) {
  PHIMAP_ASSIGN_OR_RETURN(const bool done, OrthonormalizeNear(rows, control));
  if (done) return absl::OkStatus();
  const int64_t m = rows.cols();
  int64_t axis = 0;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    double* row = rows.row(i);
    double norm = Norm(row, m);
    for (;;) {
      if (norm > 0) {
        for (int64_t k = 0; k < m; ++k) row[k] /= norm;
        OrthogonalizeAgainstEarlierRows(rows, i);
        norm = Norm(row, m);
      }
      // Only rounding errors are left of a unit vector that lies in the span of the other rows.
      if (norm > 1e-12) break;
      std::fill_n(row, m, 0.0);
      row[axis++] = 1;  // not all of m axes lie in the span of fewer rows
      norm = 1;
    }
    for (int64_t k = 0; k < m; ++k) row[k] /= norm;
  }
  return absl::OkStatus();
}

// Computes rows ← rotation · rows.
absl::Status Rotate(ConstMatrixView<double> rotation, Matrix<double>& rows, Matrix<double>& scratch,
                    const TileControl& control) {
  const ConstMatrixView<double> from = std::as_const(rows).view();
  PHIMAP_RETURN_IF_ERROR(ForEachRange(
      rows.cols(), TileColumns(rows.rows()), control, [&](int64_t begin, int64_t count) {
        Multiply(1, rotation, from.Block(0, begin, from.rows(), count), 0,
                 scratch.view().Block(0, begin, from.rows(), count));
      }));
  std::swap(rows, scratch);
  return absl::OkStatus();
}

std::vector<int64_t> ByFallingModulus(const std::vector<double>& values) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return std::abs(values[i]) > std::abs(values[j]); });
  return order;
}

// Computes the Ritz values of orthonormal rows v with images av, by falling modulus, and rotates v
// and av to the Ritz vectors and their images.
absl::StatusOr<std::vector<double>> RayleighRitz(Matrix<double>& v, Matrix<double>& av,
                                                 Matrix<double>& scratch,
                                                 const TileControl& control) {
  const int64_t b = v.rows();
  Matrix<double> h = Matrix<double>::Uninit(b, b);
  PHIMAP_RETURN_IF_ERROR(ForEachRange(b, kTileRows, control, [&](int64_t begin, int64_t count) {
    MultiplyTransposed(1, std::as_const(v).view().Rows(begin, count), std::as_const(av).view(), 0,
                       h.view().Rows(begin, count));
  }));
  for (int64_t i = 0; i < b; ++i) {
    for (int64_t j = 0; j < i; ++j) h(i, j) = 0.5 * (h(i, j) + h(j, i));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> rising, SymmetricEigenvectors(h.view()));
  const std::vector<int64_t> order = ByFallingModulus(rising);
  Matrix<double> rotation = Matrix<double>::Uninit(b, b);
  std::vector<double> values;
  for (int64_t i = 0; i < b; ++i) {
    std::copy_n(h.row(order[i]), b, rotation.row(i));
    values.push_back(rising[order[i]]);
  }
  PHIMAP_RETURN_IF_ERROR(Rotate(std::as_const(rotation).view(), v, scratch, control));
  PHIMAP_RETURN_IF_ERROR(Rotate(std::as_const(rotation).view(), av, scratch, control));
  return values;
}

// Returns the largest ‖av_i − λ_i v_i‖ of the first `count` rows.
double LargestResidual(const Matrix<double>& v, const Matrix<double>& av,
                       const std::vector<double>& values, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    double square = 0;
    for (int64_t k = 0; k < v.cols(); ++k) {
      const double part = av(i, k) - values[i] * v(i, k);
      square += part * part;
    }
    largest = std::max(largest, std::sqrt(square));
  }
  return largest;
}

// Limits on the Chebyshev filter. kMaxDegree is the largest number of products between two
// Rayleigh–Ritz steps. The other limit is the largest ratio of the longest row to the shortest
// after these products. With a larger ratio, rounding and the next orthonormal basis would lose the
// short rows.
constexpr int64_t kMaxDegree = 12;
constexpr double kMaxGrowth = 1e6;

// Returns the degree of the polynomial T(A/c) for Ritz vectors with these values, which are in
// order of falling modulus. c is the last modulus.
int64_t DegreeFor(const std::vector<double>& values) {
  const double ratio = std::abs(values.front()) / std::abs(values.back());
  if (!(ratio < kMaxGrowth)) return 1;
  const double degree = std::acosh(kMaxGrowth) / std::acosh(std::max(1 + 1e-9, ratio));
  return std::clamp(static_cast<int64_t>(degree), int64_t{1}, kMaxDegree);
}

absl::Status CheckFinite(const Matrix<double>& images) {
  const auto finite = [](double value) { return std::isfinite(value); };
  if (std::all_of(images.data(), images.data() + images.size(), finite)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kValueNotFinite, "kernel",
      "a product with the kernel matrix is not finite: rescale the kernel or the inputs");
}

// Returns the leading pairs, with the signs that Eigenpairs describes.
Eigenpairs Leading(const Matrix<double>& v, std::vector<double> values, int64_t count) {
  const int64_t m = v.cols();
  Eigenpairs pairs;
  values.resize(count);
  pairs.values = std::move(values);
  pairs.vectors = Matrix<double>::Uninit(count, m);
  for (int64_t i = 0; i < count; ++i) {
    const double* from = v.row(i);
    const double* largest = std::max_element(
        from, from + m, [](double a, double b) { return std::abs(a) < std::abs(b); });
    const double sign = *largest < 0 ? -1 : 1;
    for (int64_t k = 0; k < m; ++k) pairs.vectors(i, k) = sign * from[k];
  }
  return pairs;
}

// Replaces v by T(A/c)·v, starting from av = A·v. T is the Chebyshev polynomial of this degree. For
// eigenvalues |λ| ≤ c, T stays within ±1. For larger |λ|, it grows faster than any other polynomial
// of the same degree that does so.
absl::Status Filter(double c, int64_t degree, SymmetricProduct multiply, Matrix<double>& v,
                    Matrix<double>& av, Matrix<double>& scratch, const TileControl& control) {
  if (degree == 1) {
    std::swap(v, av);
    return absl::OkStatus();
  }
  for (int64_t k = 0; k < av.size(); ++k) av.data()[k] /= c;
  for (int64_t n = 2; n <= degree; ++n) {
    PHIMAP_RETURN_IF_ERROR(multiply(std::as_const(av).view(), scratch.view(), control));
    for (int64_t k = 0; k < v.size(); ++k) {
      v.data()[k] = 2 / c * scratch.data()[k] - v.data()[k];
    }
    std::swap(v, av);
  }
  std::swap(v, av);
  return CheckFinite(v);
}

}  // namespace

absl::StatusOr<Eigenpairs> IterateOrthogonally(const OrthogonalIteration& task,
                                               SymmetricProduct multiply, Matrix<double> start,
                                               const TileControl& control) {
  PHIMAP_CHECK(1 <= task.count && task.count <= start.rows() && start.rows() <= start.cols());
  PHIMAP_CHECK(task.max_products >= 1);
  Matrix<double> v = std::move(start);
  Matrix<double> av = Matrix<double>::Uninit(v.rows(), v.cols());
  Matrix<double> scratch = Matrix<double>::Uninit(v.rows(), v.cols());
  // The number of products left is unknown, so progress is derived from the residual, which falls
  // geometrically.
  double progress = 0;
  const auto here = [&](double) { return control(progress); };
  const TileControl within(control.threads_ref(), here);
  for (int64_t products = 1;; ++products) {
    PHIMAP_RETURN_IF_ERROR(Orthonormalize(v.view(), within));
    PHIMAP_RETURN_IF_ERROR(multiply(std::as_const(v).view(), av.view(), within));
    PHIMAP_RETURN_IF_ERROR(CheckFinite(av));
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> values, RayleighRitz(v, av, scratch, within));
    const double largest = std::abs(values[0]);
    const double residual =
        largest > 0 ? LargestResidual(v, av, values, task.count) / largest : 0.0;
    const bool negative = task.ends_at_negative && products >= 10 &&
                          *std::min_element(values.begin(), values.begin() + task.count) < 0;
    if (residual <= task.tolerance || products >= task.max_products || negative) {
      Eigenpairs pairs = Leading(v, values, task.count);
      pairs.residual = residual;
      pairs.products = products;
      return pairs;
    }
    progress = std::clamp(std::log(residual) / std::log(task.tolerance), progress, 1.0);
    const int64_t degree = std::min(DegreeFor(values), task.max_products - products);
    PHIMAP_RETURN_IF_ERROR(
        Filter(std::abs(values.back()), degree, multiply, v, av, scratch, within));
    products += degree - 1;
  }
}

absl::StatusOr<Eigenpairs> FactorEigenpairs(Matrix<double> a, int64_t count) {
  PHIMAP_CHECK(1 <= count && count <= a.rows() && a.rows() == a.cols());
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> rising, SymmetricEigenvectors(a.view()));
  const std::vector<int64_t> order = ByFallingModulus(rising);
  Matrix<double> v = Matrix<double>::Uninit(count, a.cols());
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(a.row(order[i]), a.cols(), v.row(i));
    values.push_back(rising[order[i]]);
  }
  Eigenpairs pairs = Leading(v, std::move(values), count);
  pairs.residual = static_cast<double>(a.rows()) * 0x1p-53;
  return pairs;
}

}  // namespace phimap
