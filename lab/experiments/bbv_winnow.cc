#include "lab/experiments/bbv_winnow.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "core/random/stream_ids.h"
#include "lab/joint_chi_square.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

constexpr int64_t kTablesOfOrder = 20'000;
constexpr double kLevel = 0.002;

// A setting of the grid, the same for both maps and all eight rows.
struct Setting {
  size_t number = 0;
  // Mean errors over the rows.
  double f1 = 0;
  double f2 = 0;
  // Number of rows where F1 errs more.
  int64_t ordered = 0;
  // The test of the 16 printed cells.
  JointTest joint;
};

// Returns the cells of F1 + Winnow and F2 + Winnow at one setting of the grid.
std::vector<JointRow> WinnowRows(const std::vector<BbvSurfaceRuns>& rows, size_t setting) {
  std::vector<JointRow> joint;
  for (size_t row = 0; row < rows.size(); ++row) {
    const BbvPrinted& printed = BbvSurfaces()[row].printed;
    joint.push_back({.runs = {rows[row].f1_winnow[setting], rows[row].f2_winnow[setting]},
                     .printed = {printed[kBbvF1Winnow], printed[kBbvF2Winnow]}});
  }
  return joint;
}

Setting TestSetting(const std::vector<BbvSurfaceRuns>& rows, size_t number,
                    const Options& options) {
  Setting setting{.number = number,
                  .joint = TestJointly(WinnowRows(rows, number), kBbvSurfacePaper, options.seed)};
  for (const BbvSurfaceRuns& row : rows) {
    const double f1 = Mean(row.f1_winnow[number]);
    const double f2 = Mean(row.f2_winnow[number]);
    setting.f1 += f1 / static_cast<double>(rows.size());
    setting.f2 += f2 / static_cast<double>(rows.size());
    setting.ordered += f1 > f2 ? 1 : 0;
  }
  return setting;
}

// Returns how many of the 16 cells agree by themselves, by the rule of the SVMs' cells.
int64_t CellsThatAgree(const std::vector<BbvSurfaceRuns>& rows, size_t setting,
                       const Options& options) {
  int64_t agree = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    const BbvPrinted& printed = BbvSurfaces()[row].printed;
    for (const BbvMethod method : {kBbvF1Winnow, kBbvF2Winnow}) {
      const auto& maps = method == kBbvF1Winnow ? rows[row].f1_winnow : rows[row].f2_winnow;
      const BbvJudged judged = Judged({.of = "",
                                       .printed = printed[method],
                                       .half_digit = kBbvSurfaceDigit / 2,
                                       .printed_runs = kBbvSurfacePrintedRuns,
                                       .runs = maps[setting]},
                                      options.seed);
      agree += judged.agrees ? 1 : 0;
    }
  }
  return agree;
}

// Returns the probability that in every row the mean error of ten of our runs is larger with F1
// than with F2, as the paper prints it.
double ChanceOfOrder(const std::vector<BbvSurfaceRuns>& rows, size_t setting,
                     const Options& options) {
  RandomCursor random(RandomStream(options.seed, StreamId::kLabOrder));
  double chance = 1;
  for (const BbvSurfaceRuns& row : rows) {
    const std::vector<double>& f1 = row.f1_winnow[setting];
    const std::vector<double>& f2 = row.f2_winnow[setting];
    int64_t in_order = 0;
    for (int64_t table = 0; table < kTablesOfOrder; ++table) {
      double difference = 0;
      for (int64_t i = 0; i < kBbvSurfacePrintedRuns; ++i) {
        const uint64_t run = random.UniformBelow(f1.size());
        difference += f1[run] - f2[run];
      }
      // Errors are hundredths, so equal sums differ by rounding alone.
      in_order += difference > 1e-9 ? 1 : 0;
    }
    chance *= static_cast<double>(in_order) / static_cast<double>(kTablesOfOrder);
  }
  return chance;
}

// Judges whether Gram–Schmidt found the dimension of φ-space, without which its last features would
// be rounding errors.
void JudgeRanks(const std::vector<BbvSurfaceRuns>& rows, Results& results) {
  int64_t runs = 0;
  int64_t of_six = 0;
  for (const BbvSurfaceRuns& row : rows) {
    runs += static_cast<int64_t>(row.ranks.size());
    of_six += std::count(row.ranks.begin(), row.ranks.end(), 6);
  }
  results.Judge(
      {.claim = "F2 of ten landmarks in the order of drawing has the six dimensions of φ-space",
       .measured = absl::StrFormat("six features in %d of %d runs", of_six, runs),
       .rule = "in every run with Winnow",
       .agrees = of_six == runs});
}

void JudgeCells(const std::vector<BbvSurfaceRuns>& rows, const std::vector<Setting>& settings,
                const Setting& best, const Options& options, Results& results) {
  int64_t agreeing = 0;
  double least = 1;
  for (const Setting& setting : settings) {
    agreeing += setting.joint.p >= 10 * kLevel ? 1 : 0;
    least = std::min(least, setting.joint.p);
  }
  const int64_t cells = CellsThatAgree(rows, best.number, options);
  results.Judge(
      {.claim = "the 16 cells of F1 + Winnow and F2 + Winnow agree with the printed ones at one "
                "setting for all",
       .measured = absl::StrFormat(
           "%s: χ² %.1f, median %.1f, p = %.2g; %d of 16 cells agree alone. p is at least .02 at "
           "%d of %d settings",
           WinnowGrid()[best.number], best.joint.chi_square, best.joint.median, best.joint.p, cells,
           agreeing, settings.size()),
       .rule = "at the setting with the largest p of the joint test, p is at least .02 (ten times "
               "that of one test, because the best of ten is taken) and each cell agrees by the "
               "rule of the SVMs' cells; the least p of the grid is under .002",
       .agrees = best.joint.p >= 10 * kLevel && cells == 16 && least < kLevel});
}

}  // namespace

void JudgeWinnow(const std::vector<BbvSurfaceRuns>& rows, const Options& options,
                 Results& results) {
  Table& table = results.AddTable(
      "winnow",
      {"learner", "rows of 8 where F1 errs more", "mean error of F1 over the rows",
       "mean error of F2 over the rows", "χ² of 16 cells", "p"},
      "The grid of Winnow: in each line, both maps and all eight rows have the same setting. χ² is "
      "the joint test's over the printed cells of F1 + Winnow and F2 + Winnow.");
  std::vector<Setting> settings;
  int64_t in_order = 0;
  for (size_t s = 0; s < WinnowGrid().size(); ++s) {
    settings.push_back(TestSetting(rows, s, options));
    const Setting& now = settings.back();
    in_order += now.f1 > now.f2 ? 1 : 0;
    table.Add({WinnowGrid()[s], now.ordered, now.f1, now.f2, now.joint.chi_square, now.joint.p});
  }
  results.Judge({.claim = "with Winnow, F1 errs more than F2 on the mean of the eight rows",
                 .printed = ".0458 and .0255",
                 .measured = absl::StrFormat("at %d of %d settings", in_order, settings.size()),
                 .rule = "the order of the means over the rows at every setting of the grid",
                 .agrees = in_order == static_cast<int64_t>(settings.size())});
  const Setting& best =
      *std::max_element(settings.begin(), settings.end(),
                        [](const Setting& a, const Setting& b) { return a.joint.p < b.joint.p; });
  JudgeRanks(rows, results);
  JudgeCells(rows, settings, best, options, results);
  const double chance = ChanceOfOrder(rows, best.number, options);
  results.Judge({.claim = "with Winnow, F1 errs more than F2 in each of the eight rows",
                 .printed = "8 of 8",
                 .measured = absl::StrFormat(
                     "in the means of all our runs in %d of 8; in all eight with probability %.2g "
                     "in tables of ten runs a row",
                     best.ordered, chance),
                 .rule = "at that setting, tables of means of ten of our runs have this order in "
                         "all eight rows with a probability of at least .002",
                 .agrees = chance >= kLevel});
}

}  // namespace phimap::lab
