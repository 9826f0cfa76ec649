// A measurement of a plan on held-out rows, and what it is compared with.
#ifndef PHIMAP_CORE_CERTIFICATE_MEASUREMENT_TASK_H_
#define PHIMAP_CORE_CERTIFICATE_MEASUREMENT_TASK_H_

#include <optional>
#include <string>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/plan/plan.h"
#include "core/plan/residual.h"

namespace phimap {

// Fewest rows on which anything is measured.
inline constexpr int64_t kMinHeldOutRows = 20;

// Values of a remote kernel on the held-out rows.
struct KnownKernel {
  // K(x, x) of each row.
  std::vector<double> diagonal;
  // Kernel values of each tile of pairs: rows begin .. end−1 by rows first .. end−1.
  std::vector<Matrix<double>> pairs;
};

// The part of a kernel that centring on m landmarks removes: F(x)·F(y) of centred kernel PCA
// approximates K(x, y) − m(x) − m(y) + M, the inner product of φ(x) and φ(y) about the landmarks'
// mean.
struct KernelCentre {
  // m(x) of each held-out row: the mean of K(x, x_i) over the landmarks x_i.
  std::vector<double> means;
  // M: the mean of m over the landmarks.
  double mean = 0;
};

// Input of a measurement. Views must outlive the call.
struct MeasurementTask {
  // The plan as served, and the same plan in float64 without any rounding to the serving type.
  const Plan* served = nullptr;
  const Plan* reference = nullptr;
  // Held-out rows before the input stage, h×p. REQUIRES: no gaps between rows.
  ConstMatrixView<double> rows;
  // Strings, indexed by the number that each row consists of; null for other rows.
  const std::vector<std::string>* strings = nullptr;
  // The held-out rows for the reference plan, and for the kernel; empty: `rows`.
  ConstMatrixView<double> reference_rows;
  // The kernel that F(x)·F(y) approximates, on rows after the input stage, or after `kernel_input`
  // if the plan's own stage projects; nullopt measures the serving error only (F1: its features are
  // similarities, not a factor of the kernel).
  std::optional<KernelProgram> kernel;
  const InputStage* kernel_input = nullptr;
  // Replaces the kernel by its values on the rows. `rows` are then the engine's input, K of each
  // row with the plan's landmarks, which are the pivots of F2 and F3.
  const KnownKernel* known = nullptr;
  // Set if the features approximate the centred kernel; null if they approximate K.
  const KernelCentre* centre = nullptr;
  // F2, F3: pivots after the input stage (r×p) and their Cholesky factor (r×r, lower); empty
  // otherwise.
  ConstMatrixView<double> pivots;
  ConstMatrixView<double> factor;
  // F2: the features are the coordinates of the projection, so ρ is computed from them.
  bool features_are_projection = false;
  // F2: the ρ that is served, whose bound on the kernel error is checked; null: not checked.
  const Residual* residual = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_MEASUREMENT_TASK_H_
