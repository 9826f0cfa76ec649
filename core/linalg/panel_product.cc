#include "core/linalg/panel_product.h"

#include <algorithm>

#include "core/linalg/matrix.h"
#include "core/linalg/panel_kernels.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Size of the block of results that waits for MultiplyAndFinish's callback: a quarter of the
// first-level cache.
constexpr int64_t kStagedBytes = 8192;
constexpr int64_t kMostStagedRows = 64;

// Returns the largest number of rows whose results for one panel may wait in a block of
// kStagedBytes.
template <typename T>
int64_t StagedRows(int64_t panel_columns) {
  return std::min(kMostStagedRows, kStagedBytes / static_cast<int64_t>(sizeof(T)) / panel_columns);
}

}  // namespace

template <typename T>
template <typename Height, typename Element>
PanelMatrix<T> PanelMatrix<T>::PackFrom(int64_t depth, int64_t columns, Height height,
                                        Element element) {
  PanelMatrix packed;
  packed.depth_ = depth;
  packed.columns_ = columns;
  packed.panel_columns_ = PanelColumns<T>();
  const int64_t width = packed.panel_columns_;
  int64_t size = 0;
  for (int64_t first = 0; first < columns; first += width) {
    packed.offsets_.push_back(size);
    packed.heights_.push_back(height(std::min(columns, first + width)));
    size += packed.heights_.back() * width;
  }
  packed.elements_ = LargePageArray<T>(size);
  T* out = packed.elements_.data();
  for (int64_t p = 0; p < packed.panels(); ++p) {
    for (int64_t k = 0; k < packed.heights_[p]; ++k) {
      for (int64_t j = p * width; j < (p + 1) * width; ++j) {
        *out++ = j < columns ? element(k, j) : T{0};
      }
    }
  }
  return packed;
}

template <typename T>
int64_t PanelMatrix<T>::LeftHeight(int64_t panel) const {
  if (!triangular_) return heights_[panel];
  return std::min(heights_[panel], panel * panel_columns_ + panel_columns_ / 2);
}

template <typename T>
PanelMatrix<T> PanelMatrix<T>::Pack(ConstMatrixView<T> w) {
  return PackFrom(
      w.rows(), w.cols(), [&](int64_t) { return w.rows(); },
      [&](int64_t k, int64_t j) { return w(k, j); });
}

template <typename T>
PanelMatrix<T> PanelMatrix<T>::PackTransposed(ConstMatrixView<T> a) {
  return PackFrom(
      a.cols(), a.rows(), [&](int64_t) { return a.cols(); },
      [&](int64_t k, int64_t j) { return a(j, k); });
}

template <typename T>
PanelMatrix<T> PanelMatrix<T>::PackUpperTriangle(const T* elements, int64_t n) {
  PanelMatrix packed = PackFrom(
      n, n, [](int64_t end) { return end; },
      [&](int64_t k, int64_t j) {
        return k <= j ? elements[k * n - k * (k - 1) / 2 + (j - k)] : T{0};
      });
  packed.triangular_ = true;
  return packed;
}

template <typename T>
void PanelMatrix<T>::Multiply(const T* z, int64_t z_stride, int64_t rows, int64_t first_panel,
                              int64_t last_panel, T* const* y) const {
  Run(Step::kProduct, {z, z_stride, rows}, first_panel, last_panel, y, nullptr);
}

template <typename T>
void PanelMatrix<T>::MultiplyAndCheck(const T* z, int64_t z_stride, int64_t rows, T* const* y,
                                      bool* finite) const {
  Run(Step::kProduct, {z, z_stride, rows}, 0, panels(), y, finite);
}

template <typename T>
void PanelMatrix<T>::MultiplyAndFinish(const T* z, int64_t z_stride, int64_t rows, T* const* y,
                                       ProductFinish<T> finish) const {
  if (panels() == 0) return;
  const int64_t most_rows = StagedRows<T>(panel_columns_);
  const int64_t most = kStagedBytes / static_cast<int64_t>(sizeof(T)) / panel_columns_;
  for (int64_t row = 0; row < rows; row += most_rows) {
    const Rows some{z + row * z_stride, z_stride, std::min(most_rows, rows - row)};
    // Rounds the number of panels to whole groups, at least one.
    const int64_t at_once = PanelsAtOnce(some.count);
    const int64_t count = std::max<int64_t>(1, most / some.count / at_once) * at_once;
    for (int64_t p = 0; p < panels(); p += count) {
      RunStaged(Step::kProduct, some, p, std::min(p + count, panels()), y + row,
                [&](ProductBlock<T> block) {
                  block.first_row = row;
                  finish(block);
                });
    }
  }
}

template <typename T>
void PanelMatrix<T>::L1Distances(const T* z, int64_t z_stride, int64_t rows, T* const* y) const {
  PHIMAP_CHECK(!triangular_);
  Run(Step::kL1Distance, {z, z_stride, rows}, 0, panels(), y, nullptr);
}

template <typename T>
void PanelMatrix<T>::Run(Step step, const Rows& z, int64_t first_panel, int64_t last_panel,
                         T* const* y, bool* finite) const {
  PHIMAP_CHECK(0 <= first_panel && last_panel <= panels());
  if (first_panel >= last_panel) return;
  int64_t whole = std::min(last_panel, columns_ / panel_columns_);
  // Begins the last part at the start of a group, because the panels of a group run together.
  if (whole < last_panel) {
    whole -= (whole - first_panel) % PanelsAtOnce(z.count);
  }
  RunWhole(step, z, first_panel, whole, {y, first_panel * panel_columns_},
           {y, first_panel * panel_columns_}, finite);
  if (whole == last_panel) return;
  // The last panel has columns beyond those of W.
  const int64_t most_rows = StagedRows<T>(panel_columns_);
  for (int64_t row = 0; row < z.count; row += most_rows) {
    const Rows some{z.first + row * z.stride, z.stride, std::min(most_rows, z.count - row)};
    RunStaged(step, some, whole, last_panel, y + row, [&](const ProductBlock<T>& block) {
      for (int64_t i = 0; i < block.rows; ++i) {
        T* const out = y[row + i] + block.first_column;
        std::copy_n(block.values + i * block.stride, block.columns, out);
        if (finite != nullptr && !AllFinite(out, block.columns)) finite[row + i] = false;
      }
    });
  }
}

template <typename T>
void PanelMatrix<T>::RunStaged(Step step, const Rows& z, int64_t first_panel, int64_t last_panel,
                               T* const* y, ProductFinish<T> finish) const {
  alignas(kAlignmentBytes) T values[kStagedBytes / sizeof(T)];
  T* staged[kMostStagedRows];
  const int64_t width = (last_panel - first_panel) * panel_columns_;
  PHIMAP_CHECK(z.count <= kMostStagedRows &&
               z.count * width * static_cast<int64_t>(sizeof(T)) <= kStagedBytes);
  for (int64_t i = 0; i < z.count; ++i) staged[i] = values + i * width;
  const int64_t first_column = first_panel * panel_columns_;
  RunWhole(step, z, first_panel, last_panel, {staged, 0}, {y, first_column}, nullptr);
  finish({.values = values,
          .stride = width,
          .first_row = 0,
          .rows = z.count,
          .first_column = first_column,
          .columns = std::min(width, columns_ - first_column)});
}

template <typename T>
void PanelMatrix<T>::RunWhole(Step step, const Rows& z, int64_t first_panel, int64_t last_panel,
                              const Place& to, const Place& results, bool* finite) const {
  PHIMAP_CHECK(z.stride >= depth_);
  PHIMAP_CHECK(panel_columns_ == PanelColumns<T>());  // packed for this target
  const int64_t at_once = PanelsAtOnce(z.count);
  for (int64_t p = first_panel; p < last_panel; p += at_once) {
    const int64_t count = std::min(at_once, last_panel - p);
    const int64_t column = (p - first_panel) * panel_columns_;
    const PanelTask<T> task{.elements = elements_.data(),
                            .offsets = offsets_.data() + p,
                            .heights = heights_.data() + p,
                            .left_height = LeftHeight(p),
                            .panels = count,
                            .z = z.first,
                            .z_stride = z.stride,
                            .rows = z.count,
                            .y = to.rows,
                            .first_column = to.first_column + column,
                            .finite = finite,
                            .ahead = elements_.data() + offsets_[std::min(p + count, panels() - 1)],
                            .results = results.rows,
                            .first_result = results.first_column + column};
    step == Step::kProduct ? MultiplyPanels(task) : DistancePanels(task);
  }
}

template class PanelMatrix<float>;
template class PanelMatrix<double>;

}  // namespace phimap
