#include "core/mapping/theorem.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/status/check.h"
#include "core/theory/fourier_bounds.h"
#include "core/theory/projection_bounds.h"

namespace phimap {
namespace {

// 1 − δ of the numbers, and of how many rows a statement about many is.
constexpr double kDelta = 0.05;
constexpr int64_t kManyRows = 1000;
constexpr double kManyPairs = kManyRows * (kManyRows - 1) / 2.0;

std::string DistortionText(int64_t dimensions, double delta) {
  const std::optional<double> e = LengthDistortion(Tier::kDerived, dimensions, delta);
  return e.has_value() ? absl::StrFormat("e = %.2g", *e) : "no e below 1";
}

// Who proved the bound for these entries.
absl::string_view ProjectionSource(ProjectionKind kind) {
  switch (kind) {
    case ProjectionKind::kGaussian:
    case ProjectionKind::kSign:
      return "Balcan, Blum, Vempala 2006, Theorem 2, with the constants of Achlioptas, McSherry, "
             "Schölkopf 2001, eq. 4";
    case ProjectionKind::kSparse:
      return "Achlioptas 2003, Theorem 1.1";
    case ProjectionKind::kOrthonormal:
      return "Johnson, Lindenstrauss 1984, by Dasgupta, Gupta 2003";
  }
  return "";
}

std::string RandomProjectionTheorem(const MappingSpec& mapping) {
  const int64_t k = mapping.dimensions;
  return absl::StrCat(
      ProjectionSource(mapping.projection),
      ": the squared length of a vector that is fixed in advance, as of the difference of two "
      "rows, is kept within 1 ± e but with probability 2 exp(−(k/2)(e²/2 − e³/3)). At k = ",
      k, " with probability 0.95: ", DistortionText(k, kDelta), " for one vector, ",
      DistortionText(k, kDelta / kManyPairs), " for all differences of 1,000 rows at once");
}

std::string MulticlassTheorem(const MappingSpec& mapping) {
  const int64_t n = mapping.dimensions;
  // Theorem 9's 1 − δ is of angles, three of Lemma 10's events each.
  const double angles = static_cast<double>(kManyRows) * static_cast<double>(mapping.classes - 1);
  const std::optional<double> e = LengthDistortion(Tier::kDerived, n, kDelta / (3 * angles));
  const double least =
      e.has_value() ? 2 * *e * std::sqrt(2.0 * static_cast<double>(mapping.classes)) / (1 + *e) : 2;
  return absl::StrCat(
      "Shi, Shen, Hill, van den Hengel 2012, Theorem 9: where w_1 … w_L separate L classes with a "
      "margin γ of cosines, one v of n numbers separates them by ⟨v, R_y x⟩ with the margin −2e/(1 "
      "− "
      "e) + (1 + e)γ/(√(2L)(1 − e)), with probability 1 − 6m(L − 1) exp(−(n/2)(e²/2 − e³/3)). At n "
      "= ",
      n, " and m = 1,000 rows with probability 0.95: ",
      e.has_value() ? absl::StrFormat("e = %.2g", *e) : "no e below 1",
      least <= 1 ? absl::StrFormat(", more than nothing from γ = %.3g on", least)
                 : ", which promises nothing for any margin: n grows with L");
}

std::string ErrorText(double error) {
  return error < 1 ? absl::StrFormat("a = %.2g", error) : "no a below 1";
}

std::string FourierTheorem(const MappingSpec& mapping, const TheoremFacts& facts) {
  if (mapping.orthogonal) {
    return "Rahimi, Recht 2007: F(x)·F(y) has the mean K(x, y). With orthogonal frequencies (Yu, "
           "Suresh, Choromanski, Holtmann-Rice, Kumar 2016) its variance is smaller, but the terms "
           "are not independent, and no bound of its deviation is given here";
  }
  const FourierForm form = mapping.form;
  const int64_t dimensions = mapping.dimensions;
  std::string text = absl::StrCat(
      "Rahimi, Recht 2007, by Hoeffding's inequality: for rows x, y fixed in advance |K(x, y) − "
      "F(x)·F(y)| < a·K(x, x) but with probability 2 exp(−D·a²/",
      form == FourierForm::kSinCos ? "4" : "8", "). At D = ", dimensions,
      " with probability 0.95: ", ErrorText(FourierError(form, dimensions, kDelta)),
      " for one pair, ", ErrorText(FourierError(form, dimensions, kDelta / kManyPairs)),
      " for all pairs of 1,000 rows at once");
  if (facts.radius > 0) {
    const double uniform = FourierUniformError({.form = form,
                                                .dimensions = dimensions,
                                                .columns = facts.columns,
                                                .gamma = facts.gamma,
                                                .radius = facts.radius},
                                               kDelta);
    absl::StrAppend(&text, ", ", ErrorText(uniform),
                    absl::StrFormat(" for all rows within %.3g of the %s, as the held-out rows are",
                                    facts.radius, facts.is_centred ? "mean" : "origin"));
  }
  return text;
}

// Three digits that are no less than the number.
std::string UpperText(double number) {
  const double step = std::pow(10.0, std::floor(std::log10(number)) - 2);
  return absl::StrFormat("%.3g", number > 0 ? std::ceil(number / step) * step : 0.0);
}

std::string GramText(const GramLoss& gram) {
  const std::string norm = UpperText(gram.error.norm);
  const bool signs = gram.law.sampling != GramSampling::kSparsify;
  std::string text = ". That is of a Gram matrix K̂ ";
  if (gram.law.s > 1) {
    absl::StrAppend(&text, "with one entry in ", gram.law.s, " of K's, ", signs ? "as a sign" : "",
                    signs ? "" : "made as much larger");
  } else {
    absl::StrAppend(&text, "of signs alone");
  }
  absl::StrAppend(
      &text,
      absl::StrFormat(
          ", with ‖K̂ − K‖₂ at most %s but with probability %g (%.3g by Lanczos, and its error by "
          "Kuczyński, Woźniakowski 1992): by Theorem 2 there its components have no more than %s/b "
          "of those of K with eigenvalues less by b. ",
          norm, kNormDoubt, gram.error.norm_from_below, norm),
      "Of K's own but for at most half of their length, up to their sign, by Theorem 4 (c = 2): ",
      gram.apart.empty() ? "none" : absl::StrJoin(gram.apart, ", "),
      absl::StrFormat(". Beforehand 4σ√m = %.3g is known (Theorem 1, which wants more rows), and "
                      "with probability 0.95 %.3g (matrix Bernstein, Tropp 2012)",
                      AmsNormBound(gram.law),
                      BernsteinNormBound(gram.law, kDelta, gram.error.largest_row)));
  return text;
}

// What is rounded is multiplied with k(x_i, x) − μ_i where that is centred, and then changes far
// from all landmarks too, where k is 0.
std::string RoundingText(const RoundingLoss& rounding, const MappingSpec& mapping, int64_t used) {
  return absl::StrCat(
      ". Of ", rounding.all_weights, " weights rounding at s = ", rounding.scale, " leaves ",
      rounding.weights, ", of ", used,
      " landmarks: √λ·f(x) changes by t or more with probability at most 2 exp(−2(st)²/(m·c²)), m "
      "= ",
      mapping.landmarks, " and c the range of 0 and k(x_i, x)", mapping.centred ? " − μ_i" : "",
      " (section 4 there, by Hoeffding's inequality)");
}

// What is added where the kernel is evaluated after a projection.
std::string ProjectedText(const MappingSpec& mapping) {
  const double pairs = static_cast<double>(mapping.landmarks) * kManyRows;
  return absl::StrCat(
      ". All of it of a kernel after a projection ±1 to ", mapping.input_dimensions,
      " columns, which by Achlioptas, McSherry, Schölkopf 2001, Theorem 6, keeps the squared "
      "distances of the landmarks from 1,000 rows within 1 ± e with probability 0.95, ",
      DistortionText(mapping.input_dimensions, kDelta / pairs));
}

std::string KernelPcaTheorem(const MappingSpec& mapping, const TheoremFacts& facts) {
  std::string text;
  if (facts.gram.has_value()) text = GramText(*facts.gram);
  if (facts.rounding.has_value()) {
    absl::StrAppend(&text, RoundingText(*facts.rounding, mapping, facts.used_landmarks));
  }
  const std::string how = absl::StrFormat(
      "%s to a relative residual of %.2g",
      facts.iterated ? "By orthogonal iteration (Achlioptas, McSherry, Schölkopf 2001)"
                     : "By LAPACK",
      facts.residual);
  // Of a randomized matrix it is not known what K's own share is.
  if (facts.gram.has_value()) {
    return absl::StrCat("Schölkopf, Smola, Müller 1998, of a randomized matrix: ", facts.components,
                        mapping.centred ? " centred" : "", " components. ", how, text);
  }
  return absl::StrCat(
      "Schölkopf, Smola, Müller 1998: of all maps to ", facts.components, " dimensions that are ",
      mapping.centred ? "affine" : "linear", " in φ, ",
      facts.rounding.has_value() ? "the one whose weights were then rounded" : "this one",
      " leaves the least of the landmarks' kernel", mapping.centred ? ", centred," : "",
      " over them: it keeps ", absl::StrFormat("%.4g", 100 * facts.share), " % of its trace. ", how,
      text);
}

std::string UnprojectedTheoremOf(const MappingSpec& mapping, const TheoremFacts& facts) {
  if (mapping.kind == MappingKind::kKernelPca) return KernelPcaTheorem(mapping, facts);
  if (mapping.policy == LandmarkPolicy::kRandomlyPivotedCholesky) {
    return "Chen, Epperly, Tropp, Webber 2022, Theorem 5.1: of the kernel's trace over the pool, d "
           "landmarks leave on average at most (1 + ε) times the share η that the best r "
           "dimensions leave, if d ≥ r/ε + r ln(1/(εη)). The theorems about margins speak of "
           "uniform landmarks, not of these";
  }
  if (mapping.policy == LandmarkPolicy::kGiven) {
    return "none: the theorems speak of uniform landmarks, and these were given";
  }
  switch (mapping.kind) {
    case MappingKind::kF1:
      return "Balcan, Blum, Vempala 2006, Corollary 1: for a kernel with a separator of margin γ, "
             "d ≥ (8/ε)(1/γ² + ln 1/δ) uniform landmarks give, with probability 1 − δ, a linear "
             "separator of error ≤ ε on F1";
    case MappingKind::kF2:
      return "Balcan, Blum, Vempala 2006, Theorem 1: for a kernel with a separator of margin γ, d "
             "≥ (8/ε)(1/γ² + ln 1/δ) uniform landmarks give, with probability 1 − δ, a linear "
             "separator of error ≤ ε at margin γ/2 on F2";
    case MappingKind::kF3:
      return "Balcan, Blum, Vempala 2006, Theorem 3: for a kernel with a separator of margin γ, d2 "
             "≥ (16/ε)(1/γ² + ln 2/δ) uniform landmarks and d3 = O(ln(1/(εδ))/γ²) dimensions give, "
             "with probability 1 − δ, a linear separator of error ≤ ε at margin γ/4 on F3";
    case MappingKind::kRandomProjection:
      return RandomProjectionTheorem(mapping);
    case MappingKind::kFourier:
      return FourierTheorem(mapping, facts);
    case MappingKind::kMulticlass:
      return MulticlassTheorem(mapping);
    case MappingKind::kPolynomial:
      return "none is needed: F(x)·F(y) = K(x, y) but for rounding, by the multinomial theorem, so "
             "that every margin in φ-space is one on F";
    case MappingKind::kKernelPca:
      break;
  }
  PHIMAP_CHECK(false);
}

// What the rank tolerance left out.
std::string CutText(const LandmarkFactor& landmarks) {
  const auto cut = static_cast<int64_t>(landmarks.cholesky.dropped.size());
  const int64_t all = landmarks.rank() + cut + landmarks.zero_landmarks;
  std::string text = absl::StrFormat(
      "; up to a share of about %.3g of each landmark's own K(x, x), by which %d of %d were cut",
      landmarks.tolerance, cut, all);
  if (landmarks.zero_landmarks > 0) {
    absl::StrAppend(&text, " and ", landmarks.zero_landmarks,
                    " whose K(x, x) is nothing but rounding");
  }
  return text;
}

std::string UniformScope(const ScopeFacts& facts) {
  std::string text;
  if (!facts.gamma_of_stream && !facts.scaling_of_stream) {
    text =
        "the distribution that the stream's rows were drawn from, independently, if the kernel was "
        "chosen without them: nothing of it, and no scaling, was taken from them here";
  } else {
    const absl::string_view taken = !facts.scaling_of_stream ? "gamma was"
                                    : facts.gamma_of_stream  ? "gamma and scaling were"
                                                             : "scaling was";
    text =
        absl::StrCat("the stream's own empirical distribution and the kernel as resolved: ", taken,
                     " taken from the same rows. Of rows to come it is proven only where "
                     "kernel and scaling were fixed before the stream");
  }
  if (facts.landmarks != nullptr) text += CutText(*facts.landmarks);
  return text;
}

}  // namespace

std::string TheoremScopeOf(const MappingSpec& mapping, const ScopeFacts& facts) {
  if (mapping.kind == MappingKind::kKernelPca) {
    return "the landmarks themselves, not rows to come";
  }
  if (mapping.has_landmarks()) {
    switch (mapping.policy) {
      case LandmarkPolicy::kUniform:
        return UniformScope(facts);
      case LandmarkPolicy::kRandomlyPivotedCholesky:
        return absl::StrCat("the ", facts.pool_rows,
                            " rows of this stream that the landmarks were chosen from",
                            facts.landmarks != nullptr ? CutText(*facts.landmarks) : "");
      case LandmarkPolicy::kGiven:
        return "";
    }
  }
  if (mapping.kind == MappingKind::kPolynomial) return "all rows";
  return "rows that do not depend on the seed, as they are after scaling";
}

std::string TheoremOf(const MappingSpec& mapping, const TheoremFacts& facts) {
  std::string text = UnprojectedTheoremOf(mapping, facts);
  if (mapping.input_dimensions > 0) text += ProjectedText(mapping);
  return text;
}

}  // namespace phimap
