// Random separators, and boosting on them.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/linalg/blas.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"

namespace phimap {

extern const LearnerType kWeakLearnerType;

namespace {

struct WeakLearnerOptions {
  int64_t rounds = 100;
  double margin = 0.1;
  int64_t draws = 1000;
  double bias = 0;

  // The largest error at which a separator is accepted.
  double Threshold() const { return 0.5 - margin / 6; }
};

// Boosting on random separators. A separator classifies a row x by the sign of h·x, where h is
// uniform on the unit sphere. If `bias` is not 0, x stands for (x, bias); the papers have no bias.
//
// Weak learner (Blum 2005, Algorithm 1): separators are drawn until one has a weighted error of at
// most 1/2 − γ/6 on the rows, where γ = `margin`. (γ/6 is from the paper's footnote 2; its γ/4 is
// for the true error.) Suppose that some separator through the origin classifies the rows with
// margin γ. Then each draw succeeds with probability at least WeakLearnerSuccess
// (core/theory/projection_bounds.h), for any weights of the rows. If none of `draws` draws
// succeeds, the draw with the smallest error is used, if that error is below 1/2. The summary then
// reports this.
//
// AdaBoost (Freund, Schapire 1997) combines `rounds` of these separators. In each round, the
// weights of the rows depend on the errors of the previous rounds. A separator with the weighted
// error ε votes with the weight ½ ln((1 − ε)/ε). If round t has the error ε_t, the share of
// misclassified rows is at most Π_t 2√(ε_t(1 − ε_t)). A separator without error ends the boosting,
// and is then the only one that votes. With one round, the learner is Algorithm 1 itself.
//
// Each class is learned against the rest. (With two classes, there is only one such problem.) The
// score of a class is the weight of the votes for it, minus the weight of the votes against it,
// divided by the weight of all votes. Scores are between −1 and 1.
//
// Cost: 2·n·p flops per drawn separator for n rows of p columns, in matrix products.
class WeakLearner : public Learner {
 public:
  explicit WeakLearner(const WeakLearnerOptions& options) : options_(options) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const WeakLearnerOptions options_;
};

// Separators that are drawn and measured together: enough for an efficient matrix product, and few
// enough to waste little work if the first is good enough.
constexpr int64_t kBatch = 8;

// Separators of one class against the rest, and their votes.
struct Committee {
  Matrix<double> separators;  // one row per round; columns of the rows, then the bias if any
  std::vector<double> votes;
};

// Sets entry (i, t) of `values` to h_t·(x_i, bias): the product of separator h_t with row x_i, to
// which `bias` is appended.
void Values(ConstMatrixView<double> rows, double bias, ConstMatrixView<double> separators,
            MatrixView<double> values) {
  const int64_t columns = rows.cols();
  MultiplyTransposed(1, rows, separators.Block(0, 0, separators.rows(), columns), 0, values);
  if (bias == 0) return;
  for (int64_t i = 0; i < values.rows(); ++i) {
    for (int64_t t = 0; t < values.cols(); ++t) values(i, t) += separators(t, columns) * bias;
  }
}

class BoostedModel : public Model {
 public:
  BoostedModel(int64_t columns, int32_t class_count, double bias, std::vector<Committee> committees,
               std::string summary)
      : columns_(columns),
        class_count_(class_count),
        bias_(bias),
        committees_(std::move(committees)),
        summary_(std::move(summary)) {}

  int64_t columns() const override { return columns_; }
  int32_t class_count() const override { return class_count_; }
  std::string Summary() const override { return summary_; }

  absl::Status Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                      Checkpoint checkpoint) const override {
    PHIMAP_RETURN_IF_ERROR(CheckColumns(rows.cols()));
    const int64_t n = rows.rows();
    for (int64_t first = 0; first < n; first += kKernelRows) {
      PHIMAP_RETURN_IF_ERROR(checkpoint(static_cast<double>(first) / static_cast<double>(n)));
      const int64_t count = std::min(kKernelRows, n - first);
      const int64_t first_class = class_count_ == 2 ? 1 : 0;
      for (size_t problem = 0; problem < committees_.size(); ++problem) {
        const int64_t y = static_cast<int64_t>(problem) + first_class;
        Poll(committees_[problem], rows.Rows(first, count), scores.Rows(first, count), y);
      }
      if (first_class == 0) continue;
      for (int64_t i = first; i < first + count; ++i) scores(i, 0) = -scores(i, 1);
    }
    return absl::OkStatus();
  }

 private:
  void Poll(const Committee& committee, ConstMatrixView<double> rows, MatrixView<double> scores,
            int64_t y) const {
    Matrix<double> values(rows.rows(), committee.separators.rows());
    if (!committee.votes.empty()) Values(rows, bias_, committee.separators.view(), values.view());
    double all = 0;
    for (const double vote : committee.votes) all += vote;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      double sum = 0;
      for (size_t t = 0; t < committee.votes.size(); ++t) {
        sum += values(i, t) >= 0 ? committee.votes[t] : -committee.votes[t];
      }
      scores(i, y) = all > 0 ? sum / all : 0;
    }
  }

  int64_t columns_;
  int32_t class_count_;
  double bias_;
  std::vector<Committee> committees_;
  std::string summary_;
};

// The separator that was chosen: the number of its draw, and its error.
struct Found {
  int64_t draw = -1;
  double error = 1;
};

// Boosting of one class against the rest.
class Booster {
 public:
  Booster(const TrainingSet& examples, const WeakLearnerOptions& options, uint64_t seed)
      : examples_(examples),
        options_(options),
        stream_(seed, StreamId::kWeakSeparators),
        width_(examples.rows.cols() + (options.bias > 0 ? 1 : 0)),
        batch_(kBatch, width_),
        values_(examples.rows.rows(), kBatch),
        signs_(static_cast<size_t>(examples.rows.rows())),
        shares_(signs_.size()) {}

  // Learns class y against the rest. `problem` numbers the two-class problems from 0, so that each
  // has its own random draws.
  absl::StatusOr<Committee> Run(int32_t y, int64_t problem, Checkpoint checkpoint) {
    const auto n = static_cast<double>(signs_.size());
    for (size_t i = 0; i < signs_.size(); ++i) signs_[i] = examples_.labels[i] == y ? 1 : -1;
    std::fill(shares_.begin(), shares_.end(), 1 / n);
    std::vector<std::pair<uint64_t, double>> members;
    for (int64_t round = 0; round < options_.rounds; ++round) {
      const uint64_t key = static_cast<uint64_t>(problem * options_.rounds + round);
      const auto part = [&](double fraction) {
        return checkpoint((static_cast<double>(round) + fraction) /
                          static_cast<double>(options_.rounds));
      };
      PHIMAP_ASSIGN_OR_RETURN(const Found found, Find(key, part));
      if (found.error >= 0.5) break;
      if (found.error > options_.Threshold()) ++short_rounds_;
      ++rounds_;
      const uint64_t separator = key * static_cast<uint64_t>(options_.draws) + found.draw;
      if (found.error <= 0) {
        members = {{separator, 1}};
        break;
      }
      const double vote = 0.5 * std::log((1 - found.error) / found.error);
      members.emplace_back(separator, vote);
      Reweight(separator, vote);
    }
    return Gather(members);
  }

  int64_t rounds() const { return rounds_; }
  // Number of rounds in which no draw was good enough, so that the best of all draws was used.
  int64_t short_rounds() const { return short_rounds_; }

 private:
  // Computes separator number `index`: a vector of normal numbers, scaled to length 1.
  void Draw(uint64_t index, double* h) const {
    double square = 0;
    for (int64_t k = 0; k < width_; ++k) {
      h[k] = stream_.Normal(index * static_cast<uint64_t>(width_) + static_cast<uint64_t>(k));
      square += h[k] * h[k];
    }
    for (int64_t k = 0; k < width_; ++k) h[k] /= std::sqrt(square);
  }

  // Returns the first draw of a round that is good enough, or else the best draw.
  absl::StatusOr<Found> Find(uint64_t key, Checkpoint checkpoint) {
    Found best;
    for (int64_t first = 0; first < options_.draws; first += kBatch) {
      PHIMAP_RETURN_IF_ERROR(
          checkpoint(static_cast<double>(first) / static_cast<double>(options_.draws)));
      const int64_t count = std::min(kBatch, options_.draws - first);
      const uint64_t index = key * static_cast<uint64_t>(options_.draws) + first;
      for (int64_t b = 0; b < count; ++b) Draw(index + b, batch_.row(b));
      const MatrixView<double> values = values_.view().Block(0, 0, values_.rows(), count);
      Values(examples_.rows, options_.bias, batch_.view().Rows(0, count), values);
      for (int64_t b = 0; b < count; ++b) {
        const double error = Error(b);
        if (error < best.error) best = {.draw = first + b, .error = error};
        if (best.error <= options_.Threshold()) return best;
      }
    }
    return best;
  }

  // Returns the weighted share of the rows that separator b of the batch misclassifies.
  double Error(int64_t b) const {
    double error = 0;
    for (size_t i = 0; i < signs_.size(); ++i) {
      if ((values_(i, b) >= 0 ? 1 : -1) != signs_[i]) error += shares_[i];
    }
    return error;
  }

  void Reweight(uint64_t separator, double vote) {
    Draw(separator, batch_.row(0));
    const MatrixView<double> values = values_.view().Block(0, 0, values_.rows(), 1);
    Values(examples_.rows, options_.bias, batch_.view().Rows(0, 1), values);
    double sum = 0;
    for (size_t i = 0; i < signs_.size(); ++i) {
      const bool right = (values(i, 0) >= 0 ? 1 : -1) == signs_[i];
      shares_[i] *= std::exp(right ? -vote : vote);
      sum += shares_[i];
    }
    for (double& share : shares_) share /= sum;
  }

  Committee Gather(const std::vector<std::pair<uint64_t, double>>& members) const {
    Committee committee{.separators = Matrix<double>(static_cast<int64_t>(members.size()), width_),
                        .votes = {}};
    for (const auto& [separator, vote] : members) {
      Draw(separator, committee.separators.row(static_cast<int64_t>(committee.votes.size())));
      committee.votes.push_back(vote);
    }
    return committee;
  }

  const TrainingSet& examples_;
  const WeakLearnerOptions& options_;
  RandomStream stream_;
  int64_t width_;
  Matrix<double> batch_;
  Matrix<double> values_;
  std::vector<int> signs_;
  // AdaBoost's distribution over the rows.
  std::vector<double> shares_;
  int64_t rounds_ = 0;
  int64_t short_rounds_ = 0;
};

absl::StatusOr<std::unique_ptr<const Model>> WeakLearner::Train(const TrainingSet& examples,
                                                                uint64_t seed,
                                                                Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate(kWeakLearnerType));
  Booster booster(examples, options_, seed);
  std::vector<Committee> committees;
  const int32_t first_class = examples.class_count == 2 ? 1 : 0;
  const int32_t problems = examples.class_count - first_class;
  for (int32_t problem = 0; problem < problems; ++problem) {
    const auto part = [&](double fraction) { return checkpoint((problem + fraction) / problems); };
    PHIMAP_ASSIGN_OR_RETURN(Committee committee, booster.Run(problem + first_class, problem, part));
    committees.push_back(std::move(committee));
  }
  return std::make_unique<const BoostedModel>(
      examples.rows.cols(), examples.class_count, options_.bias, std::move(committees),
      absl::StrCat(booster.rounds(), " separators; for ", booster.short_rounds(),
                   " of them no draw had an error of at most 1/2 - γ/6, so the best of ",
                   options_.draws, " draws was used"));
}

constexpr Parameter kWeakLearnerParameters[] = {
    {.name = "rounds",
     .type = ParameterType::kInteger,
     .default_text = "100",
     .least = 1,
     .largest = 1e5,
     .line = "number of separators that are boosted; 1 gives the weak learner alone"},
    {.name = "margin",
     .default_text = "0.1",
     .least = 0,
     .largest = 1,
     .above_least = true,
     .line = "the margin γ that is assumed"},
    {.name = "draws",
     .type = ParameterType::kInteger,
     .default_text = "1000",
     .least = 1,
     .largest = 1e6,
     .line = "maximum number of draws to find a separator with error at most 1/2 − γ/6"},
    {.name = "bias",
     .default_text = "0",
     .least = 0,
     .largest = 1e6,
     .line = "value of a constant feature, whose weight gives the intercept; with 0, separators go "
             "through the origin"},
};

}  // namespace

constinit const LearnerType kWeakLearnerType = {
    .name = "weak_learner",
    .line = "random separators, boosted (Blum 2005)",
    .parameters = kWeakLearnerParameters,
    .training_bytes =
        [](const ParameterValues& values, const TrainingShape& shape) {
          return 64 * shape.rows + 16 * values.Number("rounds") * shape.columns * shape.classes;
        },
    .make = [](const ParameterValues& values,
               const KernelInput&) -> std::unique_ptr<const Learner> {
      return std::make_unique<const WeakLearner>(
          WeakLearnerOptions{.rounds = values.Integer("rounds"),
                             .margin = values.Number("margin"),
                             .draws = values.Integer("draws"),
                             .bias = values.Number("bias")});
    },
};

}  // namespace phimap
