// CountRule describes a rule by which a build finds how many landmarks suffice, such as
// landmarks=auto(residual=0.01).
#ifndef PHIMAP_CORE_LANDMARK_COUNT_RULE_H_
#define PHIMAP_CORE_LANDMARK_COUNT_RULE_H_

#include <cstdint>
#include <string>
#include <vector>

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
  // Rows as they are served: after the input stage, rounded to the serving type. `candidates` is an
  // m×p matrix whose first rows will be the landmarks. `deciding` is an h×p matrix of other rows,
  // which decide how many landmarks are enough.
  ConstMatrixView<double> candidates;
  ConstMatrixView<double> deciding;
  // The value that the user gave for CountRule::goal.
  double goal = 0;
  // Maximum number of landmarks, set by the caller. The pool may have fewer candidates.
  int64_t most = 0;
  // Unit round-off of the serving type.
  double unit = 0x1p-24;
};

struct LandmarkCount {
  int64_t landmarks = 0;
  // Text that completes the sentence "The number of landmarks was found by the build, which ".
  std::string how;
  // Warning for people if a limit was reached before the goal, or too few rows decided; it includes
  // the remedy. Empty if the goal was reached as promised.
  std::string warning;
};

// Size of a task, for forecasts. Forecasts assume that all candidates are tried.
struct CountShape {
  int64_t candidates = 0;
  int64_t deciding = 0;
  int64_t columns = 0;
  ValueWork value;
};

// Descriptor of a rule. Each rule is defined in a file of its own and listed in count_rule.cc.
struct CountRule {
  // Name of the rule in texts, for example "auto". In texts the rule is a call with two parameters,
  // such as auto(residual=0.01, most=2048). The first parameter is `goal`. The second is `most`,
  // the largest number of landmarks.
  absl::string_view name;
  Parameter goal;
  // A clause for the help text of `landmarks`, such as "auto(residual=0.01) finds the number".
  absl::string_view line;
  // Whether the kernel must be known to be positive semidefinite.
  bool needs_definite_kernel = false;
  // Why the rule refuses remote kernels, as part of the error message. Empty if the rule accepts
  // them.
  absl::string_view no_remote;

  // Finds the number of landmarks. The result depends on the task and on OpenBLAS's CPU type, but
  // not on the number of threads. REQUIRES: m ≥ 1.
  absl::StatusOr<LandmarkCount> (*find)(const CountTask& task,
                                        const TileControl& control) = nullptr;
  // Work of `find`, and its memory including the rows.
  Work (*work)(const CountShape& shape) = nullptr;
  int64_t (*bytes)(const CountShape& shape) = nullptr;
};

// Returns all rules by which a build can find the number of landmarks. Thread-safe.
const std::vector<const CountRule*>& CountRules();

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_COUNT_RULE_H_
