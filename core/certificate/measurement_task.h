// Input of a measurement on held-out rows.
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

// Minimum number of held-out rows. With fewer, nothing is measured.
inline constexpr int64_t kMinHeldOutRows = 20;

// Values of a remote kernel on the held-out rows.
struct KnownKernel {
  // K(x, x) of each row.
  std::vector<double> diagonal;
  // Kernel values of each tile of pairs: rows begin .. end−1 by rows first .. end−1.
  std::vector<Matrix<double>> pairs;
};

// The part of a kernel that centring on landmarks removes. F(x)·F(y) of centred kernel PCA
// approximates K(x, y) − m(x) − m(y) + M, the inner product of φ(x) and φ(y) after subtracting the
// landmarks' mean in φ-space from both.
struct KernelCentre {
  // m(x) of each held-out row: the mean of K(x, x_i) over the landmarks x_i.
  std::vector<double> means;
  // M: the mean of m over the landmarks.
  double mean = 0;
};

// The plans to measure, and the kernel to compare them with. Views must outlive the call.
struct MeasurementTask {
  // The plan as served, and the same plan in float64 without any rounding to the serving type.
  const Plan* served = nullptr;
  const Plan* reference = nullptr;
  // Held-out rows before the input stage, h×p. REQUIRES: no gaps between rows.
  ConstMatrixView<double> rows;
  // If examples are strings: the strings, where each of `rows` holds the index of one. Null for
  // rows of numbers.
  const std::vector<std::string>* strings = nullptr;
  // The held-out rows for the reference plan and for the kernel. If empty, `rows` is used.
  ConstMatrixView<double> reference_rows;
  // The kernel that F(x)·F(y) approximates, on rows after the plan's input stage, or after
  // `kernel_input` if the plan's input stage projects. If this is nullopt and `known` is null, only
  // the serving error and mean_squared_norm are measured (as for F1, whose features are
  // similarities).
  std::optional<KernelProgram> kernel;
  const InputStage* kernel_input = nullptr;
  // Values of a remote kernel on the rows, which replace `kernel`. `rows` then holds the engine's
  // input: K of each row with the plan's landmarks, which are the pivots of F2 and F3, and K(x, x).
  const KnownKernel* known = nullptr;
  // Centre of the kernel if features approximate the centred kernel; null if they approximate K.
  const KernelCentre* centre = nullptr;
  // F2, F3: pivots after the input stage (r×p) and their Cholesky factor (r×r, lower); empty
  // otherwise.
  ConstMatrixView<double> pivots;
  ConstMatrixView<double> factor;
  // F2: the features are the coordinates of the projection, so ρ is computed from them.
  bool features_are_projection = false;
  // F2: computes the served ρ, whose bound on the kernel error is checked. Null if it is not
  // checked.
  const Residual* residual = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_MEASUREMENT_TASK_H_
