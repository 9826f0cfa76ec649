// The advisor's advice on every mapping but F1, F2 and F3.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/words.h"
#include "core/theory/advisor.h"
#include "core/theory/fourier_bounds.h"
#include "core/theory/multiclass_bounds.h"
#include "core/theory/projection_bounds.h"

namespace phimap {
namespace {

constexpr double kDefaultDistortion = 0.1;
constexpr double kDefaultKernelError = 0.1;
constexpr char kShi[] = "Shi et al. 2012, Theorem ";
constexpr char kAms[] = "Achlioptas, McSherry, Schölkopf 2001, ";

using Lines = std::vector<AdviceLine>;

AdviceLine NoNumber(AdviceSubject subject, std::string source, std::string why) {
  return {.subject = subject, .source = std::move(source), .note = std::move(why)};
}

// Sets the margin that a statement leaves, or notes that none is left.
void SetMargin(AdviceLine& line, std::optional<int64_t> dimensions, double margin,
               double critical_distortion) {
  if (margin <= 0) {
    line.note =
        absl::StrCat("no margin is left; the distortion must be under ", critical_distortion);
    return;
  }
  line.dimensions = dimensions;
  line.margin = margin;
  if (!dimensions.has_value()) line.note = kTooManyToBuild;
}

Lines DirectLines(const AdviceQuery& query) {
  AdviceLine exact{.subject = AdviceSubject::kProjection,
                   .source = "Blum 2005, Theorem 3",
                   .tier = Tier::kExact,
                   .dimensions = DirectDimensions(query.margin, query.error, query.delta()),
                   .margin = query.margin / 2,
                   .error = query.alpha + query.error,
                   .note = "projects φ(x) itself, which must be computable; Gaussian entries only"};
  return {NoNumber(AdviceSubject::kProjection, "Blum 2005, Theorem 3",
                   "the paper says O(ln(1/(εδ))/γ²) only"),
          std::move(exact)};
}

Lines LengthLines(const AdviceQuery& query) {
  Lines lines;
  const double e = query.distortion != 0 ? query.distortion : kDefaultDistortion;
  for (const Tier tier : {Tier::kLiteral, Tier::kDerived}) {
    AdviceLine line{.subject = AdviceSubject::kLength,
                    .source = tier == Tier::kLiteral
                                  ? "Balcan, Blum, Vempala 2006, Theorem 2"
                                  : absl::StrCat(kAms, "eq. 4; Shi et al. 2012, Lemma 10"),
                    .tier = tier,
                    .dimensions = LengthDimensions(tier, e, query.delta()),
                    .distortion = e,
                    .note = "keeps one squared length within 1 ± e"};
    lines.push_back(std::move(line));
  }
  return lines;
}

// Returns the advice of Theorem 5 or 6, for `angles` angles at once.
AdviceLine AngleLine(const AdviceQuery& query, AdviceSubject subject, Tier tier, double angles) {
  const double margin = query.margin;
  const bool one = subject == AdviceSubject::kAngle;
  AdviceLine line{.subject = subject, .tier = tier};
  line.source = one ? absl::StrCat(kShi, "5") : absl::StrCat(kShi, "6");
  // The lower bound of Theorem 5 itself is sharper than the one that Theorem 6 prints.
  const Tier shape = one ? Tier::kDerived : tier;
  const double e =
      query.distortion != 0 ? query.distortion : DistortionForCosine(shape, margin, margin / 2);
  line.distortion = e;
  line.note = one ? absl::StrCat("a cosine of ", margin, " ends between the margin shown and ",
                                 HighestCosine(margin, e))
              : query.points == 1 ? "of the one point"
                                  : absl::StrCat("of all ", CountOf(query.points, "point"));
  SetMargin(line, AngleDimensions(e, angles, query.delta()), DataSetMargin(shape, margin, e),
            shape == Tier::kLiteral ? margin / (2 + margin) : margin / (2 - margin));
  return line;
}

Lines DataSetLines(const AdviceQuery& query) {
  if (query.points == 0) {
    return {
        NoNumber(AdviceSubject::kDataSet, absl::StrCat(kShi, "6"), "needs the number of points")};
  }
  const auto points = static_cast<double>(query.points);
  return {AngleLine(query, AdviceSubject::kDataSet, Tier::kLiteral, points),
          AngleLine(query, AdviceSubject::kDataSet, Tier::kDerived, points)};
}

constexpr char kNeedsClasses[] = "needs the numbers of points and of classes";

AdviceLine ClassesLine(const AdviceQuery& query) {
  const std::string source = absl::StrCat(kShi, "8");
  if (query.points == 0 || query.classes == 0)
    return NoNumber(AdviceSubject::kClasses, source, kNeedsClasses);
  const double e =
      query.distortion != 0 ? query.distortion : ClassesDistortion(query.margin, query.margin / 2);
  AdviceLine line{.subject = AdviceSubject::kClasses, .source = source, .distortion = e};
  line.note =
      "the margin is the lead over the second-best class; the proof needs cosines >= 0 for all "
      "other classes";
  const double angles = static_cast<double>(query.classes) * static_cast<double>(query.points);
  SetMargin(line, AngleDimensions(e, angles, query.delta()), ClassesMargin(query.margin, e),
            ClassesDistortion(query.margin, 1e-9 * query.margin));
  return line;
}

AdviceLine OneParameterLine(const AdviceQuery& query) {
  const std::string source = absl::StrCat(kShi, "9");
  if (query.points == 0 || query.classes == 0) {
    return NoNumber(AdviceSubject::kOneParameter, source, kNeedsClasses);
  }
  const double e = query.distortion != 0 ? query.distortion
                                         : OneParameterDistortion(query.margin, query.classes);
  const double critical = OneParameterCriticalDistortion(query.margin, query.classes);
  AdviceLine line{.subject = AdviceSubject::kOneParameter, .source = source, .distortion = e};
  line.note = absl::StrCat(
      "number of rows of each class's matrix; grows in proportion to the number of classes; needs "
      "e < ",
      critical);
  const double angles = static_cast<double>(query.classes - 1) * static_cast<double>(query.points);
  SetMargin(line, AngleDimensions(e, angles, query.delta()),
            OneParameterMargin(query.margin, e, query.classes), critical);
  return line;
}

AdviceLine ProjectedKernelLine(const AdviceQuery& query) {
  const std::string source = absl::StrCat(kAms, "Theorem 6");
  if (query.points < 2) {
    return NoNumber(AdviceSubject::kProjectedKernel, source,
                    "needs the number of points, at least 2");
  }
  const double e = query.distortion != 0 ? query.distortion : kDefaultDistortion;
  return {
      .subject = AdviceSubject::kProjectedKernel,
      .source = source,
      .dimensions = ProjectedKernelDimensions(e, static_cast<double>(query.points), query.delta()),
      .distortion = e,
      .note =
          "keeps all squared distances within 1 ± e; inner products within e(‖x‖² + ‖y‖²) "
          "if they are >= 0, and within (3e/2)(‖x‖² + ‖y‖²) otherwise; scaled by 1/√s"};
}

Lines FourierLines(const AdviceQuery& query) {
  const double a = query.kernel_error != 0 ? query.kernel_error : kDefaultKernelError;
  const std::string source = "Cornell lecture notes, random Fourier features";
  const std::string note = absl::StrCat("keeps one value of an rbf kernel within ", a, "; ");
  return {{.subject = AdviceSubject::kRandomFourier,
           .source = source,
           .dimensions = FourierFeatures(FourierForm::kPhase, a, query.delta()),
           .note = absl::StrCat(note, "phase form")},
          {.subject = AdviceSubject::kRandomFourier,
           .source = source,
           .tier = Tier::kDerived,
           .dimensions = FourierFeatures(FourierForm::kSinCos, a, query.delta()),
           .note = absl::StrCat(note, "sine and cosine")}};
}

Lines WeakLearnerLines(const AdviceQuery& query) {
  const char kSource[] = "Blum 2005, Theorem 1";
  AdviceLine derived{
      .subject = AdviceSubject::kWeakLearner, .source = kSource, .tier = Tier::kDerived};
  const double success = WeakLearnerSuccess(query.margin, query.alpha);
  if (success < 1e-12) {
    derived.note = "too many examples miss the margin for the proof";
  } else {
    derived.dimensions = 1;
    derived.error = 0.5 - query.margin / 4;
    derived.success = success;
    derived.draws = WeakLearnerDraws(success, query.delta());
    derived.note = absl::StrCat("a random separator; keep one whose measured error is at most ",
                                0.5 - query.margin / 6);
  }
  return {NoNumber(AdviceSubject::kWeakLearner, kSource, "the paper says Ω(γ) only"),
          std::move(derived)};
}

}  // namespace

std::vector<AdviceLine> ProjectionAdvice(const AdviceQuery& query) {
  Lines all;
  const auto add = [&all](Lines lines) {
    for (AdviceLine& line : lines) all.push_back(std::move(line));
  };
  add(DirectLines(query));
  add(LengthLines(query));
  add({AngleLine(query, AdviceSubject::kAngle, Tier::kLiteral, 1)});
  add(DataSetLines(query));
  add({ClassesLine(query), OneParameterLine(query), ProjectedKernelLine(query)});
  add(FourierLines(query));
  add(WeakLearnerLines(query));
  return all;
}

}  // namespace phimap
