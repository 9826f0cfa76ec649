// Randomized rounding of kernel expansions: Achlioptas, McSherry, Schölkopf 2001, section 4,
// Theorem 5.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/linalg/blas.h"
#include "core/status/status_macros.h"
#include "core/theory/gram_bounds.h"
#include "lab/experiments/ams_components.h"
#include "lab/experiments/ams_data.h"
#include "lab/experiments/ams_theorem5.h"
#include "lab/experiments/experiments.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

constexpr int64_t kComponents = 4;
constexpr int64_t kFreshRows = 50;
// Scales s, as multiples of √m.
constexpr double kScales[] = {0.125, 0.25, 0.5, 1, 2, 4, 8};
// Number of changes t at which Hoeffding's bound is checked, in equal steps up to the t at which
// the bound is .01.
constexpr int kSteps = 25;
constexpr double kLastLevel = 0.01;

// Results of rounding at one scale on one data set, for all draws.
struct Rounded {
  std::string data;
  int64_t m = 0;
  double scale = 0;
  int64_t draws = 0;
  // weights: the number of nonzero weights, one entry per component and draw. off: the differences
  // f̂_n(x) − f_n(x), one vector per draw.
  std::vector<double> weights;
  std::vector<std::vector<double>> off;
  // f_n(x), in the same order as the entries of a draw in `off`.
  std::vector<double> exact;

  double root() const { return std::sqrt(static_cast<double>(m)); }
  std::vector<double> Moduli() const {
    std::vector<double> moduli;
    for (const std::vector<double>& draw : off) {
      for (const double change : draw) moduli.push_back(std::abs(change));
    }
    std::sort(moduli.begin(), moduli.end());
    return moduli;
  }
};

double RootMeanSquare(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double x : numbers) sum += x * x;
  return std::sqrt(sum / static_cast<double>(numbers.size()));
}

// Returns the change t that eq. 1 allows with `probability`.
double ChangeAt(int64_t m, double range, double scale, double probability) {
  double low = 0;
  double high = 1e6;
  for (int step = 0; step < 100; ++step) {
    const double t = (low + high) / 2;
    (RoundingProbability(m, range, scale, t) > probability ? low : high) = t;
  }
  return high;
}

absl::Status MeasureScales(const Options& options, const KernelData& data,
                           std::vector<Rounded>& all) {
  const int64_t m = options.quick ? 300 : 500;
  const Matrix<double> landmarks = DrawnRows(data, 0, m, options.Seed(0));
  const Matrix<double> rows = DrawnRows(data, m, kFreshRows, options.Seed(0));
  PHIMAP_ASSIGN_OR_RETURN(const PcaComponents exact,
                          PcaComponentsOf(data, landmarks, rows, kComponents, 0, options.Seed(0)));
  const std::vector<double> values(exact.f.data(), exact.f.data() + exact.f.size());
  for (const double share : kScales) {
    Rounded rounded{.data = data.name, .m = m, .draws = options.Runs(100, 12)};
    rounded.scale = share * rounded.root();
    rounded.exact = values;
    for (int64_t draw = 0; draw < rounded.draws; ++draw) {
      PHIMAP_ASSIGN_OR_RETURN(const PcaComponents found,
                              PcaComponentsOf(data, landmarks, rows, kComponents, rounded.scale,
                                              options.Seed(1 + draw)));
      for (const int64_t count : found.weights) {
        rounded.weights.push_back(static_cast<double>(count));
      }
      std::vector<double> off;
      for (int64_t i = 0; i < exact.f.size(); ++i) {
        off.push_back(found.f.data()[i] - exact.f.data()[i]);
      }
      rounded.off.push_back(std::move(off));
    }
    all.push_back(std::move(rounded));
  }
  return absl::OkStatus();
}

void AddScales(const std::vector<Rounded>& all, Results& results) {
  Table& table = results.AddTable(
      "scales",
      {"data", "s/√m", "m", "draws", "weights", "weights deviation", "s√m", "limit 2s√m",
       "relative error", "95 % of changes", "Hoeffding 95 %"},
      "The number of weights of a component that are not 0 after rounding at scale s (mean and "
      "deviation over draws and 4 components), beside s√m and Theorem 5's limit. The relative "
      "error is the root mean square of f̂ − f over that of f. 95 % of all changes, one for each "
      "draw, component and row, are under the next value; the last value is the change that eq. 1 "
      "allows 5 % of them to exceed.");
  for (const Rounded& one : all) {
    std::vector<double> changes;
    for (const std::vector<double>& draw : one.off) {
      changes.insert(changes.end(), draw.begin(), draw.end());
    }
    const std::vector<double> moduli = one.Moduli();
    table.Add({one.data, one.scale / one.root(), one.m, one.draws, Mean(one.weights),
               Deviation(one.weights), one.scale * one.root(), 2 * one.scale * one.root(),
               RootMeanSquare(changes) / RootMeanSquare(one.exact),
               moduli[moduli.size() * 95 / 100], ChangeAt(one.m, kKernelRange, one.scale, 0.05)});
  }
}

void JudgeWeights(const std::vector<Rounded>& all, Results& results) {
  double mean = 0;
  double largest = 0;
  for (const Rounded& one : all) {
    const double expected = one.scale * one.root();
    mean = std::max(mean, Mean(one.weights) / expected);
    for (const double weights : one.weights) largest = std::max(largest, weights / expected);
  }
  results.Judge(
      {.claim = "Theorem 5, first: fewer weights are left than 4cm/(εT), which is 2s√m at its "
                "scale s = 2c√m/(εT)",
       .printed = "2s√m",
       .measured = absl::StrFormat("at most %.3f of s√m, %.3f in the mean", largest, mean),
       .rule = "every component of every draw at every scale has fewer; the mean is at most 1.05 "
               "of s√m (a unit vector has Σ abs(α_i) of at most √m)",
       .agrees = largest < 2 && mean <= 1.05});
}

// Compares the frequency of changes of at least t with eq. 1 for `range`. A draw changes all rows
// together, so only different draws are independent.
struct Tail {
  bool holds = true;
  double largest_ratio = 0;
};
Tail TailOf(const std::vector<Rounded>& all, double range, Table* table) {
  Tail tail;
  for (const Rounded& one : all) {
    const std::vector<double> moduli = one.Moduli();
    const double last = ChangeAt(one.m, range, one.scale, kLastLevel);
    for (int step = 1; step <= kSteps; ++step) {
      const double t = last * step / kSteps;
      const double p = RoundingProbability(one.m, range, one.scale, t);
      const auto from = std::lower_bound(moduli.begin(), moduli.end(), t);
      const double share =
          static_cast<double>(moduli.end() - from) / static_cast<double>(moduli.size());
      const double allowed = p + 4 * std::sqrt(p * (1 - p) / static_cast<double>(one.draws));
      tail.holds = tail.holds && share <= allowed;
      tail.largest_ratio = std::max(tail.largest_ratio, share / p);
      if (table != nullptr) table->Add({one.data, one.scale / one.root(), t, share, p});
    }
  }
  return tail;
}

void JudgeTails(const std::vector<Rounded>& all, Results& results) {
  Table& table = results.AddTable("tails", {"data", "s/√m", "t", "share of changes", "Hoeffding"});
  const Tail stated = TailOf(all, kKernelRange, &table);
  results.Judge(
      {.claim = "Eq. 1: a component changes by t or more with probability at most "
                "2exp(−2(st)²/(mc²))",
       .printed = "2exp(−2(st)²/(mc²)), c = 1",
       .measured = absl::StrFormat("shares of at most %.3f of the bound", stated.largest_ratio),
       .rule = "at each of 25 changes t up to where the bound p is .01, the share of changes is "
               "at most p + 4√(p(1 − p)/draws)",
       .agrees = stated.holds});
  const Tail eighth = TailOf(all, kKernelRange / 8, nullptr);
  results.Judge(
      {.claim = "The verdict can reject: with an eighth of the kernel's range c, the shares exceed "
                "the bound",
       .measured = absl::StrFormat("shares of up to %.3g times the bound", eighth.largest_ratio),
       .rule = "the rule above fails",
       .agrees = !eighth.holds});
}

// Returns, for each draw, the component of f̂ − f along f: Σ (f̂ − f)·f/Σ f² over the rows. Its
// mean is 0 if rounding is unbiased.
std::vector<double> Stretches(const Rounded& one, size_t component) {
  std::vector<double> stretches;
  for (const std::vector<double>& draw : one.off) {
    double product = 0;
    double square = 0;
    for (size_t i = component; i < draw.size(); i += kComponents) {
      product += draw[i] * one.exact[i];
      square += one.exact[i] * one.exact[i];
    }
    stretches.push_back(product / square);
  }
  return stretches;
}

void JudgeBias(const std::vector<Rounded>& all, Results& results) {
  double largest = 0;
  int64_t count = 0;
  for (const Rounded& one : all) {
    for (size_t n = 0; n < kComponents; ++n) {
      const std::vector<double> stretches = Stretches(one, n);
      const double error = StandardError(stretches);
      if (error == 0) continue;
      largest = std::max(largest, std::abs(Mean(stretches)) / error);
      ++count;
    }
  }
  results.Judge(
      {.claim = "Rounding is unbiased: in the mean over draws, f̂ − f has no component along f",
       .measured = absl::StrFormat("at most %.2f standard errors off in %d means", largest, count),
       .rule = "no mean is more than 5 standard errors off 0; each is the mean over draws of Σ (f̂ "
               "− f)f/Σ f² over the rows, for one data set, scale and component",
       .agrees = largest <= 5});
}

absl::Status Run(const Options& options, Results& results) {
  UseOneBlasThread();
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<KernelData> data, ReadKernelData(options));
  std::vector<Rounded> scales;
  for (const KernelData& one : data) PHIMAP_RETURN_IF_ERROR(MeasureScales(options, one, scales));
  AddScales(scales, results);
  JudgeWeights(scales, results);
  JudgeTails(scales, results);
  JudgeBias(scales, results);
  return MeasureTheorem5(options, results);
}

}  // namespace

Experiment AmsRounding() {
  return {
      .name = "ams_rounding",
      .paper = "AMS",
      .item = "section 4, Theorem 5",
      .title = "kernel expansions with rounded weights",
      .claim =
          "A component f(x) = Σ α_i k(x_i, x) of a unit vector α may be rounded at scale s: a "
          "weight under 1/s becomes ±1/s with probability s times its magnitude, and 0 otherwise. "
          "The rounded component f̂ is unbiased, and differs from f by t or more with probability "
          "at most 2exp(−2(st)²/(mc²)), where c is the range of the kernel (eq. 1). At s = "
          "2c√m/(εT), with probability 1 − 1/m³, fewer than 4cm/(εT) weights are left, and f̂ is "
          "within 1 ± ε of f or both are trivial, which means under T√log m (Theorem 5). The paper "
          "prints no measurement.",
      .protocol =
          "Kernel PCA, not centred, is built with the option rounding on m = 500 rows (300 in a "
          "quick run) drawn from letter.csv and spam.csv, columns with mean 0 and variance 1, "
          "rbf(gamma=1/p); 100 draws of coins (quick: 12) at each of 7 scales; 4 components on 50 "
          "other rows, without the factor λ^{-1/2}. c = 1, because 0 and all values of an rbf "
          "kernel lie in [0, 1]. Theorem 5 saves weights only if f is not much smaller than c√m. "
          "The values of these kernels have root mean squares of .26 and .44, and the theorem's "
          "limit on the weights would be under m only from several thousand rows (spam) or over "
          "ten thousand rows (letter) on. So Theorem 5 is judged on another kernel, "
          "rbf(gamma=.1/p), with m = 2,000 (quick: 800), by the first component on 200 other rows, "
          "with 40 draws (quick: 6). The paper leaves ε and T open. Here ε = .6, and T is such "
          "that T√ln m is three quarters of the median of f.",
      .run = Run};
}

}  // namespace phimap::lab
