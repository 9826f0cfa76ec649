// Measuring a plan on held-out rows: what goes into its certificate.
#ifndef PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_
#define PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"
#include "core/plan/plan.h"
#include "core/plan/residual.h"

namespace phimap {

// Fewest rows on which anything is measured.
inline constexpr int64_t kMinHeldOutRows = 20;

// Pairs of held-out rows that the kernel error is measured on: each row of begin .. end−1 with
// those before it from `first` on.
struct PairTile {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first = 0;
};

// Of h held-out rows: how many tiles there are, and the t-th.
int64_t PairTileCount(int64_t rows);
PairTile PairTileAt(int64_t rows, int64_t t);

// A kernel that nobody here computes, on the held-out rows.
struct KnownKernel {
  // K(x, x) of each row.
  std::vector<double> diagonal;
  // Of each tile of pairs: rows begin .. end−1 by rows first .. end−1.
  std::vector<Matrix<double>> pairs;
};

// What centring on m landmarks takes off a kernel: F(x)·F(y) of centred kernel PCA stands for
// K(x, y) − m(x) − m(y) + M, the inner product of φ(x) and φ(y) about the landmarks' mean.
struct KernelCentre {
  // m(x) of each held-out row: the mean of K(x, x_i) over the landmarks x_i.
  std::vector<double> means;
  // M: the mean of m over the landmarks.
  double mean = 0;
};

// What is measured, and against what. Views must outlive the call.
struct MeasurementTask {
  // The plan as served, and the same plan in float64 without any rounding to the serving type.
  const Plan* served = nullptr;
  const Plan* reference = nullptr;
  // Held-out rows as they came, h×p. REQUIRES: no gaps.
  ConstMatrixView<double> rows;
  // Of strings: where they are, by the places that rows of one number say; null of other rows.
  const std::vector<std::string>* strings = nullptr;
  // The same rows for the reference plan, and for the kernel; empty: as they came.
  ConstMatrixView<double> reference_rows;
  // The kernel, on rows that went through the input stage, or through `kernel_input` where that is
  // not null: what F(x)·F(y) stands for, if the plan's own stage projects; nullopt measures the
  // serving error only (F1: its features are similarities, not a factor of the kernel).
  std::optional<KernelProgram> kernel;
  const InputStage* kernel_input = nullptr;
  // In the place of the kernel: its values on the rows. `rows` are then what the engine takes, K of
  // each row with the plan's landmarks, which are the pivots of F2 and F3.
  const KnownKernel* known = nullptr;
  // Where features stand for the centred kernel; null: for K itself.
  const KernelCentre* centre = nullptr;
  // F2, F3: pivots after the input stage (r×p) and their Cholesky factor (r×r, lower); empty
  // otherwise.
  ConstMatrixView<double> pivots;
  ConstMatrixView<double> factor;
  // F2: its features are the coordinates of the projection, so that ρ needs no other.
  bool features_are_projection = false;
  // F2: what is served as ρ, whose bound on the kernel error is checked; null: not.
  const Residual* residual = nullptr;
};

// Fills in serving_error, mean_squared_norm, kernel_error with its interval and bound, and
// held_out_trace_residual with residual_share; a pair that breaks the bound of `residual` adds a
// warning. Under
// kMinHeldOutRows rows it measures nothing and adds a warning. Errors: FAILED_PRECONDITION
// (NOT_REPRESENTABLE) when a held-out row's features overflow the serving type. Cost: h transforms
// in either type, h²(p + d) + h r² multiplications; h² · 8 bytes in tiles of 256 rows.
absl::Status MeasureHeldOut(const MeasurementTask& task, const TileControl& control,
                            Certificate& certificate);

// A mapping that is to be measured, in numbers; for forecasts.
struct MeasurementShape {
  // Held-out rows and their columns.
  int64_t rows = 0;
  int64_t columns = 0;
  // Of the plan: its features, their count, what a row of it takes, and the numbers in its
  // matrices.
  int64_t output_columns = 0;
  Work row;
  int64_t plan_numbers = 0;
  // What one kernel value takes; nullopt: the kernel error is not measured.
  std::optional<ValueWork> value;
  // Landmarks that the kernel is centred on, with which each row is compared; 0: it is not. And
  // whether they are compared with each other too.
  int64_t centre_landmarks = 0;
  bool centre_gram = false;
  // Rank of the factor that rows are solved with for the trace residual; 0: they are not, for
  // there is none or the features are the projection.
  int64_t rank = 0;
};

// What MeasureHeldOut takes, and the bytes that it holds at most at one time.
Work WorkOfMeasurement(const MeasurementShape& shape);
int64_t BytesOfMeasurement(const MeasurementShape& shape, int threads);

// The plan's features of each row, widened to float64; of a plan of strings, of those whose places
// in `strings` the rows say. OUT_OF_RANGE as Engine, and whatever `control` returns between tiles.
absl::StatusOr<Matrix<double>> FeaturesOf(const Plan& plan, ConstMatrixView<double> rows,
                                          const TileControl& control,
                                          const std::vector<std::string>* strings = nullptr);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_
