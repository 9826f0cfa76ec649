// A rule by which a build finds how many landmarks suffice, such as landmarks=auto(residual=0.01),
// described in one descriptor.
#ifndef PHIMAP_CORE_LANDMARK_COUNT_RULE_H_
#define PHIMAP_CORE_LANDMARK_COUNT_RULE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_work.h"
#include "core/kernel/parameter.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"

namespace phimap {

struct CountTask {
  const KernelProgram& kernel;
  // Rows as they are served: after the input stage, rounded to the serving type. The landmarks are
  // the first of the candidates m×p. The deciding rows h×p are disjoint from the candidates.
  ConstMatrixView<double> candidates;
  ConstMatrixView<double> deciding;
  // Value of CountRule::goal.
  double goal = 0;
  // The limit that the caller set. The pool may have fewer candidates.
  int64_t most = 0;
  // Unit round-off of the serving type.
  double unit = 0x1p-24;
};

struct LandmarkCount {
  int64_t landmarks = 0;
  // Continues "The number of landmarks was found by the build, which ".
  std::string how;
  // Warning for people if a limit came before the goal, with the remedy; empty if the goal was
  // reached.
  std::string warning;
};

// Size of a task, for forecasts, which assume that all candidates are tried.
struct CountShape {
  int64_t candidates = 0;
  int64_t deciding = 0;
  int64_t columns = 0;
  ValueWork value;
};

// Each rule is defined in a file of its own and listed in count_rules.h.
struct CountRule {
  // Name of the call in texts. The call has two parameters: the goal, and `most`, the largest
  // number of landmarks.
  absl::string_view name;
  Parameter goal;
  // A clause for the help of `landmarks`: "auto(residual=0.01) finds the number".
  absl::string_view line;
  // The kernel must be known to be positive semidefinite.
  bool needs_definite_kernel = false;
  // Message that refuses remote kernels; empty: they are accepted.
  absl::string_view no_remote;

  // A function of the task (per BLAS core), for any number of threads. REQUIRES: m ≥ 1.
  absl::StatusOr<LandmarkCount> (*find)(const CountTask& task,
                                        const TileControl& control) = nullptr;
  // Cost of finding, and its memory, rows included.
  Work (*work)(const CountShape& shape) = nullptr;
  int64_t (*bytes)(const CountShape& shape) = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_COUNT_RULE_H_
