#include "core/learn/liblinear.h"

#include <linear.h>

#include <memory>
#include <mutex>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Maximum number of rows, and of columns. liblinear counts both in int.
constexpr int64_t kMost = (int64_t{1} << 31) - 2;

// The rows in liblinear's format. Each row lists the index (from 1) and value of every number that
// is not 0, then the bias, then an end mark.
class Nodes {
 public:
  Nodes(ConstMatrixView<double> rows, double bias) {
    std::vector<size_t> first;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      first.push_back(nodes_.size());
      for (int64_t k = 0; k < rows.cols(); ++k) {
        if (rows(i, k) != 0) Push(k, rows(i, k));
      }
      if (bias > 0) Push(rows.cols(), bias);
      nodes_.push_back({.index = -1, .value = 0});
    }
    for (const size_t begin : first) rows_.push_back(nodes_.data() + begin);
  }

  feature_node** rows() { return rows_.data(); }
  // Makes every row look empty until Restore is called.
  void Blank() {
    for (feature_node* row : rows_) {
      first_indices_.push_back(row->index);
      row->index = -1;
    }
  }
  void Restore() {
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i]->index = first_indices_[i];
  }

 private:
  void Push(int64_t column, double value) {
    nodes_.push_back({.index = static_cast<int>(column) + 1, .value = value});
  }

  std::vector<feature_node> nodes_;
  std::vector<feature_node*> rows_;
  std::vector<int> first_indices_;
};

// Number of Newton steps during which LiblinearWatch keeps the rows empty.
constexpr int64_t kBlankSteps = 100;

// Cancels training, for which liblinear has no function of its own. But liblinear prints a line at
// each step, on the training thread, and reads rows that we own. A LiblinearWatch turns each line
// into a checkpoint.
//
// If the checkpoint fails, the LiblinearWatch makes the rows empty for 100 steps, which take some
// microseconds each. With empty rows, every loss is that of the score 0, so the objective is at
// least its value at w = 0, and no step improves it. So each step is refused, and at least halves
// the trust region. When the rows are restored, the next step has less than 2^-100 of its original
// length and changes nothing, so the solver ends.
class LiblinearWatch {
 public:
  LiblinearWatch(Nodes& nodes, Checkpoint checkpoint) : nodes_(nodes), checkpoint_(checkpoint) {
    // liblinear has a single print function for all threads. It passes the line to the watch of the
    // calling thread.
    static std::once_flag once;
    std::call_once(once, [] { set_print_string_function(&LiblinearWatch::OnLine); });
    current_ = this;
  }
  ~LiblinearWatch() { current_ = nullptr; }
  LiblinearWatch(const LiblinearWatch&) = delete;
  LiblinearWatch& operator=(const LiblinearWatch&) = delete;

  // Called when problem `index` of `count` begins.
  void Begin(int32_t index, int32_t count) {
    index_ = index;
    count_ = count;
    steps_ = 0;
    Look();
  }
  const absl::Status& status() const { return status_; }
  int64_t total_steps() const { return total_steps_; }

 private:
  static void OnLine(const char* line) {
    // A line that begins with "iter" marks a new step. Other lines are printed within a step.
    if (current_ != nullptr && absl::StartsWith(line, "iter")) current_->OnStep();
  }

  void OnStep() {
    if (!status_.ok()) {
      if (++blank_steps_ == kBlankSteps) nodes_.Restore();
      return;
    }
    ++steps_;
    ++total_steps_;
    Look();
    if (!status_.ok()) nodes_.Blank();
  }

  void Look() {
    // The number of steps of a problem is unknown; usually it is about ten.
    const double share = static_cast<double>(steps_) / (static_cast<double>(steps_) + 10);
    status_ = checkpoint_((index_ + share) / count_);
  }

  static thread_local LiblinearWatch* current_;

  Nodes& nodes_;
  Checkpoint checkpoint_;
  absl::Status status_;
  int32_t index_ = 0;
  int32_t count_ = 1;
  int64_t steps_ = 0;
  int64_t total_steps_ = 0;
  int64_t blank_steps_ = 0;
};

thread_local LiblinearWatch* LiblinearWatch::current_ = nullptr;

struct LiblinearModelDeleter {
  void operator()(model* trained) const { free_and_destroy_model(&trained); }
};

int SolverOf(LiblinearObjective::Loss loss) {
  switch (loss) {
    case LiblinearObjective::Loss::kSquaredHinge:
      return L2R_L2LOSS_SVC;
    case LiblinearObjective::Loss::kLogistic:
      return L2R_LR;
    case LiblinearObjective::Loss::kSquaredDistance:
      return L2R_L2LOSS_SVR;
  }
  PHIMAP_CHECK(false);
}

// Whether a target equals `side`.
bool HasSide(const problem& input, double side) {
  return std::find(input.y, input.y + input.l, side) != input.y + input.l;
}

// Computes w. For targets of ±1, w·x is positive on the side of 1.
void Solve(const problem& input, const LiblinearObjective& objective, const SideWeights& weights,
           double* w) {
  parameter parameters{};
  parameters.solver_type = SolverOf(objective.loss);
  parameters.C = objective.C;
  parameters.eps = objective.tolerance;
  parameters.p = objective.epsilon;
  // liblinear complains about the weight of a side that has no rows.
  std::vector<int> labels;
  std::vector<double> of_label;
  const auto weigh = [&](int side, double weight) {
    if (weight == 1 || !HasSide(input, side)) return;
    labels.push_back(side);
    of_label.push_back(weight);
  };
  weigh(1, weights.positive);
  weigh(-1, weights.negative);
  parameters.nr_weight = static_cast<int>(labels.size());
  parameters.weight_label = labels.data();
  parameters.weight = of_label.data();
  PHIMAP_CHECK(check_parameter(&input, &parameters) == nullptr);
  const std::unique_ptr<model, LiblinearModelDeleter> trained(train(&input, &parameters));
  // liblinear's weights are positive for the first label in its list. That label is −1 only if no
  // row has the label +1; the signs are then reversed. A regression has no labels.
  const int sign = trained->label == nullptr ? 1 : trained->label[0];
  for (int k = 0; k < input.n; ++k) w[k] = sign * trained->w[k];
}

}  // namespace

absl::StatusOr<LiblinearSolution> SolveByLiblinear(
    absl::string_view learner, ConstMatrixView<double> rows, const LiblinearObjective& objective,
    int32_t problems,
    absl::FunctionRef<SideWeights(int32_t problem, absl::Span<double> targets)> set_targets,
    Checkpoint checkpoint) {
  const int64_t n = rows.rows();
  if (n > kMost) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kRowsTooMany, "rows",
                     absl::StrCat(learner, " takes at most ", kMost, " rows, got ", n));
  }
  Nodes nodes(rows, objective.bias);
  std::vector<double> targets(static_cast<size_t>(n));
  const problem input{.l = static_cast<int>(n),
                      .n = static_cast<int>(rows.cols()) + (objective.bias > 0 ? 1 : 0),
                      .y = targets.data(),
                      .x = nodes.rows(),
                      .bias = objective.bias > 0 ? objective.bias : -1};
  LiblinearSolution solution{.w = Matrix<double>(problems, input.n)};
  LiblinearWatch watch(nodes, checkpoint);
  for (int32_t i = 0; i < problems; ++i) {
    const SideWeights weights = set_targets(i, absl::MakeSpan(targets));
    watch.Begin(i, problems);
    PHIMAP_RETURN_IF_ERROR(watch.status());
    Solve(input, objective, weights, solution.w.row(i));
    PHIMAP_RETURN_IF_ERROR(watch.status());
  }
  solution.newton_steps = watch.total_steps();
  return solution;
}

double LiblinearBytes(const ParameterValues&, const TrainingShape& shape) {
  return 16 * shape.rows * (shape.columns + 2) + 32 * shape.rows;
}

}  // namespace phimap
