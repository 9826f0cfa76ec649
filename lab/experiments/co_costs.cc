// The Cornell lecture's table of costs: how the CPU time of each approach to kernel learning grows
// with n, d, D and T.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/linalg/blas.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"
#include "lab/experiments/experiments.h"
#include "lab/experiments/timed_training.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

// Sizes of a problem. T is epochs·n. D is not used for monomials: d columns have (d + 1)(d + 2)/2
// of them.
struct Shape {
  double n = 0;
  double d = 0;
  double D = 0;
  double epochs = 0;
};

// A variable that takes `points` values. The first value is `first`, and each further value is
// `factor` times the one before.
struct Sweep {
  int approach;
  const char* variable;
  // The term of the cost that is measured, and how the other variables are chosen.
  const char* term;
  Shape first;
  Shape factor;
  int points;
  double exponent;
  // Each class is separated from the rest. With 16 classes, the computation of a step outweighs its
  // overhead and the reading of a row of the Gram matrix.
  int32_t classes = 2;
};

constexpr Shape kSameT = {.n = 2, .d = 1, .D = 1, .epochs = 0.5};
constexpr Shape kMoreRows = {.n = 2, .d = 1, .D = 1, .epochs = 1};
constexpr Shape kMoreColumns = {.n = 1, .d = 2, .D = 1, .epochs = 1};
constexpr Shape kMoreFeatures = {.n = 1, .d = 1, .D = 2, .epochs = 1};
constexpr Shape kMoreMonomials = {.n = 1, .d = 1.41421356, .D = 2, .epochs = 1};
constexpr Shape kMoreSteps = {.n = 1, .d = 1, .D = 1, .epochs = 2};

constexpr Sweep kSweeps[] = {
    {1, "T", "T·(φ of a row + D)", {64, 62, 0, 8}, kMoreSteps, 4, 1},
    {1, "D", "T·(φ of a row + D); d with it", {64, 44, 0, 16}, kMoreMonomials, 4, 1},
    {1, "n", "the same T", {64, 62, 0, 32}, kSameT, 4, 0},
    {2, "n", "φ of n rows; T = n", {128, 88, 0, 1}, kMoreRows, 4, 1},
    {2, "T", "DT, T at least 64n", {32, 44, 0, 64}, kMoreSteps, 4, 1},
    {2, "D", "DT, T = 256n; d with it", {32, 44, 0, 256}, kMoreMonomials, 4, 1},
    {2, "n", "DT, the same T", {16, 44, 0, 512}, kSameT, 4, 0},
    {3, "n", "ndT, the same T", {128, 64, 0, 8}, kSameT, 4, 1},
    {3, "d", "ndT", {128, 128, 0, 8}, kMoreColumns, 4, 1},
    {3, "T", "ndT", {256, 64, 0, 1}, kMoreSteps, 4, 1},
    {4, "n", "n²d, d large; T = n", {512, 256, 0, 1}, kMoreRows, 3, 2},
    {4, "d", "n²d; T = n", {256, 512, 0, 1}, kMoreColumns, 4, 1},
    {4, "n", "nT, the same T, at least 16n; 16 classes", {256, 8, 0, 64}, kSameT, 3, 1, 16},
    {4, "T", "nT, T at least 32n", {512, 8, 0, 32}, kMoreSteps, 4, 1},
    {5, "T", "dDT", {64, 64, 512, 4}, kMoreSteps, 4, 1},
    {5, "d", "dDT", {64, 128, 128, 8}, kMoreColumns, 4, 1},
    {5, "D", "dDT", {64, 128, 128, 8}, kMoreFeatures, 4, 1},
    {5, "n", "dDT, the same T", {64, 64, 512, 16}, kSameT, 4, 0},
    {6, "n", "ndD, d large; T = n", {128, 256, 256, 1}, kMoreRows, 4, 1},
    {6, "d", "ndD, d large; T = n", {256, 256, 128, 1}, kMoreColumns, 4, 1},
    {6, "D", "ndD, d large; T = n", {256, 256, 128, 1}, kMoreFeatures, 4, 1},
    {6, "D", "DT, T = 256n", {32, 16, 512, 256}, kMoreFeatures, 4, 1},
    {6, "T", "DT, T at least 64n", {32, 16, 1024, 64}, kMoreSteps, 4, 1},
    {6, "n", "DT, the same T", {16, 16, 1024, 512}, kSameT, 4, 0},
};

// Returns rows of random numbers between −1 and 1, with random classes.
Examples AnyRows(int64_t n, int64_t d, int32_t classes, uint64_t seed) {
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  const RandomStream dice(seed, StreamId::kLabLabels);
  Examples examples{.rows = Matrix<double>::Uninit(n, d), .classes = classes};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < d; ++k) examples.rows(i, k) = 2 * random.UniformOpen01() - 1;
    examples.labels.push_back(static_cast<int32_t>(dice.UniformBelow(i, classes)));
  }
  return examples;
}

struct Subject {
  double size = 0;
  TimedTraining training;
};

absl::StatusOr<Subject> MakeSubject(const Sweep& sweep, int step, uint64_t seed) {
  const auto grown = [&](double first, double factor) {
    return std::llround(first * std::pow(factor, step));
  };
  const SgdApproach& approach = kSgdApproaches[sweep.approach - 1];
  const int64_t n = grown(sweep.first.n, sweep.factor.n);
  const int64_t d = grown(sweep.first.d, sweep.factor.d);
  const int64_t epochs = grown(sweep.first.epochs, sweep.factor.epochs);
  const double gamma = 1 / static_cast<double>(d);
  PHIMAP_ASSIGN_OR_RETURN(
      TimedTraining training,
      TimedTraining::Make(
          approach,
          {.dimensions = grown(sweep.first.D, sweep.factor.D),
           .kernel = approach.features == SgdFeatures::kFourier
                         ? absl::StrCat("rbf(gamma=", gamma, ")")
                         : absl::StrCat("poly(degree=2, gamma=", gamma, ", coef0=1)"),
           .rate = 0.001,
           .epochs = epochs},
          AnyRows(n, d, sweep.classes, seed), seed));
  const std::string variable = sweep.variable;
  const int64_t size = variable == "n"   ? n
                       : variable == "d" ? d
                       : variable == "T" ? epochs * n
                                         : training.dimensions();
  return Subject{.size = static_cast<double>(size), .training = std::move(training)};
}

// Measures all sizes alternately, so that a temporary disturbance of the machine affects all of
// them.
absl::StatusOr<std::vector<Subject>> Measure(const Sweep& sweep, int64_t repetitions,
                                             uint64_t seed) {
  std::vector<Subject> subjects;
  for (int step = 0; step < sweep.points; ++step) {
    PHIMAP_ASSIGN_OR_RETURN(Subject subject, MakeSubject(sweep, step, seed));
    subjects.push_back(std::move(subject));
  }
  for (int64_t repetition = 0; repetition < repetitions; ++repetition) {
    for (Subject& subject : subjects) {
      PHIMAP_RETURN_IF_ERROR(subject.training.Train(seed).status());
    }
  }
  return subjects;
}

double SlopeOf(const std::vector<Subject>& subjects) {
  std::vector<double> sizes;
  std::vector<double> seconds;
  for (const Subject& subject : subjects) {
    sizes.push_back(subject.size);
    seconds.push_back(subject.training.seconds());
  }
  const double slope = LogLogSlope(sizes, seconds);
  return std::abs(slope) < 0.005 ? 0 : slope;  // avoids −0.00 in tables
}

// The verdict on one approach.
struct Judged {
  std::vector<std::string> measured;
  bool agrees = true;
};

absl::Status MeasureAll(const Options& options, Results& results) {
  const double tolerance = options.quick ? 0.4 : 0.25;
  Table& slopes = results.AddTable(
      "slopes",
      {"approach", "cost (lecture)", "variable", "term measured", "from", "to",
       "exponent (lecture)", "exponent (measured)"},
      "Slopes of log CPU time over log n, d, D and T = epochs·n, each over an eightfold range, at "
      "sizes at which the named term dominates. For the Gram matrix the range of n is fourfold, "
      "because a larger matrix does not fit the cache. Ways 5 and 6 cost the same as 1 and 2.");
  Table& times =
      results.AddTable("times", {"approach", "variable", "term", "exponent", "size", "CPU s"});
  std::vector<Judged> judged(std::size(kSgdApproaches));
  for (const Sweep& sweep : kSweeps) {
    const SgdApproach& approach = kSgdApproaches[sweep.approach - 1];
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<Subject> subjects,
                            Measure(sweep, options.Runs(15, 4), options.Seed(0)));
    const double slope = SlopeOf(subjects);
    slopes.Add({approach.name, approach.cost, sweep.variable, sweep.term, subjects.front().size,
                subjects.back().size, sweep.exponent, absl::StrFormat("%.2f", slope)});
    for (const Subject& subject : subjects) {
      times.Add({approach.name, sweep.variable, sweep.term, sweep.exponent, subject.size,
                 subject.training.seconds()});
    }
    Judged& one = judged[sweep.approach - 1];
    one.measured.push_back(absl::StrFormat("%s: %.2f (%g)", sweep.variable, slope, sweep.exponent));
    one.agrees = one.agrees && std::abs(slope - sweep.exponent) <= tolerance;
  }
  for (size_t i = 0; i < judged.size(); ++i) {
    results.Judge(
        {.claim = absl::StrCat(kSgdApproaches[i].name, ": O(", kSgdApproaches[i].cost, ")."),
         .measured = absl::StrJoin(judged[i].measured, ", "),
         .rule = absl::StrFormat("each slope within %.2f of the lecture's exponent, which "
                                 "stands in parentheses",
                                 tolerance),
         .agrees = judged[i].agrees});
  }
  return absl::OkStatus();
}

absl::Status Run(const Options& options, Results& results) {
  UseOneBlasThread();
  return MeasureAll(options, results);
}

}  // namespace

Experiment CoCosts() {
  return {
      .name = "co_costs",
      .paper = "CO",
      .item = "the table of costs",
      .title = "the cost of six ways of kernel learning",
      .claim =
          "SGD with a kernel has n rows of d columns, D features and T steps. A feature map costs "
          "dD and a kernel value d. So training costs dDT with features on the fly, ndD + DT with "
          "stored features, ndT with kernel values on the fly, and n²d + nT with a Gram matrix. "
          "Features that approximate the kernel are two more ways.",
      .protocol =
          "kernel_sgd on drawn rows; CPU time of the training thread, the least of several "
          "repetitions (full: 15; quick: 4) that take turns with the other sizes; OpenBLAS has one "
          "thread. One variable doubles two or three times while the others stay, at sizes at "
          "which one term of the cost dominates: the table says which. The lecture gives no sizes. "
          "The exact features are the monomials of poly(degree=2), D = (d + 1)(d + 2)/2: they cost "
          "D, not dD as the lecture supposes, and d cannot vary without D, so the exponents in d "
          "are shown on Fourier features, which do cost dD. Ways 1 and 5 train with the same code, "
          "and so do ways 2 and 6. Exponents are judged within .25 (full) and .4 (quick). Sampling "
          "the frequencies is not counted. Memory is not measured.",
      .run = Run};
}

}  // namespace phimap::lab
