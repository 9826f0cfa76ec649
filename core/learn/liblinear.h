// Linear models that liblinear trains with its primal solver, a trust region Newton method (Fan,
// Chang, Hsieh, Wang, Lin 2008; Lin, Weng, Keerthi 2008; Ho, Lin 2012). Progress and cancellation,
// for which liblinear has no functions, work through the lines that it prints and the rows that it
// reads.
//
// The liblinear of Debian 12, 2.30, has weights for the two sides of a problem, but none for single
// rows, so no learner on top of it takes weights of rows.
#ifndef PHIMAP_CORE_LEARN_LIBLINEAR_H_
#define PHIMAP_CORE_LEARN_LIBLINEAR_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/kernel/parameter.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"

namespace phimap {

// The parameters that all learners of this file share: C, tolerance and bias.
inline constexpr absl::string_view kChosenC[] = {"auto"};
inline constexpr Parameter kLiblinearC = {
    .name = "C",
    .default_text = "1",
    .least = 0,
    .largest = 1e12,
    .above_least = true,
    .words = kChosenC,
    .line =
        "weight of the rows' losses relative to ½‖w‖², for the separator w; auto, in a training, "
        "tries powers of ten from 0.01 to 1,000 on validation rows"};
inline constexpr Parameter kLiblinearTolerance = {.name = "tolerance",
                                                  .default_text = "0.01",
                                                  .least = 0,
                                                  .largest = 1,
                                                  .above_least = true,
                                                  .line = "the solver's stopping tolerance"};
inline constexpr Parameter kLiblinearBias = {
    .name = "bias",
    .default_text = "1",
    .least = 0,
    .largest = 1e6,
    .line =
        "value of a constant feature, whose weight gives the intercept; with 0, separators go "
        "through the origin"};

// ½‖w‖² + C Σ_i c_i·loss(w·x_i, t_i), where x stands for a row with `bias` appended, unless that is
// 0, and c_i is a weight that the rows of a side share.
struct LiblinearObjective {
  enum class Loss {
    kSquaredHinge,     // max(0, 1 − t·s)², t = ±1
    kLogistic,         // log(1 + exp(−t·s)), t = ±1
    kSquaredDistance,  // max(0, |s − t| − epsilon)²
  };
  Loss loss = Loss::kSquaredHinge;
  double C = 1;
  double epsilon = 0;
  double bias = 1;
  // The solver stops after 1,000 steps, or earlier if the gradient is short enough: at most
  // tolerance·r times its length at w = 0. For targets of ±1, r is max(1, min(n₊, n₋))/n, with n₊
  // and n₋ of the n rows on either side; otherwise it is 1.
  double tolerance = 0.01;
};

// The weights c of the rows with the targets 1 and −1.
struct SideWeights {
  double positive = 1;
  double negative = 1;
};

struct LiblinearSolution {
  // The w of each problem. The weight of the constant feature, if there is one, is the last.
  Matrix<double> w;
  // Newton steps of all problems together.
  int64_t newton_steps = 0;
};

// Solves `problems` problems on the same rows. `set_targets` sets the n targets of a problem, and
// returns the weights of its sides, which must be 1 for kSquaredDistance. Draws nothing at random.
//
// Errors: INVALID_ARGUMENT (ROWS_TOO_MANY) if there are more than 2³¹ − 2 rows, which `learner`
//         cannot take; those of the checkpoint.
// Memory: LiblinearBytes.
// Cancel: takes effect at the next Newton step. A step makes about ten passes over the rows.
absl::StatusOr<LiblinearSolution> SolveByLiblinear(
    absl::string_view learner, ConstMatrixView<double> rows, const LiblinearObjective& objective,
    int32_t problems,
    absl::FunctionRef<SideWeights(int32_t problem, absl::Span<double> targets)> set_targets,
    Checkpoint checkpoint);

// 16 bytes for each value that is not 0, and 8 bytes per row and per value of w. Serves as
// LearnerType::training_bytes.
double LiblinearBytes(const ParameterValues& values, const TrainingShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LIBLINEAR_H_
