// The Cornell lecture's random Fourier features: a kernel value from 10,000 samples, and the error
// over D compared with Hoeffding's bound.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"
#include "core/theory/fourier_bounds.h"
#include "lab/built_map.h"
#include "lab/experiments/experiments.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

constexpr int64_t kColumns = 10;
constexpr char kKernel[] = "rbf(gamma=0.1)";
constexpr int64_t kSamples = 10000;
constexpr double kDelta = 0.05;
constexpr int64_t kPairs = 50;
// Position in the random stream at which the rows of a build begin, far after those of the pairs.
constexpr uint64_t kStreamRows = 1 << 20;
constexpr int64_t kDimensions[] = {16, 64, 256, 1024, 4096, 16384};

// Rows x_i and y_i, and the kernel values K(x_i, y_i).
struct Pairs {
  Matrix<double> x;
  Matrix<double> y;
  std::vector<double> kernel;
};

Matrix<double> UniformRows(int64_t rows, RandomCursor& random) {
  Matrix<double> uniform = Matrix<double>::Uninit(rows, kColumns);
  for (int64_t i = 0; i < uniform.size(); ++i) uniform.data()[i] = random.UniformOpen01();
  return uniform;
}

absl::StatusOr<Pairs> DrawPairs(int64_t count, RandomCursor& random) {
  PHIMAP_ASSIGN_OR_RETURN(const KernelExpression expression, KernelExpression::Parse(kKernel));
  const KernelProgram program = KernelProgram::Compile(expression);
  Pairs pairs;
  pairs.x = UniformRows(count, random);
  pairs.y = UniformRows(count, random);
  Matrix<double> value(1, 1);
  for (int64_t i = 0; i < count; ++i) {
    const ConstMatrixView<double> x = pairs.x.view().Rows(i, 1);
    const ConstMatrixView<double> y = pairs.y.view().Rows(i, 1);
    KernelBlock(program, x, SquaredNorms(x), y, SquaredNorms(y), value.view());
    pairs.kernel.push_back(value(0, 0));
  }
  return pairs;
}

// Returns F(x_i)·F(y_i) − K(x_i, y_i) for one mapping.
absl::StatusOr<std::vector<double>> Errors(const std::string& parameters, int64_t dimensions,
                                           const Pairs& pairs, uint64_t seed) {
  const MapText text = {.mapping = absl::StrCat("fourier(dimensions=", dimensions, parameters,
                                                ", serving_type=float64)"),
                        .kernel = kKernel};
  // The frequencies are drawn at random and do not depend on these rows. The rows only determine
  // the mean, and the certificate is measured on them.
  RandomCursor random(RandomStream(seed, StreamId::kLabRows), kStreamRows);
  const Matrix<double> stream = UniformRows(40, random);
  PHIMAP_ASSIGN_OR_RETURN(const BuiltMap map, BuiltMap::Build(text, stream.view(), seed));
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> x, map.Map(pairs.x.view()));
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> y, map.Map(pairs.y.view()));
  std::vector<double> errors;
  for (int64_t i = 0; i < x.rows(); ++i) {
    double product = 0;
    for (int64_t k = 0; k < x.cols(); ++k) product += x(i, k) * y(i, k);
    errors.push_back(product - pairs.kernel[i]);
  }
  return errors;
}

// Returns the variance of F(x)·F(y), by the law in docs/maths.md.
double Variance(FourierForm form, int64_t dimensions, double kernel) {
  const double cosine = (1 + std::pow(kernel, 4)) / 2 - kernel * kernel;
  const auto d = static_cast<double>(dimensions);
  return form == FourierForm::kSinCos ? 2 * cosine / d : (cosine + 0.5) / d;
}

double RootMeanSquare(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double x : numbers) sum += x * x;
  return std::sqrt(sum / static_cast<double>(numbers.size()));
}

double LargestSize(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double x : numbers) largest = std::max(largest, std::abs(x));
  return largest;
}

void JudgeSamples(const std::vector<double>& phase, const std::vector<double>& control,
                  Results& results) {
  const auto runs = static_cast<double>(phase.size());
  const double width = 4 / std::sqrt(2 * runs);
  results.Judge(
      {.claim = "The mean of 10,000 samples of 2cos(ω·x + b)cos(ω·y + b) is close to K(x, y).",
       .measured = absl::StrFormat("the largest of %.0f errors is %.2f deviations", runs,
                                   LargestSize(phase)),
       .rule = "each within 6 deviations, √(((1 + K⁴)/2 − K² + 1/2)/10,000)",
       .agrees = LargestSize(phase) <= 6});
  const std::string rule = absl::StrFormat("within 1 ± 4/√(2·%.0f) = 1 ± %.2f", runs, width);
  results.Judge({.claim = "The errors are as large as the law says, not just small.",
                 .measured = absl::StrFormat("their root mean square is %.3f deviations",
                                             RootMeanSquare(phase)),
                 .rule = rule,
                 .agrees = std::abs(RootMeanSquare(phase) - 1) <= width});
  results.Judge({.claim =
                     "Control: the rule rejects errors of the sine and cosine form if they are "
                     "judged by the law of the phase form.",
                 .measured = absl::StrFormat("their root mean square is %.3f of its deviations",
                                             RootMeanSquare(control)),
                 .rule = absl::StrCat("not ", rule),
                 .agrees = std::abs(RootMeanSquare(control) - 1) > width});
}

// Repeats the lecture's comparison in each run, with x and y uniform in [0, 1]^10.
absl::Status RunSamples(const Options& options, Results& results) {
  Table& table = results.AddTable("samples", {"seed", "K(x,y)", "estimate", "deviations off"});
  std::vector<double> phase;
  std::vector<double> control;
  for (int64_t run = 0; run < options.Runs(200, 40); ++run) {
    const uint64_t seed = options.Seed(run);
    RandomCursor random(RandomStream(seed, StreamId::kLabRows));
    PHIMAP_ASSIGN_OR_RETURN(const Pairs pair, DrawPairs(1, random));
    const double deviation = std::sqrt(Variance(FourierForm::kPhase, kSamples, pair.kernel[0]));
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> error,
                            Errors(", form=phase", kSamples, pair, seed));
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> other, Errors("", kSamples, pair, seed));
    phase.push_back(error[0] / deviation);
    control.push_back(other[0] / deviation);
    table.Add({seed, pair.kernel[0], pair.kernel[0] + error[0], phase.back()});
  }
  JudgeSamples(phase, control, results);
  return absl::OkStatus();
}

struct Line {
  const char* name;
  const char* parameters;
  FourierForm form;
  // Whether frequencies are independent, so that Hoeffding's inequality and the law apply.
  bool independent;
};
constexpr Line kLines[] = {
    {"phase", ", form=phase", FourierForm::kPhase, true},
    {"sine and cosine", "", FourierForm::kSinCos, true},
    {"sine and cosine, orthogonal", ", orthogonal=true", FourierForm::kSinCos, false}};
constexpr size_t kPhase = 0;
constexpr size_t kSinCos = 1;
constexpr size_t kOrthogonal = 2;

// Statistics over all draws and pairs, with one entry per D.
struct Curve {
  std::vector<double> rms;
  std::vector<double> share_beyond;
  std::vector<double> share_beyond_tenth;
};

double QuantileOfSizes(const std::vector<double>& errors, double probability) {
  std::vector<double> sizes;
  for (const double e : errors) sizes.push_back(std::abs(e));
  std::sort(sizes.begin(), sizes.end());
  return sizes[static_cast<size_t>(probability * static_cast<double>(sizes.size() - 1))];
}

double ShareFrom(const std::vector<double>& errors, double bound) {
  const auto count =
      std::count_if(errors.begin(), errors.end(), [&](double e) { return std::abs(e) >= bound; });
  return static_cast<double>(count) / static_cast<double>(errors.size());
}

void AddPoint(const Line& line, int64_t dimensions, const Pairs& pairs,
              const std::vector<double>& errors, Curve& curve, Table& table) {
  const double bound = FourierError(line.form, dimensions, kDelta);
  double variance = 0;
  for (const double k : pairs.kernel) variance += Variance(line.form, dimensions, k) / kPairs;
  curve.rms.push_back(RootMeanSquare(errors));
  curve.share_beyond.push_back(ShareFrom(errors, bound));
  curve.share_beyond_tenth.push_back(ShareFrom(errors, bound / 10));
  const auto of_independent = [&](double number) {
    return line.independent ? Cell(number) : Cell("–");
  };
  table.Add({line.name, dimensions, curve.rms.back(), of_independent(std::sqrt(variance)),
             QuantileOfSizes(errors, 0.95), of_independent(bound),
             of_independent(curve.share_beyond.back())});
}

void JudgeHoeffding(const std::vector<Curve>& curves, Results& results) {
  double beyond = 0;
  double beyond_tenth = 1;
  for (const size_t line : {kPhase, kSinCos}) {
    for (size_t i = 0; i < std::size(kDimensions); ++i) {
      beyond = std::max(beyond, curves[line].share_beyond[i]);
      beyond_tenth = std::min(beyond_tenth, curves[line].share_beyond_tenth[i]);
    }
  }
  results.Judge(
      {.claim =
           "Hoeffding: a kernel value errs by a or more with probability at most 2 exp(−Da²/8), "
           "with sines and cosines 2 exp(−Da²/4).",
       .measured = absl::StrFormat("at most %.4f of the errors", beyond),
       .rule = "at each D and in both forms, at most .05 of the errors reach the a whose "
               "bound is .05",
       .agrees = beyond <= kDelta});
  results.Judge({.claim = "Control: a tenth of that a is exceeded more often than the bound "
                          "allows.",
                 .measured = absl::StrFormat("at least %.3f of the errors", beyond_tenth),
                 .rule = "at each D and in both forms, more than .05 of the errors reach a/10",
                 .agrees = beyond_tenth > kDelta});
}

void JudgeCurves(const std::vector<Curve>& curves, const Options& options, Results& results) {
  const std::vector<double> d(std::begin(kDimensions), std::end(kDimensions));
  const double tolerance = options.quick ? 0.1 : 0.05;
  for (const size_t line : {kPhase, kSinCos}) {
    const double slope = LogLogSlope(d, curves[line].rms);
    results.Judge(
        {.claim = absl::StrCat("Arbitrarily good accuracy by increasing D: the error falls "
                               "as 1/√D (",
                               kLines[line].name, ")."),
         .measured = absl::StrFormat("slope %.3f of log error over log D", slope),
         .rule = absl::StrFormat("−0.5 ± %.2f", tolerance),
         .agrees = std::abs(slope + 0.5) <= tolerance});
  }
  for (const auto& [better, worse] :
       {std::pair(kSinCos, kPhase), std::pair(kOrthogonal, kSinCos)}) {
    double largest = 0;
    for (size_t i = 0; i < d.size(); ++i) {
      largest = std::max(largest, curves[better].rms[i] / curves[worse].rms[i]);
    }
    results.Judge({.claim = absl::StrCat("Beyond the lecture: '", kLines[better].name,
                                         "' errs less than '", kLines[worse].name, "'."),
                   .measured = absl::StrFormat("at most %.2f of its error", largest),
                   .rule = "a lower root mean square error at each D",
                   .agrees = largest < 1});
  }
}

absl::Status RunCurves(const Options& options, Results& results) {
  const int64_t draws = options.Runs(100, 20);
  Table& table = results.AddTable(
      "error_over_D",
      {"form", "D", "RMS error", "law", "95 % of errors under", "Hoeffding, 95 %", "share beyond"},
      absl::StrFormat("Errors of K(x, y) over %d draws of the frequencies and 50 pairs of rows, "
                      "beside the standard deviation by the law, and the a that Hoeffding's "
                      "inequality guarantees with probability .95. Neither applies to orthogonal "
                      "frequencies.",
                      draws));
  RandomCursor random(RandomStream(options.Seed(999), StreamId::kLabRows));
  PHIMAP_ASSIGN_OR_RETURN(const Pairs pairs, DrawPairs(kPairs, random));
  std::vector<Curve> curves(std::size(kLines));
  int64_t run = 1000;
  for (size_t line = 0; line < std::size(kLines); ++line) {
    for (const int64_t dimensions : kDimensions) {
      std::vector<double> errors;
      for (int64_t draw = 0; draw < draws; ++draw) {
        PHIMAP_ASSIGN_OR_RETURN(
            const std::vector<double> more,
            Errors(kLines[line].parameters, dimensions, pairs, options.Seed(run++)));
        errors.insert(errors.end(), more.begin(), more.end());
      }
      AddPoint(kLines[line], dimensions, pairs, errors, curves[line], table);
    }
  }
  JudgeHoeffding(curves, results);
  JudgeCurves(curves, options, results);
  return absl::OkStatus();
}

absl::Status Run(const Options& options, Results& results) {
  PHIMAP_RETURN_IF_ERROR(RunSamples(options, results));
  return RunCurves(options, results);
}

}  // namespace

Experiment CoFourier() {
  return {
      .name = "co_fourier",
      .paper = "CO",
      .item = "random Fourier features",
      .title =
          "an RBF kernel as a mean of 10,000 samples, and its error over the number of "
          "features D",
      .claim =
          "K(x, y) = E 2cos(ω·x + b)cos(ω·y + b): the mean of 10,000 samples is pretty close to "
          "K(x, y), for x and y drawn from [0, 1]^10 and gamma = 0.1. By Hoeffding's "
          "inequality the error of D features is arbitrarily small, with arbitrarily high "
          "probability, as D grows.",
      .protocol =
          "fourier(dimensions=10000, form=phase) is the mean of the lecture's 10,000 samples: each "
          "run draws a pair x, y and the frequencies, and errors are divided by the standard "
          "deviation that the law in docs/maths.md gives. Full: 200 runs; quick: 40. The lecture "
          "shows one pair, whose output is lost. The error over D is measured for D from 16 to "
          "16,384 on 50 pairs of rows; each D has its own draws of the frequencies (full: 100; "
          "quick: 20). There are three forms: the phase form of the lecture, the form with sines "
          "and cosines, and that with orthogonal frequencies. All are served in float64. K(x, y) "
          "is computed by core/kernel.",
      .run = Run};
}

}  // namespace phimap::lab
