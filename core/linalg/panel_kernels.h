// The vector loops under PanelMatrix: rows times adjacent panels, on the vector unit of this
// process. For panel_product.cc alone.
#ifndef PHIMAP_CORE_LINALG_PANEL_KERNELS_H_
#define PHIMAP_CORE_LINALG_PANEL_KERNELS_H_

#include <cstdint>

namespace phimap {

// Adjacent panels and the rows they are applied to.
template <typename T>
struct PanelTask {
  const T* elements;       // of the whole matrix
  const int64_t* offsets;  // of each panel in `elements`
  const int64_t* heights;  // rows stored of each panel, never falling; what lies below is zero
  int64_t left_height;     // of one panel: rows of which its left vector is not zero
  int64_t panels;
  const T* z;  // rows × depth
  int64_t z_stride;
  int64_t rows;
  // Row i's results go to y[i] + first_column, in whole panels.
  T* const* y;
  int64_t first_column;
  bool* finite;    // null, or finite[i] becomes false where row i has a result that is not
  const T* ahead;  // the panel that comes next, or any memory; only ever prefetched
  // Memory at results[i] + first_result is needed when row i is done; only prefetched.
  T* const* results;
  int64_t first_result;
};

// Columns of a panel: two vectors.
template <typename T>
int64_t PanelColumns();
template <>
int64_t PanelColumns<float>();
template <>
int64_t PanelColumns<double>();

// Number of panels that `rows` rows are applied to at the same time. A task has that many panels,
// or fewer at the end of the matrix.
int64_t PanelsAtOnce(int64_t rows);

// The results of a task by the chains of arithmetic 1 (panel_product.h), of products or of L1
// distances.
void MultiplyPanels(const PanelTask<float>& task);
void MultiplyPanels(const PanelTask<double>& task);
void DistancePanels(const PanelTask<float>& task);
void DistancePanels(const PanelTask<double>& task);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_PANEL_KERNELS_H_
