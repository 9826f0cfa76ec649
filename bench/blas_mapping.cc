#include "bench/blas_mapping.h"

#include <cblas.h>

#include <algorithm>

#include "bench/vector_loops.h"

// Declarations from OpenBLAS's own interface, which the standard header lacks.
extern "C" {
void openblas_set_num_threads(int threads);
char* openblas_get_corename(void);
}

namespace phimap::bench {
namespace {

// With more rows than this, no library would multiply row by row.
constexpr int64_t kFewRows = 4;

bool RowByRow(BlasWay way) { return way == BlasWay::kGemv || way == BlasWay::kTrmv; }
bool Triangular(BlasWay way) { return way == BlasWay::kTrmm || way == BlasWay::kTrmv; }

}  // namespace

std::string BlasWayName(BlasWay way) {
  switch (way) {
    case BlasWay::kGemm:
      return "gemm";
    case BlasWay::kTrmm:
      return "trmm";
    case BlasWay::kGemv:
      return "gemv";
    case BlasWay::kTrmv:
      return "trmv";
  }
  return "";
}

std::vector<BlasWay> BlasWaysFor(const BenchMapping& mapping, int64_t rows) {
  std::vector<BlasWay> ways = {BlasWay::kGemm};
  const bool triangle = mapping.w == WKind::kTriangular;
  if (triangle) ways.push_back(BlasWay::kTrmm);
  if (rows <= kFewRows) ways.push_back(BlasWay::kGemv);
  if (rows <= kFewRows && triangle) ways.push_back(BlasWay::kTrmv);
  return ways;
}

BlasMapping::BlasMapping(const BenchMapping& mapping, const BenchNumbers& numbers, int64_t rows)
    : mapping_(mapping), numbers_(numbers), z_(rows, mapping.landmarks), y_(rows, mapping.outputs) {
  for (int64_t j = 0; j < mapping.landmarks; ++j) {
    landmark_norms_.push_back(SquaredNorm(numbers.landmarks.row(j), mapping.inputs));
  }
}

const float* BlasMapping::Transform(BlasWay way, const Matrix<float>& x) {
  Products(way, x);
  for (int64_t i = 0; i < x.rows(); ++i) {
    if (mapping_.elementwise == Elementwise::kNone) break;
    if (mapping_.elementwise == Elementwise::kCos) {
      CosRow(mapping_.landmarks, z_.row(i));
      continue;
    }
    RbfRow(static_cast<float>(mapping_.gamma()), SquaredNorm(x.row(i), mapping_.inputs),
           landmark_norms_.data(), mapping_.landmarks, z_.row(i));
  }
  if (mapping_.w == WKind::kNone) return z_.data();
  Apply(way, z_, x.rows());
  return Triangular(way) ? z_.data() : y_.data();
}

void BlasMapping::Products(BlasWay way, const Matrix<float>& x) {
  const int d = static_cast<int>(mapping_.landmarks);
  const int inputs = static_cast<int>(mapping_.inputs);
  const float* landmarks = numbers_.landmarks.data();
  if (!RowByRow(way)) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(x.rows()), d, inputs, 1,
                x.data(), inputs, landmarks, inputs, 0, z_.data(), d);
    return;
  }
  for (int64_t i = 0; i < x.rows(); ++i) {
    cblas_sgemv(CblasRowMajor, CblasNoTrans, d, inputs, 1, landmarks, inputs, x.row(i), 1, 0,
                z_.row(i), 1);
  }
}

void BlasMapping::Project(BlasWay way, const Matrix<float>& z) {
  if (!Triangular(way)) return Apply(way, z, z.rows());
  std::copy_n(z.data(), z.size(), z_.data());
  Apply(way, z_, z.rows());
}

void BlasMapping::Apply(BlasWay way, const Matrix<float>& z, int64_t rows) {
  const int n = static_cast<int>(rows);
  const int d = static_cast<int>(mapping_.landmarks);
  const int outputs = static_cast<int>(mapping_.outputs);
  const float* w = numbers_.w.data();
  if (way == BlasWay::kGemm) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, outputs, d, 1, z.data(), d, w,
                outputs, 0, y_.data(), outputs);
  } else if (way == BlasWay::kTrmm) {
    cblas_strmm(CblasRowMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, n, d, 1, w, d,
                z_.data(), d);
  }
  for (int64_t i = 0; RowByRow(way) && i < rows; ++i) {
    if (way == BlasWay::kGemv) {
      cblas_sgemv(CblasRowMajor, CblasTrans, d, outputs, 1, w, outputs, z.row(i), 1, 0, y_.row(i),
                  1);
    } else {
      cblas_strmv(CblasRowMajor, CblasUpper, CblasTrans, CblasNonUnit, d, w, d, z_.row(i), 1);
    }
  }
}

void UseOneThread() { openblas_set_num_threads(1); }

std::string BlasCore() { return openblas_get_corename(); }

}  // namespace phimap::bench
