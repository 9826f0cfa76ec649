#include "core/engine/projection_runner.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/engine/feature_runner.h"
#include "core/linalg/matrix.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Maximum bytes of the dense form of a sparse W. The limit is needed because an artifact of few
// bytes can state a large shape.
constexpr int64_t kMaxUnfoldedBytes = int64_t{1} << 30;

// One overload for each form of W.
template <typename T>
struct PackProjection {
  absl::StatusOr<PanelMatrix<T>> operator()(const NoProjection&) const { return PanelMatrix<T>(); }
  absl::StatusOr<PanelMatrix<T>> operator()(const TriangularProjection<T>& triangle) const {
    return PanelMatrix<T>::PackUpperTriangle(triangle.elements.data(), triangle.order);
  }
  absl::StatusOr<PanelMatrix<T>> operator()(const DenseProjection<T>& dense) const {
    return PanelMatrix<T>::Pack(dense.matrix.view());
  }
  // A zero does not change a chain of multiply-adds, so the dense form gives the same bits.
  absl::StatusOr<PanelMatrix<T>> operator()(const SparseProjection<T>& sparse) const {
    const int64_t unfolded = sparse.rows * sparse.columns * static_cast<int64_t>(sizeof(T));
    if (unfolded > kMaxUnfoldedBytes) {
      return MakeError(
          absl::StatusCode::kResourceExhausted, "PROJECTION_TOO_LARGE", "",
          absl::StrCat("the version's sparse projection of ", sparse.rows, " by ", sparse.columns,
                       " takes ", unfolded, " bytes in memory; at most ", kMaxUnfoldedBytes,
                       " are allowed"),
          {{"limit", absl::StrCat(kMaxUnfoldedBytes)}, {"actual", absl::StrCat(unfolded)}});
    }
    Matrix<T> matrix(sparse.rows, sparse.columns);
    for (int64_t k = 0; k < sparse.rows; ++k) {
      for (int64_t i = sparse.row_offsets[k]; i < sparse.row_offsets[k + 1]; ++i) {
        matrix(k, sparse.column_indices[i]) = sparse.values[i];
      }
    }
    return PanelMatrix<T>::Pack(matrix.view());
  }
};

}  // namespace

template <typename T>
absl::StatusOr<ProjectionRunner<T>> ProjectionRunner<T>::Load(const ServingStages<T>& stages) {
  ProjectionRunner runner;
  runner.centre_ = stages.centre;
  PHIMAP_ASSIGN_OR_RETURN(runner.matrix_, std::visit(PackProjection<T>{}, stages.projection));
  return runner;
}

template <typename T>
void ProjectionRunner<T>::Run(T* const* z, int64_t stride, int64_t count, T* const* y,
                              bool* finite) const {
  const int64_t features = static_cast<int64_t>(centre_.size());
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < features; ++j) z[i][j] -= centre_[j];
  }
  if (in_place()) {
    CheckFinite(y, count, features, finite);
  } else {
    matrix_.MultiplyAndCheck(z[0], stride, count, y, finite);
  }
}

template class ProjectionRunner<float>;
template class ProjectionRunner<double>;

}  // namespace phimap
