// Eigenspaces of a randomized Gram matrix: Achlioptas, McSherry, Schölkopf 2001, section 3,
// Theorems 2 to 4.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/mapping/kernel_pca/randomized_gram.h"
#include "core/status/status_macros.h"
#include "lab/experiments/ams_data.h"
#include "lab/experiments/ams_eigen.h"
#include "lab/experiments/experiments.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

constexpr GramRandomization kWays[] = {{.sparsify = 1.2},
                                       {.sparsify = 2},
                                       {.sparsify = 5},
                                       {.quantise = true},
                                       {.sparsify = 2, .quantise = true}};
// Numbers of leading features, whose eigenvalues are on the larger side of the threshold.
constexpr int64_t kFeatures[] = {1, 2, 4, 8};
constexpr int kSteps = 19;
// Number of leading features for which Theorems 3 and 4 are checked.
constexpr int64_t kLeading = 12;
// Tolerance for a norm that is 0 in exact arithmetic. It is not 0 here, because entries are float32
// and LAPACK rounds.
constexpr double kRounding = 1e-5;

// A product of two bases of eigenvectors. Theorem 2 bounds its norm, which is the sine of an angle.
struct Sine {
  std::string data;
  std::string way;
  double s = 0;
  int inequality = 0;
  int64_t features = 0;
  // share: the gap b of Theorem 2, divided by the eigenvalue at the upper side of the threshold.
  // bound: ‖E‖/b, where E = K̂ − K. norm: the norm of the product.
  double share = 0;
  double bound = 0;
  double norm = 0;

  // Returns whether the bound says anything. It does so only below 1, because the norm is never
  // more than 1.
  bool bites() const { return bound < 1; }
};

// The change of one feature (Theorem 4), or of all leading features together (Theorem 3).
struct Kept {
  std::string data;
  std::string way;
  double s = 0;
  int theorem = 0;
  int64_t features = 0;
  double c = 0;
  // The largest change of a feature, or of the vector of features after the best rotation. A change
  // is divided by ‖v‖, where v is the vector of a row's kernel values. worst: the largest change
  // over all possible v. on_rows: only for Theorem 4, the largest change over rows of the data that
  // are not in K.
  double worst = 0;
  double on_rows = 0;
};

struct Found {
  std::vector<Sine> sines;
  std::vector<Kept> kept;
};

// Appends the two norms that Theorem 2 bounds. F(t) has the eigenvectors of K whose eigenvalues are
// at least t, and F_⊥(t) has the others. F̂(t) and F̂_⊥(t) are the same for K̂. λ_ℓ and λ̂_ℓ are
// the ℓ-th largest eigenvalues of K and K̂. The norm of inequality 1 is ‖F̂ᵀ(t)·F_⊥(t − b)‖ at t =
// λ̂_ℓ. That of inequality 2 is ‖Fᵀ(t + b)·F̂_⊥(t)‖ at t + b = λ_ℓ.
absl::Status AddSines(const GramComparison& both, Sine labels, std::vector<Sine>& sines) {
  for (const int64_t features : kFeatures) {
    labels.features = features;
    for (int step = 1; step <= kSteps; ++step) {
      labels.share = static_cast<double>(step) / (kSteps + 1);
      for (const int inequality : {1, 2}) {
        const GramEigen& upper = inequality == 1 ? both.found : both.exact;
        const GramEigen& lower = inequality == 1 ? both.exact : both.found;
        const double at = upper.values[static_cast<size_t>(features - 1)];
        const double b = labels.share * at;
        labels.inequality = inequality;
        labels.bound = both.norm / b;
        PHIMAP_ASSIGN_OR_RETURN(
            labels.norm, CornerNorm(inequality == 1 ? both.overlap : both.transposed, features,
                                    FirstUnder(lower.values, at - b)));
        sines.push_back(labels);
      }
    }
  }
  return absl::OkStatus();
}

// Returns the largest |f_n(x) − f̂_n(x)|/‖v‖ over rows x, after the signs of f_n and f̂_n were
// matched. The row of `values` for x is v, the vector of its kernel values.
double ChangeOnRows(const GramComparison& both, int64_t n, const Matrix<double>& values) {
  const double sign = both.overlap(n, n) < 0 ? -1 : 1;
  double largest = 0;
  for (int64_t x = 0; x < values.rows(); ++x) {
    double change = 0;
    double square = 0;
    for (int64_t i = 0; i < values.cols(); ++i) {
      change += (both.exact.vectors(n, i) - sign * both.found.vectors(n, i)) * values(x, i);
      square += values(x, i) * values(x, i);
    }
    largest = std::max(largest, std::abs(change) / std::sqrt(square));
  }
  return largest;
}

// Appends the largest changes of features over all vectors v of kernel values with ‖v‖ = 1. For the
// first ℓ features after the best rotation (Theorem 3), the change is 2·sin(θ/2), where θ is the
// largest angle between the spans of their eigenvectors. For a single feature (Theorem 4), the
// change is ‖α − α̂‖, where α and α̂ are its eigenvectors of K and K̂.
absl::Status AddKept(const GramComparison& both, const Matrix<double>& values, Kept labels,
                     std::vector<Kept>& kept) {
  double gap_above = 1e300;
  for (int64_t n = 0; n < kLeading; ++n) {
    const double gap =
        both.exact.values[static_cast<size_t>(n)] - both.exact.values[static_cast<size_t>(n + 1)];
    labels.features = n + 1;
    labels.c = gap / (2 * both.norm);
    if (labels.c >= 1) {
      labels.theorem = 3;
      PHIMAP_ASSIGN_OR_RETURN(const double sine, CornerNorm(both.overlap, n + 1, n + 1));
      labels.worst = 2 * std::sin(std::asin(std::min(1.0, sine)) / 2);
      labels.on_rows = 0;
      kept.push_back(labels);
    }
    labels.c = std::min(gap, gap_above) / (2 * both.norm);
    if (labels.c > 1) {
      labels.theorem = 4;
      labels.worst = std::sqrt(std::max(0.0, 2 - 2 * std::abs(both.overlap(n, n))));
      labels.on_rows = ChangeOnRows(both, n, values);
      kept.push_back(labels);
    }
    gap_above = gap;
  }
  return absl::OkStatus();
}

absl::Status MeasureData(const Options& options, const KernelData& data, Found& all) {
  const int64_t m = options.quick ? 300 : 800;
  constexpr int64_t kFresh = 200;
  for (int64_t run = 0; run < options.Runs(4, 1); ++run) {
    const uint64_t seed = options.Seed(run);
    const Matrix<double> rows = DrawnRows(data, 0, m, seed);
    const Matrix<double> fresh = DrawnRows(data, m, kFresh, seed);
    Matrix<double> values = Matrix<double>::Uninit(kFresh, m);
    KernelBlock(data.program, fresh.view(), SquaredNorms(fresh.view()), rows.view(),
                SquaredNorms(rows.view()), values.view());
    PHIMAP_ASSIGN_OR_RETURN(const Matrix<float> k,
                            SingleGram(data.program, rows.view(), NeverStop));
    PHIMAP_ASSIGN_OR_RETURN(const GramEigen exact, GramEigenOf(k));
    for (const GramRandomization& way : kWays) {
      PHIMAP_ASSIGN_OR_RETURN(
          const RandomizedGram gram,
          RandomizedGram::Draw(data.program, rows.view(), way, seed, NeverStop));
      PHIMAP_ASSIGN_OR_RETURN(const GramError error,
                              MeasureGramError(data.program, rows.view(), gram, seed, NeverStop));
      PHIMAP_ASSIGN_OR_RETURN(const Matrix<float> dense, DenseGram(gram));
      PHIMAP_ASSIGN_OR_RETURN(const GramEigen found, GramEigenOf(dense));
      const GramComparison both(exact, found, error.norm);
      const std::string name = NameOf(way);
      PHIMAP_RETURN_IF_ERROR(
          AddSines(both, {.data = data.name, .way = name, .s = way.sparsify}, all.sines));
      PHIMAP_RETURN_IF_ERROR(
          AddKept(both, values, {.data = data.name, .way = name, .s = way.sparsify}, all.kept));
    }
  }
  return absl::OkStatus();
}

// Adds a table with one row per case: the mean and the maximum over its draws.
void AddSineTable(const std::vector<Sine>& sines, Results& results) {
  Table& table = results.AddTable("sines", {"data", "way", "s", "inequality", "features", "b share",
                                            "draws", "bound", "norm", "norm largest"});
  std::vector<bool> done(sines.size());
  for (size_t i = 0; i < sines.size(); ++i) {
    if (done[i]) continue;
    const Sine& a = sines[i];
    std::vector<double> norms;
    std::vector<double> bounds;
    for (size_t j = i; j < sines.size(); ++j) {
      const Sine& b = sines[j];
      if (a.data != b.data || a.way != b.way || a.s != b.s || a.inequality != b.inequality ||
          a.features != b.features || a.share != b.share) {
        continue;
      }
      done[j] = true;
      norms.push_back(b.norm);
      bounds.push_back(b.bound);
    }
    table.Add({a.data, a.way, a.s, a.inequality, a.features, a.share, norms.size(), Mean(bounds),
               Mean(norms), *std::max_element(norms.begin(), norms.end())});
  }
}

void JudgeSines(const std::vector<Sine>& sines, Results& results) {
  for (const int inequality : {1, 2}) {
    bool holds = true;
    int64_t bites = 0;
    double largest = 0;
    std::vector<double> ratios;
    for (const Sine& sine : sines) {
      if (sine.inequality != inequality) continue;
      holds = holds && sine.norm <= sine.bound + kRounding;
      if (!sine.bites()) continue;
      ++bites;
      ratios.push_back(sine.norm / sine.bound);
      largest = std::max(largest, ratios.back());
    }
    results.Judge(
        {.claim =
             inequality == 1
                 ? "Theorem 2, first: eigenvectors of K̂ with eigenvalues of t or more are nearly "
                   "orthogonal to those of K with eigenvalues under t − b"
                 : "Theorem 2, second: eigenvectors of K with eigenvalues of t + b or more are "
                   "nearly orthogonal to those of K̂ with eigenvalues under t",
         .printed = "‖E‖/b",
         .measured = ratios.empty()
                         ? "no case in which ‖E‖/b is under 1"
                         : absl::StrFormat("in %d cases with ‖E‖/b under 1: %.3f of it in the "
                                           "median, %.3f at most",
                                           bites, Median(ratios), largest),
         .rule = absl::StrFormat("no norm is over ‖E‖/b by more than %g, including the cases where "
                                 "‖E‖/b is over 1; ‖E‖ is estimated from above",
                                 kRounding),
         .agrees = holds && bites > 0});
    results.Judge(
        {.claim = absl::StrCat("The ", inequality == 1 ? "first" : "second",
                               " bound is not vacuous: some case exceeds a quarter of it"),
         .measured = absl::StrFormat("%.3f of it at most", largest),
         .rule = "over .25 in some case; a random E moves one eigenvector towards another by only "
                 "about 1/√m of what its norm allows",
         .agrees = largest > 0.25});
  }
}

void AddKeptTable(const std::vector<Kept>& kept, Results& results) {
  Table& table = results.AddTable(
      "kept", {"data", "way", "s", "theorem", "features", "draws", "c", "1/c", "worst", "on rows"},
      "The features whose gap in K is 2c‖E‖ with c of 1 or more, over all draws (in these spectra "
      "the first feature, seldom also the second): the smallest c, its bound 1/c, and the largest "
      "change, divided by ‖v‖, of one feature (Theorem 4) or of the leading features after the "
      "best rotation (Theorem 3), for the worst possible v and, for Theorem 4, also over 200 other "
      "rows.");
  std::vector<bool> done(kept.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    if (done[i]) continue;
    Kept worst = kept[i];
    int64_t draws = 0;
    for (size_t j = i; j < kept.size(); ++j) {
      const Kept& b = kept[j];
      if (worst.data != b.data || worst.way != b.way || worst.s != b.s ||
          worst.theorem != b.theorem || worst.features != b.features) {
        continue;
      }
      done[j] = true;
      ++draws;
      worst.c = std::min(worst.c, b.c);
      worst.worst = std::max(worst.worst, b.worst);
      worst.on_rows = std::max(worst.on_rows, b.on_rows);
    }
    table.Add({worst.data, worst.way, worst.s, worst.theorem, worst.features, draws, worst.c,
               1 / worst.c, worst.worst, worst.theorem == 4 ? Cell(worst.on_rows) : Cell("")});
  }
}

void JudgeKept(const std::vector<Kept>& kept, Results& results) {
  for (const int theorem : {3, 4}) {
    int64_t count = 0;
    double largest = 0;
    double on_rows = 0;
    int64_t features = 0;
    for (const Kept& one : kept) {
      if (one.theorem != theorem) continue;
      ++count;
      largest = std::max(largest, one.worst * one.c);
      on_rows = std::max(on_rows, one.on_rows * one.c);
      features = std::max(features, one.features);
    }
    std::string measured =
        absl::StrFormat("%.3f of the bound at most for the worst v, in %d cases (up to feature %d)",
                        largest, count, features);
    if (theorem == 4) absl::StrAppendFormat(&measured, "; %.3f on real rows", on_rows);
    results.Judge(
        {.claim =
             theorem == 3
                 ? "Theorem 3: one rotation brings the leading features of K̂ within ‖v‖/c of K's, "
                   "for every x"
                 : "Theorem 4: a feature with a gap on both sides is K's own within ‖v‖/c, for "
                   "every x",
         .printed = "‖v‖/c",
         .measured = std::move(measured),
         .rule = "no change is over the bound, and there is one case at least; gaps of 2c‖E‖ with "
                 "c of 1 or more, ‖E‖ estimated from above",
         .agrees = count > 0 && largest <= 1});
  }
}

absl::Status Run(const Options& options, Results& results) {
  UseOneBlasThread();
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<KernelData> data, ReadKernelData(options));
  Found all;
  for (const KernelData& one : data) PHIMAP_RETURN_IF_ERROR(MeasureData(options, one, all));
  AddSineTable(all.sines, results);
  AddKeptTable(all.kept, results);
  JudgeSines(all.sines, results);
  JudgeKept(all.kept, results);
  return absl::OkStatus();
}

}  // namespace

Experiment AmsAngles() {
  return {
      .name = "ams_angles",
      .paper = "AMS",
      .item = "section 3, Theorems 2 to 4",
      .title = "how much the features change when the Gram matrix is sampled or quantised",
      .claim =
          "K is the Gram matrix of m rows, K̂ is K after sampling, and E = K̂ − K. F(t) are the "
          "eigenvectors of K whose eigenvalues are t or more, F_⊥(t) are its other eigenvectors, "
          "and F̂(t) and F̂_⊥(t) are those of K̂. The norms of F̂ᵀ(t)F_⊥(t − b) and "
          "of Fᵀ(t + b)F̂_⊥(t) are at most ‖E‖/b (Theorem 2). "
          "Let v be the kernel values of a point x with the m rows. "
          "If the spectrum of K has a gap of 2c‖E‖ after feature ℓ, one rotation brings the first "
          "ℓ features of K̂ at x within ‖v‖/c of those of K (Theorem 3). If K has such a gap on "
          "both sides of feature n, this feature of K̂ is within ‖v‖/c of that of K without a "
          "rotation (Theorem 4). The paper prints no measurement.",
      .protocol =
          "K is rbf(gamma=1/p) of m = 800 rows (300 in a quick run) drawn from letter.csv and "
          "spam.csv, columns with mean 0 and variance 1, randomized in five ways; 4 draws of rows "
          "and coins (1 in a quick run). All eigenvectors of K and of K̂ come from LAPACK. The "
          "paper leaves t and b open. In the first inequality of Theorem 2, t is the 1st, 2nd, 4th "
          "and 8th eigenvalue of K̂; in the second, t + b is the 1st, 2nd, 4th and 8th eigenvalue "
          "of K. b is 19 shares of this eigenvalue, from .05 to .95. ‖E‖ is estimated from above "
          "by Lanczos. Theorems 3 and 4 are about unit eigenvectors, without the factor λ^{-1/2}; "
          "their worst v is computed from the angles between the spans.",
      .run = Run};
}

}  // namespace phimap::lab
