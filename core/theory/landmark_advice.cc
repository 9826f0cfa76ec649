// The advisor's advice on F1, F2 and F3.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/theory/advisor.h"
#include "core/theory/landmark_bounds.h"
#include "core/theory/projection_bounds.h"

namespace phimap {
namespace {

constexpr char kBinomial[] =
    "the proof's ⌈4/γ²⌉ − 1 helpful draws counted by the binomial law, not by Chernoff's bound";

// F1 and F2 need the same number of landmarks. Only F2 keeps a margin.
AdviceLine SpanLine(const AdviceQuery& query, bool f2, Tier tier) {
  AdviceLine line{.subject = f2 ? AdviceSubject::kF2 : AdviceSubject::kF1,
                  .source = f2 ? "Balcan, Blum, Vempala 2006, Theorem 1"
                               : "Balcan, Blum, Vempala 2006, Corollary 1",
                  .tier = tier};
  line.landmarks = tier == Tier::kLiteral
                       ? LiteralLandmarks(query.margin, query.error, query.delta())
                       : BinomialLandmarks(query.margin, query.error, query.delta());
  line.dimensions = line.landmarks;
  line.error = query.alpha + query.error;
  if (f2) line.margin = query.margin / 2;
  if (!line.landmarks.has_value()) {
    line.note = kTooManyToBuild;
  } else if (tier == Tier::kDerived) {
    line.note = kBinomial;
  } else {
    line.note = f2 ? "(8/ε)(1/γ² + ln 1/δ)" : "(8/ε)(1/γ² + ln 1/δ); no margin is promised";
  }
  return line;
}

// Returns the number of landmarks for F3's first step, which gets half of ε and half of δ. The
// exact tier has the sharpest second step, so it also uses the sharper number of landmarks.
std::optional<int64_t> F3Landmarks(Tier tier, double margin, double error, double delta) {
  return tier == Tier::kExact ? BinomialLandmarks(margin, error / 2, delta / 2)
                              : LiteralLandmarks(margin, error / 2, delta / 2);
}

const char* F3Note(Tier tier) {
  switch (tier) {
    case Tier::kLiteral:
      return "three squared lengths within 1 ± γ/16";
    case Tier::kDerived:
      return "three lengths within 1 ± γ/(8 − 3γ), one tail each, by the sharper bound";
    case Tier::kExact:
      break;
  }
  return "Gaussian entries only; binomial landmarks";
}

AdviceLine F3Line(const AdviceQuery& query, Tier tier) {
  AdviceLine line{.subject = AdviceSubject::kF3,
                  .source = "Balcan, Blum, Vempala 2006, Theorem 3",
                  .tier = tier};
  line.landmarks = F3Landmarks(tier, query.margin, query.error, query.delta());
  line.dimensions = F3Dimensions(tier, query.margin, query.error, query.delta());
  line.margin = query.margin / 4;
  line.error = query.alpha + query.error;
  line.note = line.dimensions.has_value() ? F3Note(tier) : kTooManyToBuild;
  if (line.landmarks.has_value() && line.dimensions > line.landmarks) {
    absl::StrAppend(&line.note,
                    "; more dimensions than landmarks: F2 on these landmarks is smaller");
  }
  return line;
}

AdviceLine PerfectSampleLine(const AdviceQuery& query, Tier tier) {
  AdviceLine line{.subject = AdviceSubject::kF3PerfectSample,
                  .source = "Balcan, Blum, Vempala 2006, Corollary 2",
                  .tier = tier};
  if (query.alpha > 0) {
    line.note = "needs alpha = 0: if examples miss the margin, a sample may not be separable";
    return line;
  }
  const PerfectSample sample = F3PerfectSample(tier, query.margin, query.error, query.delta());
  line.landmarks = F3Landmarks(tier, query.margin, sample.error, query.delta());
  line.dimensions = sample.dimensions;
  line.margin = query.margin / 4;
  line.error = sample.error;
  if (query.confidence <= query.error) {
    line.note =
        "no guarantee: the statement holds with probability confidence - error, which is at most 0";
    return line;
  }
  line.note = line.landmarks.has_value() && line.dimensions.has_value()
                  ? absl::StrCat("d ln d = ", sample.examples,
                                 " labeled examples are all separable with probability ",
                                 query.confidence - query.error)
                  : kTooManyToBuild;
  return line;
}

}  // namespace

std::vector<AdviceLine> LandmarkAdvice(const AdviceQuery& query) {
  std::vector<AdviceLine> lines;
  for (const bool f2 : {false, true}) {
    for (const Tier tier : {Tier::kLiteral, Tier::kDerived}) {
      lines.push_back(SpanLine(query, f2, tier));
    }
  }
  constexpr Tier kAll[] = {Tier::kLiteral, Tier::kDerived, Tier::kExact};
  for (const Tier tier : kAll) lines.push_back(F3Line(query, tier));
  for (const Tier tier : kAll) lines.push_back(PerfectSampleLine(query, tier));
  return lines;
}

}  // namespace phimap
