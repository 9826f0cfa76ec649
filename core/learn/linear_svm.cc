// A linear support vector machine, trained by liblinear.
#include <linear.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

struct LinearSvmOptions {
  double C = 1;
  double tolerance = 0.01;
  double bias = 1;
};

// A linear support vector machine. For each class, a weight vector w is trained to separate the
// class from all others, with labels y = ±1. (With two classes, there is only one such problem.)
// Throughout, x stands for a row with `bias` appended. Training minimises
//
//   ½‖w‖² + C Σ_i max(0, 1 − y_i w·x_i)²
//
// by liblinear's primal solver (L2R_L2LOSS_SVC, a trust region Newton method). The solver stops
// after 1,000 steps, or earlier if the gradient is short enough: at most tolerance · max(1, min(n₊,
// n₋))/n times its length at w = 0. Here n is the number of rows, and n₊ and n₋ are the numbers of
// rows with y = 1 and y = −1. Training draws nothing at random, so the seed is not used. The scores
// are w·x.
//
// Memory: 16 bytes for each value that is not 0, and 8 bytes per row and per value of w.
// Cancel: takes effect at the next Newton step. A step makes about ten passes over the rows.
class LinearSvm : public Learner {
 public:
  explicit LinearSvm(const LinearSvmOptions& options) : options_(options) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const LinearSvmOptions options_;
};

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
// microseconds each. With empty rows the objective is at least C·n, its value at w = 0, and no step
// improves it. So each step is refused, and at least halves the trust region. When the rows are
// restored, the next step has less than 2^-100 of its original length and changes nothing, so the
// solver ends.
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

// Computes the separator that is positive for the label +1.
void Solve(const problem& input, const LinearSvmOptions& options, double* separator) {
  parameter parameters{};
  parameters.solver_type = L2R_L2LOSS_SVC;
  parameters.C = options.C;
  parameters.eps = options.tolerance;
  PHIMAP_CHECK(check_parameter(&input, &parameters) == nullptr);
  const std::unique_ptr<model, LiblinearModelDeleter> trained(train(&input, &parameters));
  // liblinear's weights are positive for the first label in its list. That label is −1 only if no
  // row has the label +1; the signs are then reversed.
  for (int k = 0; k < input.n; ++k) separator[k] = trained->label[0] * trained->w[k];
}

absl::StatusOr<std::unique_ptr<const Model>> LinearSvm::Train(const TrainingSet& examples,
                                                              uint64_t /*seed*/,
                                                              Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate());
  const int64_t n = examples.rows.rows();
  if (n > kMost) {
    return MakeError(absl::StatusCode::kInvalidArgument, "ROWS_TOO_MANY", "rows",
                     absl::StrCat("linear_svm takes at most ", kMost, " rows, got ", n));
  }
  Nodes nodes(examples.rows, options_.bias);
  std::vector<double> targets(static_cast<size_t>(n));
  const problem input{.l = static_cast<int>(n),
                      .n = static_cast<int>(examples.rows.cols()) + (options_.bias > 0 ? 1 : 0),
                      .y = targets.data(),
                      .x = nodes.rows(),
                      .bias = options_.bias > 0 ? options_.bias : -1};
  Matrix<double> separators(examples.class_count, input.n);
  LiblinearWatch watch(nodes, checkpoint);
  const bool two_classes = examples.class_count == 2;
  for (int32_t y = two_classes ? 1 : 0; y < examples.class_count; ++y) {
    for (int64_t i = 0; i < n; ++i) targets[i] = examples.labels[i] == y ? 1 : -1;
    watch.Begin(two_classes ? 0 : y, two_classes ? 1 : examples.class_count);
    PHIMAP_RETURN_IF_ERROR(watch.status());
    Solve(input, options_, separators.row(y));
    PHIMAP_RETURN_IF_ERROR(watch.status());
  }
  if (two_classes) {
    for (int k = 0; k < input.n; ++k) separators(0, k) = -separators(1, k);
  }
  return std::make_unique<const LinearModel>(SplitIntercepts(separators.view(), options_.bias),
                                             absl::StrCat(watch.total_steps(), " Newton steps"));
}

constexpr Parameter kLinearSvmParameters[] = {
    {.name = "C",
     .default_text = "1",
     .least = 0,
     .largest = 1e12,
     .above_least = true,
     .line = "weight of the rows' losses relative to ½‖w‖², for the separator w"},
    {.name = "tolerance",
     .default_text = "0.01",
     .least = 0,
     .largest = 1,
     .above_least = true,
     .line = "the solver's stopping tolerance"},
    {.name = "bias",
     .default_text = "1",
     .least = 0,
     .largest = 1e6,
     .line = "value of a constant feature, whose weight gives the intercept; with 0, separators go "
             "through the origin"},
};

}  // namespace

extern const LearnerType kLinearSvmType;
constinit const LearnerType kLinearSvmType = {
    .name = "linear_svm",
    .line = "linear support vector machine, squared hinge (liblinear)",
    .parameters = kLinearSvmParameters,
    .training_bytes =
        [](const ParameterValues&, const TrainingShape& shape) {
          return 16 * shape.rows * (shape.columns + 2) + 32 * shape.rows;
        },
    .make = [](const ParameterValues& values,
               const KernelInput&) -> std::unique_ptr<const Learner> {
      return std::make_unique<const LinearSvm>(
          LinearSvmOptions{.C = values.Number("C"),
                           .tolerance = values.Number("tolerance"),
                           .bias = values.Number("bias")});
    },
};

}  // namespace phimap
