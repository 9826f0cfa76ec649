// Table 1 of Balcan, Blum, Vempala 2006.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/status_macros.h"
#include "lab/experiments/bbv_data.h"
#include "lab/experiments/bbv_methods.h"
#include "lab/experiments/experiments.h"
#include "lab/learning.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

constexpr double kDeviation = 0.2;
// √.2, from the variance of .2 that footnote 5 prints.
constexpr double kDeviationOfFootnote = 0.44721359549995793;
constexpr int64_t kPrintedRuns = 10;
constexpr double kHalfDigit = 0.0005;
constexpr int64_t kSeedsOfRow = 10'000;
constexpr int64_t kMarginRows = 20'000;
// The methods whose numbers are judged.
constexpr std::array<BbvMethod, 3> kJudged = {kBbvF1Svm, kBbvF2Svm, kBbvSvm};

// F2's features, rotated: six kernel principal components of the landmarks.
constexpr const char* kTurned =
    "kpca(landmarks=10, dimensions=6, centred=false, serving_type=float64)";

struct SurfaceRuns : BbvRuns {
  // Errors of Winnow on the features of kTurned, one vector per setting of the grid.
  std::vector<std::vector<double>> turned_winnow =
      std::vector<std::vector<double>>(WinnowGrid().size());

  double LeastTurned() const {
    double least = 1;
    for (const std::vector<double>& errors : turned_winnow) least = std::min(least, Mean(errors));
    return least;
  }
};

struct SurfacePlan {
  const BbvSurface& surface;
  double deviation = kDeviation;
  int64_t runs = 0;
  // Number of runs that include Winnow and the SVM without an offset.
  int64_t winnow_runs = 0;
  // Seed of the first run.
  int64_t first_seed = 0;
};

absl::Status RunOnce(const SurfacePlan& plan, int64_t run, const Options& options,
                     SurfaceRuns& runs) {
  const uint64_t seed = options.Seed(plan.first_seed + run);
  const Examples drawn =
      DrawSurface(plan.surface, plan.deviation,
                  kBbvSurfaceLandmarks + kBbvSurfaceTrainRows + kBbvSurfaceTestRows, seed);
  const Examples train = Slice(drawn, kBbvSurfaceLandmarks, kBbvSurfaceTrainRows);
  const Examples test =
      Slice(drawn, kBbvSurfaceLandmarks + kBbvSurfaceTrainRows, kBbvSurfaceTestRows);
  PHIMAP_ASSIGN_OR_RETURN(const BbvMaps maps,
                          BuildBbvMaps(kBbvPolynomial, "uniform", kBbvSurfaceLandmarks,
                                       drawn.rows.view().Rows(0, kBbvSurfaceLandmarks), seed));
  const BbvTask task{.kernel = kBbvPolynomial, .train = train, .test = test, .seed = seed};
  PHIMAP_RETURN_IF_ERROR(AddRun(maps, task, run < plan.winnow_runs, runs));
  if (run >= plan.winnow_runs) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const BuiltMap turned,
                          BuiltMap::Build({kTurned, kBbvPolynomial},
                                          drawn.rows.view().Rows(0, kBbvSurfaceLandmarks), seed));
  PHIMAP_ASSIGN_OR_RETURN(const Examples train_features, Mapped(turned, train));
  PHIMAP_ASSIGN_OR_RETURN(const Examples test_features, Mapped(turned, test));
  for (size_t s = 0; s < WinnowGrid().size(); ++s) {
    PHIMAP_ASSIGN_OR_RETURN(const double error,
                            TestError(WinnowGrid()[s], train_features, test_features, seed));
    runs.turned_winnow[s].push_back(error);
  }
  return absl::OkStatus();
}

absl::StatusOr<SurfaceRuns> RunSurface(const SurfacePlan& plan, const Options& options) {
  SurfaceRuns runs;
  for (int64_t run = 0; run < plan.runs; ++run) {
    PHIMAP_RETURN_IF_ERROR(RunOnce(plan, run, options, runs));
  }
  return runs;
}

std::string Title(int64_t row) {
  return absl::StrCat("row ", row + 1, ", ", BbvSurfaces()[row].name, ", ");
}

class Report {
 public:
  Report(const Options& options, Results& results)
      : options_(options),
        errors_(results.AddTable("errors", {"row", "surface", "b", "method", "printed", "mean",
                                            "standard_error", "low", "high", "runs"})),
        wide_(results.AddTable(
            "table",
            {"row", "surface", "b", "c", "M", "F1 + Winnow", "F1 + SVM", "F2 + Winnow",
             "F2 turned + Winnow", "F2 + SVM", "SVM", "SVM without offset"},
            "Mean error, and in brackets what the paper prints. Winnow has the best setting of the "
            "grid in each cell, so its numbers show the best that it can do; they do not repeat "
            "the paper's. F2 turned has the landmarks' principal axes as coordinates. The last "
            "column is the SVM as the paper's toolbox may have run it, in the same runs as "
            "Winnow.")),
        results_(results) {}

  void Add(int64_t row, const SurfaceRuns& runs) {
    const BbvSurface& surface = BbvSurfaces()[row];
    std::vector<Cell> cells = {row + 1, surface.name, surface.b, surface.c, surface.bound};
    for (const BbvMethod method : {kBbvF1Winnow, kBbvF1Svm, kBbvF2Winnow, kBbvF2Svm, kBbvSvm}) {
      const BbvMeans means{.of = absl::StrCat(Title(row), kBbvMethods[method]),
                           .printed = surface.printed[method],
                           .half_digit = kHalfDigit,
                           .printed_runs = kPrintedRuns,
                           .runs = runs.of(method)};
      const BbvJudged judged = Judged(means, options_.seed);
      AddErrors(row, kBbvMethods[method], means, judged);
      cells.push_back(absl::StrFormat("%.4f (%.3f)", judged.mean, means.printed));
      const bool is_judged = method != kBbvF1Winnow && method != kBbvF2Winnow;
      if (method == kBbvF2Winnow) cells.push_back(absl::StrFormat("%.4f", runs.LeastTurned()));
      if (is_judged) results_.Judge(VerdictOf(means, judged));
    }
    const BbvMeans without{.of = "",
                           .printed = surface.printed[kBbvSvm],
                           .half_digit = kHalfDigit,
                           .printed_runs = kPrintedRuns,
                           .runs = runs.svm_without_offset};
    const BbvJudged judged = Judged(without, options_.seed);
    AddErrors(row, "SVM without offset", without, judged);
    cells.push_back(absl::StrFormat("%.4f", judged.mean));
    wide_.Add(std::move(cells));
  }

 private:
  void AddErrors(int64_t row, const char* method, const BbvMeans& means, const BbvJudged& judged) {
    const BbvSurface& surface = BbvSurfaces()[row];
    errors_.Add({row + 1, surface.name, surface.b, method, means.printed, judged.mean,
                 judged.standard_error, judged.central.low, judged.central.high,
                 means.runs.size()});
  }

  const Options& options_;
  Table& errors_;
  Table& wide_;
  Results& results_;
};

// Returns the mean errors of one map at one setting, one number per row of the paper's table.
std::vector<double> MeansOfRows(const std::vector<SurfaceRuns>& rows,
                                std::vector<std::vector<double>> BbvRuns::*map, size_t setting) {
  std::vector<double> means;
  for (const SurfaceRuns& row : rows) means.push_back(Mean((row.*map)[setting]));
  return means;
}

// Judges the order of the mean errors of F1 + Winnow and F2 + Winnow.
void JudgeWinnow(const std::vector<SurfaceRuns>& rows, Results& results) {
  Table& table = results.AddTable(
      "winnow",
      {"learner", "rows of 8 where F1 errs more", "mean error of F1 over the rows",
       "mean error of F2 over the rows"},
      "The grid of Winnow: in each line, both maps and all eight rows have the same setting.");
  int64_t pairs = 0;
  int64_t settings = 0;
  for (size_t s = 0; s < WinnowGrid().size(); ++s) {
    const std::vector<double> f1 = MeansOfRows(rows, &BbvRuns::f1_winnow, s);
    const std::vector<double> f2 = MeansOfRows(rows, &BbvRuns::f2_winnow, s);
    int64_t ordered = 0;
    for (size_t row = 0; row < rows.size(); ++row) ordered += f1[row] > f2[row] ? 1 : 0;
    table.Add({WinnowGrid()[s], ordered, Mean(f1), Mean(f2)});
    pairs += ordered;
    settings += Mean(f1) > Mean(f2) ? 1 : 0;
  }
  const auto all = static_cast<int64_t>(WinnowGrid().size());
  results.Judge({.claim = "with Winnow, F1 errs more than F2 on the mean of the eight rows",
                 .printed = ".0458 and .0255",
                 .measured = absl::StrFormat("at %d of %d settings", settings, all),
                 .rule = "the order of the means over the rows at every setting of the grid",
                 .agrees = settings == all});
  int64_t at_best = 0;
  for (const SurfaceRuns& row : rows) at_best += row.BestWinnowIsInOrder() ? 1 : 0;
  results.Judge(
      {.claim = "with Winnow, F1 errs more than F2 in each of the eight rows",
       .printed = "8 of 8",
       .measured = absl::StrFormat("%d of 8 at the best setting of each; %d of %d pairs of row and "
                                   "setting",
                                   at_best, pairs, 8 * all),
       .rule = "the order of the means in all eight rows, each map at the setting of the grid that "
               "is best for it",
       .agrees = at_best == 8,
       .why_not =
           "Rows 4 and 8, where both maps err by about .01 or less, come out the other way round. "
           "Winnow, unlike the SVM, depends on the coordinates of F2, and the paper gives neither "
           "these nor Winnow's rate, threshold and passes. On the landmarks' principal axes (F2 "
           "turned) the same features err clearly less in these rows, nearly as little as F1."});
}

// Judges whether the true separator has at least the margin γ_l on drawn points.
absl::Status JudgeMargins(const Options& options, Results& results) {
  Table& table = results.AddTable(
      "margins", {"row", "surface", "γ_l of the paper", "measured margin", "points"},
      "The least cosine between the true separator and a drawn point in φ-space, by the exact map "
      "of the kernel's six monomials, beside the paper's lower bound.");
  int64_t at_least = 0;
  for (int64_t row = 0; row < 8; ++row) {
    const BbvSurface& surface = BbvSurfaces()[row];
    const Examples drawn =
        DrawSurface(surface, kDeviation, kMarginRows, options.Seed((row + 1) * kSeedsOfRow - 1));
    PHIMAP_ASSIGN_OR_RETURN(
        const BuiltMap map,
        BuiltMap::Build({"polynomial(dimensions=6, serving_type=float64)", kBbvPolynomial},
                        drawn.rows.view().Rows(0, 100), options.seed));
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> w, BoundaryVector(map, surface));
    PHIMAP_ASSIGN_OR_RETURN(const Examples features, Mapped(map, drawn));
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> squares,
                            SelfKernel(kBbvPolynomial, drawn.rows.view()));
    const double margin = RisingMargins(w, features, squares).front();
    at_least += margin >= surface.LeastMargin() ? 1 : 0;
    table.Add({row + 1, surface.name, absl::StrFormat("%.7f", surface.LeastMargin()), margin,
               kMarginRows});
  }
  results.Judge({.claim = "the margin in φ-space is at least γ_l = c/((1 + 2M²)√(1 + 1/a⁴ + 1/b⁴))",
                 .printed = ".0297603 for rows 1 to 4, .0068919 for rows 5 to 8",
                 .measured = absl::StrCat(at_least, " of 8 rows have it"),
                 .rule = absl::StrCat("the least margin of the true separator over ", kMarginRows,
                                      " drawn points of each row is at least γ_l"),
                 .agrees = at_least == 8});
  return absl::OkStatus();
}

// Returns the probability that none of the three SVMs makes an error in ten runs, which is what
// rows 4 and 8 print.
double ChanceOfNoError(const SurfaceRuns& runs) {
  int64_t without = 0;
  for (size_t i = 0; i < runs.svm.size(); ++i) {
    without += std::max({runs.svm[i], runs.f2_svm[i], runs.f1_svm[i]}) == 0 ? 1 : 0;
  }
  return std::pow(static_cast<double>(without) / static_cast<double>(runs.svm.size()),
                  kPrintedRuns);
}

// Checks that the rule can reject other data: Gaussian points with the variance that the footnote
// prints.
absl::Status JudgeControl(const std::vector<SurfaceRuns>& rows, const Options& options,
                          Results& results) {
  Table& table = results.AddTable(
      "control", {"row", "surface", "method", "printed", "mean", "low", "high", "rejected"},
      "Variance .2, as footnote 5 prints it, in place of deviation .2: mean error, and the central "
      "99.8 % of means of 10 runs. Row 4 is rejected by the three methods together, by none of "
      "them alone.");
  for (const int64_t row : {3, 7}) {
    const BbvSurface& surface = BbvSurfaces()[row];
    PHIMAP_ASSIGN_OR_RETURN(const SurfaceRuns runs, RunSurface({.surface = surface,
                                                                .deviation = kDeviationOfFootnote,
                                                                .runs = 1000,
                                                                .first_seed = row * kSeedsOfRow},
                                                               options));
    int64_t rejected = 0;
    for (const BbvMethod method : kJudged) {
      const BbvMeans means{.of = "",
                           .printed = surface.printed[method],
                           .half_digit = kHalfDigit,
                           .printed_runs = kPrintedRuns,
                           .runs = runs.of(method)};
      const BbvJudged judged = Judged(means, options.seed);
      table.Add({row + 1, surface.name, kBbvMethods[method], means.printed, judged.mean,
                 judged.central.low, judged.central.high, judged.agrees ? "no" : "yes"});
      rejected += judged.agrees ? 0 : 1;
    }
    const double chance = ChanceOfNoError(runs);
    const double of_deviation = ChanceOfNoError(rows[row]);
    results.Judge(
        {.claim = absl::StrCat(Title(row), "variance .2 in place of deviation .2 is rejected"),
         .printed = "0.000 of SVM, F2 + SVM and F1 + SVM",
         .measured = absl::StrFormat("probability %.2g of what is printed, %.2g with deviation .2; "
                                     "%d of the 3 means rejected alone",
                                     chance, of_deviation, rejected),
         .rule = "the probability that none of the three errs in ten runs, computed from the share "
                 "of 1,000 runs without an error, is under .002 (one-sided, because no error is "
                 "under 0), and with deviation .2 it is over .002",
         .agrees = chance < 0.002 && of_deviation > 0.002});
  }
  return absl::OkStatus();
}

absl::Status Run(const Options& options, Results& results) {
  std::vector<SurfaceRuns> rows;
  Report report(options, results);
  for (int64_t row = 0; row < 8; ++row) {
    PHIMAP_ASSIGN_OR_RETURN(SurfaceRuns runs, RunSurface({.surface = BbvSurfaces()[row],
                                                          .runs = options.Runs(1000, 200),
                                                          .winnow_runs = options.Runs(200, 30),
                                                          .first_seed = row * kSeedsOfRow},
                                                         options));
    report.Add(row, runs);
    rows.push_back(std::move(runs));
  }
  JudgeWinnow(rows, results);
  PHIMAP_RETURN_IF_ERROR(JudgeMargins(options, results));
  return JudgeControl(rows, options, results);
}

}  // namespace

Experiment BbvTable1() {
  return {
      .name = "bbv_table1",
      .paper = "BBV",
      .item = "Table 1",
      .title = "errors of five methods on points that an ellipse or a hyperbola separates",
      .claim =
          "A linear separator in the features F1 or F2 of ten random points classifies nearly as "
          "well as the SVM with the kernel itself. Eight rows print mean errors of five methods "
          "over 10 runs.",
      .protocol =
          "Points of the plane are drawn as footnote 5 says: a fair coin chooses the class, then "
          "points of the square or of a Gaussian are drawn until one lies in the region of the "
          "class. The Gaussian has the standard deviation .2; the footnote says variance .2, with "
          "which rows 4 and 8 do not come out as printed (see the control). Kernel (x·y + 1)²; the "
          "offset 1 is what the paper's own bound γ_l implies. In each run 10 unlabeled points are "
          "streamed and become the landmarks of F1 and F2, 40 other points are learnt from, and "
          "100 others are tested. The SVM has hinge loss, C = 10 and an offset that is not "
          "penalised, by libsvm; on features its kernel is linear. Ten points span the "
          "six-dimensional φ-space. F2 + SVM and SVM are therefore the same problem here and have "
          "the same errors. In the paper their errors differ, probably because its toolbox has an "
          "offset under a linear kernel and none under a polynomial one. The last column of the "
          "table shows the SVM without offset. The paper prints neither rate, threshold nor passes "
          "of Winnow: rates .01, .03, .1, .3 and 1 with 10 and 100 passes, threshold 0 and a "
          "constant feature are tried, each column scaled by its largest magnitude, and only the "
          "order of F1 and F2 is judged. F2 is unique up to a rotation, which changes the errors "
          "of Winnow but not those of the SVM. 1,000 runs a row, 200 of them with Winnow (quick: "
          "200 and 30); run i of row k draws with seed 1,000,000·s + 10,000·(k − 1) + i, s being "
          "the seed of all.",
      .run = Run};
}

}  // namespace phimap::lab
