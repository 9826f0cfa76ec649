#include "core/mapping/theorem.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
    absl::StrAppend(
        &text, ", ", ErrorText(uniform),
        absl::StrFormat(" for all rows within %.3g of the mean, as the held-out rows are",
                        facts.radius));
  }
  return text;
}

std::string KernelPcaTheorem(const MappingSpec& mapping, const TheoremFacts& facts) {
  return absl::StrCat("Schölkopf, Smola, Müller 1998: of all maps to ", facts.components,
                      " dimensions that are ", mapping.centred ? "affine" : "linear",
                      " in φ, this one leaves the least of the landmarks' kernel",
                      mapping.centred ? ", centred," : "", " over them: it keeps ",
                      absl::StrFormat("%.4g", 100 * facts.share),
                      " % of its trace. By orthogonal iteration ",
                      "(Achlioptas, McSherry, Schölkopf 2001) to a relative residual of ",
                      absl::StrFormat("%.2g", facts.residual));
}

}  // namespace

std::string TheoremOf(const MappingSpec& mapping, const TheoremFacts& facts) {
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
    case MappingKind::kKernelPca:
      break;
  }
  PHIMAP_CHECK(false);
}

}  // namespace phimap
