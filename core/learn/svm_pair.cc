#include "core/learn/svm_pair.h"

#include <libsvm/svm.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>

#include "core/kernel/kernel_block.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kTileRows = 256;
// Share of a pair's time that computing the kernel values takes. It is a guess, used only for
// progress reports.
constexpr double kGramShare = 0.5;

// The Gram matrix in libsvm's format for a precomputed kernel: row i holds its own number i,
// counted from 1, then K(x_i, x_1), K(x_i, x_2) …
class GramNodes {
 public:
  explicit GramNodes(int64_t n) : n_(n), nodes_(static_cast<size_t>(n * (n + 1))) {
    for (int64_t i = 0; i < n; ++i) {
      rows_.push_back(nodes_.data() + i * (n + 1));
      *rows_.back() = {.index = 0, .value = static_cast<double>(i + 1)};
    }
  }

  absl::Status Fill(const KernelProgram& kernel, ConstMatrixView<double> rows,
                    Checkpoint checkpoint) {
    const std::vector<double> norms = SquaredNorms(rows);
    Matrix<double> tile = Matrix<double>::Uninit(std::min(kTileRows, n_), n_);
    for (int64_t first = 0; first < n_; first += kTileRows) {
      PHIMAP_RETURN_IF_ERROR(
          checkpoint(kGramShare * static_cast<double>(first) / static_cast<double>(n_)));
      const int64_t count = std::min(kTileRows, n_ - first);
      const std::vector<double> tile_norms(norms.begin() + first, norms.begin() + first + count);
      KernelBlock(kernel, rows.Rows(first, count), tile_norms, rows, norms,
                  tile.view().Rows(0, count));
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < n_; ++j) {
          rows_[first + i][j + 1] = {.index = static_cast<int>(j + 1), .value = tile(i, j)};
        }
      }
    }
    return absl::OkStatus();
  }

  svm_node** rows() { return rows_.data(); }

  // Sets every kernel value to NaN. Leaves the row numbers unchanged.
  void Spoil() {
    for (svm_node* row : rows_) {
      for (int64_t j = 1; j <= n_; ++j) row[j].value = std::numeric_limits<double>::quiet_NaN();
    }
  }

 private:
  int64_t n_;
  std::vector<svm_node> nodes_;
  std::vector<svm_node*> rows_;
};

// Cancels training, for which libsvm has no function of its own. But libsvm prints a dot every
// 1,000 steps, on the training thread, and reads values that we own. A Watch turns each dot into a
// checkpoint. If the checkpoint fails, the Watch sets the values to NaN. A comparison with NaN is
// false, so no pair of rows violates a condition, and the solver ends.
class Watch {
 public:
  Watch(GramNodes& nodes, Checkpoint checkpoint) : nodes_(nodes), checkpoint_(checkpoint) {
    // libsvm has a single print function for all threads. It passes the dot to the watch of the
    // calling thread.
    static std::once_flag once;
    std::call_once(once, [] { svm_set_print_string_function(&Watch::OnText); });
    current_ = this;
  }
  ~Watch() { current_ = nullptr; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  const absl::Status& status() const { return status_; }

 private:
  static void OnText(const char* text) {
    if (current_ != nullptr && text[0] == '.') current_->Look();
  }

  void Look() {
    if (!status_.ok()) return;
    // The number of steps is unknown, so the progress approaches 1 without reaching it.
    ++looks_;
    const double share = looks_ / (looks_ + 10);
    status_ = checkpoint_(kGramShare + (1 - kGramShare) * share);
    if (!status_.ok()) nodes_.Spoil();
  }

  static thread_local Watch* current_;

  GramNodes& nodes_;
  Checkpoint checkpoint_;
  absl::Status status_;
  double looks_ = 0;
};

thread_local Watch* Watch::current_ = nullptr;

svm_parameter Parameters(int64_t n, double C, double tolerance) {
  svm_parameter parameters{};
  parameters.svm_type = C_SVC;
  parameters.kernel_type = PRECOMPUTED;
  parameters.C = C;
  parameters.eps = tolerance;
  parameters.shrinking = 1;
  // The cache size is in MiB: a quarter of the matrix as float32. It is small on purpose, because
  // copying a row is cheap, and a solver notices the NaNs only in rows that it reads again.
  parameters.cache_size =
      std::max(0.01, static_cast<double>(n) * static_cast<double>(n) / (1 << 20));
  return parameters;
}

struct ModelDeleter {
  void operator()(svm_model* model) const { svm_free_and_destroy_model(&model); }
};

}  // namespace

absl::StatusOr<PairSeparator> SolveSvmPair(const KernelProgram& kernel,
                                           ConstMatrixView<double> rows, int64_t positive, double C,
                                           double tolerance, Checkpoint checkpoint) {
  const int64_t n = rows.rows();
  PHIMAP_CHECK(n >= 1 && positive >= 0 && positive <= n);
  PairSeparator separator{.coefficients = std::vector<double>(static_cast<size_t>(n)), .offset = 0};
  if (positive == 0 || positive == n) {
    separator.offset = positive == n ? 1 : -1;
    return separator;
  }
  GramNodes nodes(n);
  PHIMAP_RETURN_IF_ERROR(nodes.Fill(kernel, rows, checkpoint));
  // libsvm takes the label it sees first as positive.
  std::vector<double> labels(static_cast<size_t>(n), -1);
  std::fill_n(labels.begin(), positive, 1);
  const svm_problem problem{.l = static_cast<int>(n), .y = labels.data(), .x = nodes.rows()};
  const svm_parameter parameters = Parameters(n, C, tolerance);
  PHIMAP_CHECK(svm_check_parameter(&problem, &parameters) == nullptr);
  Watch watch(nodes, checkpoint);
  const std::unique_ptr<svm_model, ModelDeleter> model(svm_train(&problem, &parameters));
  PHIMAP_RETURN_IF_ERROR(watch.status());
  for (int s = 0; s < model->l; ++s) {
    separator.coefficients[model->sv_indices[s] - 1] = model->sv_coef[0][s];
  }
  separator.offset = -model->rho[0];
  return separator;
}

}  // namespace phimap
