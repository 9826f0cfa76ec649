// The vector loops of PanelMatrix, which multiply rows by adjacent panels on the vector unit of
// this process. Only panel_product.cc uses them.
#ifndef PHIMAP_CORE_LINALG_PANEL_KERNELS_H_
#define PHIMAP_CORE_LINALG_PANEL_KERNELS_H_

#include <cstdint>

namespace phimap {

// Adjacent panels and the rows they are applied to.
template <typename T>
struct PanelTask {
  const T* elements;       // of the whole matrix
  const int64_t* offsets;  // of each panel in `elements`
  const int64_t* heights;  // number of stored rows of each panel, never falling; other rows are 0
  int64_t left_height;     // for a single panel: rows in which its left vector is not zero
  int64_t panels;
  const T* z;  // rows × depth
  int64_t z_stride;
  int64_t rows;
  // Row i's results go to y[i] + first_column, in whole panels.
  T* const* y;
  int64_t first_column;
  bool* finite;    // null, or finite[i] becomes false if row i has a non-finite result
  const T* ahead;  // the panel that comes next, or any memory; only prefetched
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

// Compute the results of a task by the chains of arithmetic 1 (panel_product.h). MultiplyPanels
// computes products, DistancePanels computes L1 distances.
void MultiplyPanels(const PanelTask<float>& task);
void MultiplyPanels(const PanelTask<double>& task);
void DistancePanels(const PanelTask<float>& task);
void DistancePanels(const PanelTask<double>& task);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_PANEL_KERNELS_H_
