// The report of a head: how well it answers, measured on test rows that neither training nor any
// choice has seen, and how it came to be.
//
// It is part of the artifact. Like a certificate it has no time, host or speed, so that training on
// the same stream with the same spec and seed gives the same bytes. Shares, such as recall, are
// computed from the counts by whoever shows them.
// core/learn/test_figures.h measures.
#ifndef PHIMAP_CORE_HEAD_REPORT_H_
#define PHIMAP_CORE_HEAD_REPORT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// The parts of a labeled stream (core/learn/parts.h). The numbers are those of the artifact format.
enum class Part : uint8_t {
  kTrain = 0,
  kValidate = 1,
  kCalibrateLink = 2,
  kCalibrateSets = 3,
  kTest = 4,
};
inline constexpr int kPartCount = 5;

struct PartCounts {
  // Indexed by Part.
  std::array<int64_t, kPartCount> rows = {};
  // Rows that came with a part that was full. Nobody sees them.
  int64_t unused = 0;
  // Rows of groups that were trained on only because they were large.
  int64_t large_groups = 0;

  int64_t operator[](Part part) const { return rows[static_cast<size_t>(part)]; }
  bool operator==(const PartCounts&) const = default;
};

// A number that is estimated from the test rows, and its interval at the report's confidence.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
  bool operator==(const Estimate&) const = default;
};

// How the value of a parameter was chosen, on the rows of the part validate.
struct ParameterChoice {
  struct Candidate {
    double value = 0;
    // What was compared; the lowest was chosen.
    double loss = 0;
    bool operator==(const Candidate&) const = default;
  };
  // As in the learner's text: "alpha" or "C".
  std::string parameter;
  // The kind of loss, for people: "share of errors", "mean squared error".
  std::string loss;
  double chosen = 0;
  std::vector<Candidate> candidates;
  bool operator==(const ParameterChoice&) const = default;
};

// What folding the head into the projection changes (core/head/folding.h), measured on rows of the
// part validate, because it decides how the version is served.
struct FoldingFigures {
  int64_t rows = 0;
  double largest_difference = 0;
  double largest_bound = 0;
  // Rows whose answer changes.
  int64_t changed = 0;
  bool operator==(const FoldingFigures&) const = default;
};

// Something simpler, tested on the same rows: the same learner on the raw standardised rows, the
// class or the mean that is most frequent in training.
struct Baseline {
  std::string name;
  // The share of errors for classes, the RMSE for numbers.
  double error = 0;
  bool operator==(const Baseline&) const = default;
};

// How often sets or intervals of a stated confidence held the truth on the test rows.
struct Coverage {
  double confidence = 0;
  int64_t rows = 0;
  int64_t covered = 0;
  // Interval of Clopper and Pearson, at the report's confidence, for the probability with which the
  // sets of this head hold the truth. It may lie under `confidence`: that is the mean over the
  // calibration rows that could have been drawn (core/head/conformal.h).
  double low = 0;
  double high = 0;
  // The mean number of classes in a set, or the length of an interval in units of the target.
  double mean_size = 0;
  bool operator==(const Coverage&) const = default;
};

struct CertifiedTestMargin {
  double alpha = 0;
  // At most ⌊alpha·n⌋ of the n test rows have a smaller margin.
  double rows_margin = 0;
  // A future row has a smaller margin with probability at most alpha. Absent if there are too few
  // rows to say so.
  std::optional<double> margin;
  bool operator==(const CertifiedTestMargin&) const = default;
};

// What was measured of a head that answers classes.
struct ClassFigures {
  struct Class {
    // Test rows of the class, test rows that were answered with it, and those of both kinds. The
    // recall is correct/rows, the precision correct/predicted.
    int64_t rows = 0;
    int64_t predicted = 0;
    int64_t correct = 0;
    bool operator==(const Class&) const = default;
  };
  struct Confusion {
    int32_t actual = 0;
    int32_t predicted = 0;
    int64_t count = 0;
    bool operator==(const Confusion&) const = default;
  };
  // The rows whose confidence, the probability of their answer, lies in one of kReliabilityBins
  // equal intervals of [0, 1]: how many there are, how many were answered rightly, and their mean
  // confidence. Bins without rows are left out. With two classes the confidence may be under ½: the
  // answer is that of the score, and the link's offset may prefer the other class.
  struct ReliabilityBin {
    int32_t bin = 0;
    int64_t rows = 0;
    int64_t correct = 0;
    double mean_confidence = 0;
    bool operator==(const ReliabilityBin&) const = default;
  };
  // If a row is called class 1 where its score is at least `threshold`.
  struct RocPoint {
    double threshold = 0;
    // Shares of the rows of class 0 and of class 1 that are called class 1.
    double false_positives = 0;
    double true_positives = 0;
    bool operator==(const RocPoint&) const = default;
  };

  int64_t rows = 0;
  int64_t errors = 0;
  // The share of errors, with the interval of Clopper and Pearson, which is exact.
  Estimate error;
  std::vector<Class> classes;
  // The pairs that occur, sorted by actual, then by predicted class. Empty if more than
  // kMaxConfusions occur.
  std::vector<Confusion> confusion;
  // The mean recall of the classes that have test rows.
  double balanced_accuracy = 0;
  // For two classes that both have test rows: the probability that a row of class 1 has a higher
  // score than one of class 0, where equal scores count half; and points of the ROC curve from its
  // highest threshold to its lowest, at most kMaxRocPoints. (0, 0) is not among them.
  std::optional<double> auc;
  std::vector<RocPoint> roc;
  // With a link. The log loss is the mean of −ln p of the true class, p at least 1e-15. The Brier
  // score is the mean of Σ_j (p_j − [j is the true class])², for two classes half of that. The
  // expected calibration error is Σ rows/n·|correct/rows − mean_confidence| over the bins.
  std::optional<double> log_loss;
  std::optional<double> brier;
  std::optional<double> calibration_error;
  std::vector<ReliabilityBin> reliability;
  // As in core/learn/evaluation.h, of the test rows: percentiles of the normalised, unnormalised
  // and kernel margins, the constant feature, and what is certified.
  std::vector<double> margins;
  std::vector<double> unnormalised_margins;
  std::vector<double> kernel_margins;
  double intercept_scale = 0;
  std::vector<CertifiedTestMargin> certified;
  bool operator==(const ClassFigures&) const = default;
};
inline constexpr int32_t kReliabilityBins = 10;
inline constexpr int64_t kMaxRocPoints = 200;
inline constexpr int64_t kMaxConfusions = 20'000;

// What was measured of a head that answers numbers. A residual is target − answer, in units of the
// target.
struct NumberFigures {
  int64_t rows = 0;
  // R² is 1 − Σ residual²/Σ(target − mean)², with the mean of the test rows; absent if all targets
  // are equal. Intervals are approximate (core/learn/test_figures.h).
  Estimate rmse;
  Estimate mae;
  std::optional<Estimate> r_squared;
  // Quantiles of the residuals at 0, .01 … 1.
  std::vector<double> residuals;
  // The root mean square of residual/deviation, for a head that states a deviation for each row: 1
  // if deviations are as large as errors.
  std::optional<double> standardised_error;
  bool operator==(const NumberFigures&) const = default;
};

// A combination that tuning tried, on rows of the parts train and validate alone.
struct TuningTrial {
  // The mapping, the kernel after standardisation if there is one, and the learner.
  std::string spec;
  std::string kernel;
  bool standardize = false;
  std::string learner;
  // Rows that were learned from.
  int64_t rows = 0;
  // Mean squared error of the targets of validation rows, which for classes are 1 and −1; absent
  // for learners without it.
  std::optional<double> loss;
  // Share of errors for classes, RMSE for numbers; absent where only kernels were compared.
  std::optional<double> error;
  // Measured time of the features of one row; absent where none were built.
  std::optional<double> microseconds;
  bool operator==(const TuningTrial&) const = default;
};

struct TrainingReport {
  PartCounts parts;
  // Probability with which each interval, and each certified margin, holds.
  double confidence = 0.95;
  // What the intervals and guarantees assume, for people.
  std::string premise;
  // One of the two.
  std::optional<ClassFigures> classes;
  std::optional<NumberFigures> numbers;
  std::vector<Coverage> coverage;
  // Whether sets have thresholds of each class (conformal.h).
  bool class_conditional = false;
  std::vector<Baseline> baselines;
  std::optional<ParameterChoice> choice;
  std::optional<FoldingFigures> folding;
  // In the order in which they were tried; empty without tuning.
  std::vector<TuningTrial> trials;
  // What people should know, such as parts that are too small, or landmarks that came from these
  // rows.
  std::vector<std::string> notes;
  bool operator==(const TrainingReport&) const = default;
};

// Encodes a report (docs/formats.md). It has tagged fields, so that readers can skip unknown ones.
// Equal reports give equal bytes. An infinite number is written as the largest of its sign.
// REQUIRES: no NaN; texts within 64 KiB.
std::string EncodeReport(const TrainingReport& report);
// Decodes bytes that nobody vouches for. DATA_LOSS if they are damaged, or if a number is not
// finite or a class is out of range. Memory is a small multiple of the bytes.
absl::StatusOr<TrainingReport> DecodeReport(absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_HEAD_REPORT_H_
