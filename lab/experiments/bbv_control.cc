#include "lab/experiments/bbv_control.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/status_macros.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

// √.2, from the variance of .2 that footnote 5 prints.
constexpr double kDeviationOfFootnote = 0.44721359549995793;
constexpr double kLevel = 0.002;
// The control's seeds begin here; those of the table's rows end before.
constexpr int64_t kSeedsOfControl = 500'000;

JointRow JointRowOf(const BbvRuns& runs, const BbvSurface& surface) {
  JointRow row;
  for (const BbvMethod method : kBbvJudged) {
    row.runs.emplace_back(runs.of(method));
    row.printed.push_back(surface.printed[method]);
  }
  return row;
}

void AddJoint(const char* cells, const JointTest& test, Table& table) {
  table.Add({cells, test.cells, test.chi_square, test.median, test.p});
}

// Returns the share of runs in which none of the three SVMs makes an error.
Interval ShareWithoutError(const BbvRuns& runs) {
  int64_t without = 0;
  for (size_t i = 0; i < runs.svm.size(); ++i) {
    without += std::max({runs.svm[i], runs.f2_svm[i], runs.f1_svm[i]}) == 0 ? 1 : 0;
  }
  return ShareInterval(without, static_cast<int64_t>(runs.svm.size()));
}

// Returns the probability that no SVM errs in ten runs, which is what rows 4 and 8 print.
Interval ChanceOfNoError(const BbvRuns& runs) {
  const Interval share = ShareWithoutError(runs);
  return {.low = std::pow(share.low, kBbvSurfacePrintedRuns),
          .high = std::pow(share.high, kBbvSurfacePrintedRuns)};
}

void AddControlRow(int64_t row, const BbvRuns& runs, const Options& options, Table& table) {
  const BbvSurface& surface = BbvSurfaces()[row];
  for (const BbvMethod method : kBbvJudged) {
    const BbvMeans means{.of = "",
                         .printed = surface.printed[method],
                         .half_digit = kBbvSurfaceDigit / 2,
                         .printed_runs = kBbvSurfacePrintedRuns,
                         .runs = runs.of(method)};
    const BbvJudged judged = Judged(means, options.seed);
    table.Add({row + 1, surface.name, kBbvMethods[method], means.printed, judged.mean,
               judged.central.low, judged.central.high, judged.agrees ? "no" : "yes"});
  }
}

}  // namespace

void JudgeJointly(const std::vector<BbvSurfaceRuns>& rows, const Options& options,
                  Results& results) {
  std::vector<JointRow> printed;
  for (size_t row = 0; row < rows.size(); ++row) {
    printed.push_back(JointRowOf(rows[row], BbvSurfaces()[row]));
  }
  std::vector<JointRow> tripled = printed;
  for (JointRow& row : tripled) {
    for (double& error : row.printed) error *= 3;
  }
  // Each row has the printed numbers of the row with the other b, so that only the separator's
  // shape differs.
  std::vector<JointRow> exchanged = printed;
  for (size_t row = 0; row < 4; ++row) {
    std::swap(exchanged[row].printed, exchanged[row + 4].printed);
  }
  Table& table = results.AddTable(
      "joint", {"printed numbers", "cells", "χ²", "median if they are of our law", "p"},
      "All SVM cells together: χ² over the cells, and the probability of one at least as large, "
      "from 20,000 tables of ten of our runs a row. Two other tables show what the test rejects.");
  const JointTest test = TestJointly(printed, kBbvSurfacePaper, options.seed);
  const JointTest of_tripled = TestJointly(tripled, kBbvSurfacePaper, options.seed);
  const JointTest of_exchanged = TestJointly(exchanged, kBbvSurfacePaper, options.seed);
  AddJoint("the paper's", test, table);
  AddJoint("three times the paper's", of_tripled, table);
  AddJoint("the paper's, rows 1 to 4 exchanged with 5 to 8", of_exchanged, table);
  results.Judge(
      {.claim = "the 24 cells of F1 + SVM, F2 + SVM and SVM together agree with the printed ones",
       .measured = absl::StrFormat("χ² %.1f over %d cells, median %.1f; p = %.2g", test.chi_square,
                                   test.cells, test.median, test.p),
       .rule = "p is at least .002 for the printed table, and under .002 for the table with "
               "three times the errors and for the one with rows 1 to 4 exchanged with 5 to 8",
       .agrees = test.p >= kLevel && of_tripled.p < kLevel && of_exchanged.p < kLevel});
}

absl::Status JudgeControl(const std::vector<BbvSurfaceRuns>& rows, const Options& options,
                          Results& results) {
  Table& table = results.AddTable(
      "control", {"row", "surface", "method", "printed", "mean", "low", "high", "rejected"},
      "Variance .2, as footnote 5 prints it, in place of deviation .2: mean error, the central "
      "99.8 % of means of 10 runs, and whether this cell alone rejects the printed number.");
  for (const int64_t row : {3, 7}) {
    PHIMAP_ASSIGN_OR_RETURN(const BbvSurfaceRuns runs,
                            RunSurface({.surface = BbvSurfaces()[row],
                                        .deviation = kDeviationOfFootnote,
                                        .runs = options.Runs(4000, 1500),
                                        .first_seed = kSeedsOfControl + row * kBbvSeedsOfSurface},
                                       options));
    AddControlRow(row, runs, options, table);
    const Interval chance = ChanceOfNoError(runs);
    const Interval of_deviation = ChanceOfNoError(rows[row]);
    results.Judge({.claim = absl::StrCat(TitleOfSurface(row),
                                         "variance .2 in place of deviation .2 is rejected"),
                   .printed = "0.000 of SVM, F2 + SVM and F1 + SVM",
                   .measured = absl::StrFormat(
                       "probability of what is printed %.2g to %.2g; with deviation .2 %.2g to "
                       "%.2g",
                       chance.low, chance.high, of_deviation.low, of_deviation.high),
                   .rule = "the rule of the run, with 95 % intervals of the share of runs without "
                           "an error: the probability is under .002, and with deviation .2 it is "
                           "over .002",
                   .agrees = chance.high < kLevel && of_deviation.low > kLevel});
  }
  return absl::OkStatus();
}

}  // namespace phimap::lab
