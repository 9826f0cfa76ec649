// Measures a plan on held-out rows, for its certificate.
#ifndef PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_
#define PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/certificate/certificate.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"
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

// Measures errors on held-out rows, and fills in serving_error, mean_squared_norm, kernel_error
// with its interval and bound, held_out_trace_residual, residual_share and serving_share. Adds a
// warning if the error of a pair exceeds the bound of `residual`. If there are fewer than
// kMinHeldOutRows rows, measures nothing and adds a warning.
//
// Errors: FAILED_PRECONDITION (VALUE_NOT_REPRESENTABLE) if a held-out row's features overflow;
//         those of `control`.
// Cost:   for h rows of p columns, d features and rank r, each plan transforms h rows. The rest
//         takes about 256·h·(p + d) + h·r² multiplications, because each row is compared with up to
//         256 rows. BytesOfMeasurement of memory.
absl::Status MeasureHeldOut(const MeasurementTask& task, const TileControl& control,
                            Certificate& certificate);

// Sizes of a mapping to be measured, for forecasts.
struct MeasurementShape {
  // Number of held-out rows, and of their columns.
  int64_t rows = 0;
  int64_t columns = 0;
  // The plan: number of features, work per row, and how many numbers its matrices have.
  int64_t output_columns = 0;
  Work row;
  int64_t plan_numbers = 0;
  // Work of one kernel value. Unset if the kernel error is not measured.
  std::optional<ValueWork> value;
  // centre_landmarks is the number of landmarks on which the kernel is centred, or 0 if it is not
  // centred. Each row is compared with each of these landmarks. If centre_gram is true, the
  // landmarks are also compared with each other.
  int64_t centre_landmarks = 0;
  bool centre_gram = false;
  // Rank of the factor with which the residuals of rows are computed. 0 if there is no factor, or
  // if the features are the coordinates of the projection, which give the residuals directly.
  int64_t rank = 0;
  // Whether the plan is served in float32, which is then compared with float64.
  bool is_float32 = false;
};

// WorkOfMeasurement returns the work of MeasureHeldOut, BytesOfMeasurement its peak memory in
// bytes.
Work WorkOfMeasurement(const MeasurementShape& shape);
int64_t BytesOfMeasurement(const MeasurementShape& shape, int threads);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_
