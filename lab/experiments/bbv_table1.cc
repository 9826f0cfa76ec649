// Table 1 of Balcan, Blum, Vempala 2006.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/status_macros.h"
#include "lab/experiments/bbv_control.h"
#include "lab/experiments/bbv_data.h"
#include "lab/experiments/bbv_methods.h"
#include "lab/experiments/bbv_surface_runs.h"
#include "lab/experiments/bbv_winnow.h"
#include "lab/experiments/experiments.h"
#include "lab/learning.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

constexpr double kHalfDigit = kBbvSurfaceDigit / 2;
constexpr int64_t kMarginRows = 20'000;

constexpr const char* kProtocol =
    "Points of the plane are drawn as footnote 5 says: a fair coin chooses the class, then points "
    "of the square or of a Gaussian are drawn until one lies in the region of the class. The "
    "Gaussian has the standard deviation .2; the footnote says variance .2, which the control "
    "rejects. Kernel (x·y + 1)²; the offset 1 is what the paper's own bound γ_l implies. In each "
    "run 10 unlabeled points are streamed and become the landmarks of F1 and F2, 40 other points "
    "are learnt from, and 100 others are tested. The SVM has hinge loss, C = 10 and an offset "
    "that is not penalised, by libsvm; on features its kernel is linear. Ten points span the "
    "six-dimensional φ-space. F2 + SVM and SVM are therefore the same problem here and have the "
    "same errors. In the paper their errors differ, probably because its toolbox has an offset "
    "under a linear kernel and none under a polynomial one. The last column of the table shows "
    "the SVM without offset. For Winnow, which depends on coordinates, F2 has the paper's: F1·U⁺ "
    "with K(S, S) = UᵀU and U upper triangular, which is Gram–Schmidt in the order of drawing. "
    "The product's F2 takes landmarks in the order of their residuals; a column shows it. The "
    "paper prints neither rate, threshold nor passes of Winnow: rates .01, .03, .1, .3 and 1 with "
    "10 and 100 passes, threshold 0 and a constant feature are tried, each column scaled by its "
    "largest magnitude; the printed numbers are compared at the setting of the grid that suits "
    "all 16 best. The joint test takes a χ² over the cells of the three SVMs, (printed − mean)² "
    "divided by the variance of a mean of ten of our runs and of its rounding, and its law from "
    "our own runs. The control: rows 4 and 8 print no error of any of the three SVMs. The rule "
    "for them was fixed before the control was drawn, and the control has seeds of its own: a "
    "deviation is rejected if ten runs in which none of the three SVMs errs have a probability "
    "under .002, one-sided, because no error is under 0. 1,000 runs a row, 200 of them with "
    "Winnow (quick: 200 and 30), 4,000 of the control (quick: 1,500); run i of row k draws with "
    "seed 1,000,000·s + 10,000·(k − 1) + i, in the control with 500,000 more, s being the seed of "
    "all.";

class Report {
 public:
  Report(const Options& options, Results& results)
      : options_(options),
        errors_(results.AddTable("errors", {"row", "surface", "b", "method", "printed", "mean",
                                            "standard_error", "low", "high", "runs"})),
        wide_(results.AddTable(
            "table",
            {"row", "surface", "b", "c", "M", "F1 + Winnow", "F1 + SVM", "F2 + Winnow",
             "F2 pivoted + Winnow", "F2 + SVM", "SVM", "SVM without offset"},
            "Mean error, and in brackets what the paper prints. Winnow has the best setting of the "
            "grid in each cell here; the table of its grid compares the printed numbers at one "
            "setting for all. F2 has the paper's coordinates, F2 pivoted those of the product. The "
            "last column is the SVM as the paper's toolbox may have run it, in the same runs as "
            "Winnow.")),
        results_(results) {}

  void Add(int64_t row, const BbvSurfaceRuns& runs) {
    const BbvSurface& surface = BbvSurfaces()[row];
    std::vector<Cell> cells = {row + 1, surface.name, surface.b, surface.c, surface.bound};
    for (const BbvMethod method : {kBbvF1Winnow, kBbvF1Svm, kBbvF2Winnow, kBbvF2Svm, kBbvSvm}) {
      const BbvMeans means{.of = absl::StrCat(TitleOfSurface(row), kBbvMethods[method]),
                           .printed = surface.printed[method],
                           .half_digit = kHalfDigit,
                           .printed_runs = kBbvSurfacePrintedRuns,
                           .runs = runs.of(method)};
      const BbvJudged judged = Judged(means, options_.seed);
      AddErrors(row, kBbvMethods[method], means, judged);
      cells.push_back(absl::StrFormat("%.4f (%.3f)", judged.mean, means.printed));
      const bool is_judged = method != kBbvF1Winnow && method != kBbvF2Winnow;
      if (method == kBbvF2Winnow) cells.push_back(absl::StrFormat("%.4f", runs.LeastPivoted()));
      if (is_judged) results_.Judge(VerdictOf(means, judged));
    }
    const BbvMeans without{.of = "",
                           .printed = surface.printed[kBbvSvm],
                           .half_digit = kHalfDigit,
                           .printed_runs = kBbvSurfacePrintedRuns,
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

// Judges whether the true separator has at least the margin γ_l on drawn points.
absl::Status JudgeMargins(const Options& options, Results& results) {
  Table& table = results.AddTable(
      "margins", {"row", "surface", "γ_l of the paper", "measured margin", "points"},
      "The least cosine between the true separator and a drawn point in φ-space, by the exact map "
      "of the kernel's six monomials, beside the paper's lower bound.");
  int64_t at_least = 0;
  for (int64_t row = 0; row < 8; ++row) {
    const BbvSurface& surface = BbvSurfaces()[row];
    const Examples drawn = DrawSurface(surface, kBbvDeviation, kMarginRows,
                                       options.Seed((row + 1) * kBbvSeedsOfSurface - 1));
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

absl::Status Run(const Options& options, Results& results) {
  std::vector<BbvSurfaceRuns> rows;
  Report report(options, results);
  for (int64_t row = 0; row < 8; ++row) {
    PHIMAP_ASSIGN_OR_RETURN(BbvSurfaceRuns runs,
                            RunSurface({.surface = BbvSurfaces()[row],
                                        .runs = options.Runs(1000, 200),
                                        .winnow_runs = options.Runs(200, 30),
                                        .first_seed = row * kBbvSeedsOfSurface},
                                       options));
    report.Add(row, runs);
    rows.push_back(std::move(runs));
  }
  JudgeWinnow(rows, options, results);
  JudgeJointly(rows, options, results);
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
      .protocol = kProtocol,
      .run = Run};
}

}  // namespace phimap::lab
