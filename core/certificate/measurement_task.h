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

// Minimum number of held-out rows for any measurement.
inline constexpr int64_t kMinHeldOutRows = 20;

// Values of a remote kernel on the held-out rows.
struct KnownKernel {
  // K(x, x) of each row.
  std::vector<double> diagonal;
  // Kernel values of each tile of pairs: rows begin .. end−1 by rows first .. end−1.
  std::vector<Matrix<double>> pairs;
};

// The part of a kernel that centring on landmarks removes. Centring subtracts the landmarks' mean
// in φ-space from φ(x) and φ(y). Their inner product is then K(x, y) − m(x) − m(y) + M. The
// features F of centred kernel PCA approximate it by F(x)·F(y). m(x) is `means`, and M is `mean`.
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
  // If examples are strings: the strings; each row of `rows` then holds the index of a string. Null
  // for rows of numbers.
  const std::vector<std::string>* strings = nullptr;
  // The held-out rows as the reference plan and the kernel take them. If empty, `rows` is used.
  ConstMatrixView<double> reference_rows;
  // The kernel that F(x)·F(y) approximates. It takes rows after the plan's input stage. If that
  // stage projects, it takes rows after `kernel_input` instead. If `kernel` is nullopt and `known`
  // is null, only the serving error and mean_squared_norm are measured. This is so for F1, whose
  // features are similarities.
  std::optional<KernelProgram> kernel;
  const InputStage* kernel_input = nullptr;
  // (ΣK(x, x))²/(n·ΣK(x, x)²) over n rows of the pool: the share of them that carries the kernel. 1
  // if unknown.
  double pool_share = 1;
  // Values of a remote kernel on the rows. If not null, they replace `kernel`. `rows` then holds
  // the engine's input: for each row x, the values of K(x, a) for the plan's landmarks a, followed
  // by K(x, x). For F2 and F3, these landmarks are the pivots.
  const KnownKernel* known = nullptr;
  // Centre of the kernel if features approximate the centred kernel; null if they approximate K.
  const KernelCentre* centre = nullptr;
  // F2, F3: pivots after the input stage (r×p) and their Cholesky factor (r×r, lower); empty
  // otherwise.
  ConstMatrixView<double> pivots;
  ConstMatrixView<double> factor;
  // F2: the features are the coordinates of the projection, so ρ is computed from them.
  bool features_are_projection = false;
  // F2: computes ρ as served, and its allowance. The measurement checks the bound that both
  // together set to the kernel error. Null if the bound is not checked.
  const Residual* residual = nullptr;
  // Output, if not null: the features of the rows from the plan as served. Left alone if nothing is
  // measured.
  Matrix<double>* served_features = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_MEASUREMENT_TASK_H_
