// Proposes F2 or F3 for the advisor, and says why.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/theory/advisor.h"
#include "core/theory/landmark_bounds.h"
#include "core/theory/projection_bounds.h"

namespace phimap {
namespace {

// A comparison of F2's dimensions, by one tier, with F3's dimensions, by another.
struct Contest {
  Tier f2;
  Tier f3;
};
constexpr Contest kSharpest = {Tier::kDerived, Tier::kExact};
constexpr Contest kSharperF3 = {Tier::kLiteral, Tier::kDerived};
constexpr Contest kPrinted = {Tier::kLiteral, Tier::kLiteral};

// The mapping whose build finds how many landmarks the rows need.
constexpr char kMeasuredMapping[] = "f2(landmarks=auto(residual=0.1))";

std::optional<int64_t> F2Dimensions(Tier tier, double margin, double error, double delta) {
  return tier == Tier::kLiteral ? LiteralLandmarks(margin, error, delta)
                                : BinomialLandmarks(margin, error, delta);
}

bool F3Wins(const Contest& contest, double margin, double error, double delta) {
  const std::optional<int64_t> f3 = F3Dimensions(contest.f3, margin, error, delta);
  const std::optional<int64_t> f2 = F2Dimensions(contest.f2, margin, error, delta);
  return f3.has_value() && (!f2.has_value() || *f3 < *f2);
}

// Returns the error below which F3 has fewer dimensions than F2, within 1 %. Returns 0 if there is
// no such error from 1e-6 up. F2's dimensions grow with 1/ε, and F3's with ln 1/ε, so the two are
// equal at only one error ε.
double F3WinsBelow(const Contest& contest, double margin, double delta) {
  double low = std::log(1e-6);
  double high = std::log(1 - 1e-6);
  if (!F3Wins(contest, margin, std::exp(low), delta)) return 0;
  while (high - low > 0.01) {
    const double middle = (low + high) / 2;
    (F3Wins(contest, margin, std::exp(middle), delta) ? low : high) = middle;
  }
  return std::exp((low + high) / 2);
}

std::string Thousands(int64_t number) {
  std::string text = absl::StrCat(number);
  for (int i = static_cast<int>(text.size()) - 3; i > 0; i -= 3) text.insert(text.begin() + i, ',');
  return text;
}

std::string CountText(const std::optional<int64_t>& count) {
  return count.has_value() ? Thousands(*count) : "over 2^53";
}

std::string BelowText(double error) {
  return error > 0 ? absl::StrFormat("below %.2g", error) : "at no error from 1e-06 up";
}

// Says why there is no proposal, and what the largest allowed number of landmarks achieves.
std::string OverTheLimit(const AdviceQuery& query, std::optional<int64_t> landmarks) {
  std::string text =
      absl::StrCat(" That takes ", CountText(landmarks), " landmarks, and a mapping has at most ",
                   Thousands(query.max_landmarks), ": ");
  const std::optional<double> error =
      ErrorOfLandmarks(query.margin, query.max_landmarks, query.delta());
  if (!error.has_value() || query.alpha + *error >= 1) {
    return absl::StrCat(text,
                        "the theorem gives no guarantee for so few landmarks at this margin.");
  }
  return absl::StrCat(text, absl::StrFormat("with these, F2 has error at most %.3g at this margin "
                                            "and confidence.",
                                            query.alpha + *error));
}

// A theorem that asks for more landmarks than can be built decides nothing about the caller's rows.
// What decides then is measured: the residual by a build that grows until it is reached, and the
// error by a learner on labeled rows.
void SayWhatToDo(const AdviceQuery& query, std::optional<int64_t> landmarks, Advice& advice) {
  if (!advice.proposal.empty()) {
    advice.to_do = absl::StrCat(
        "Build ", advice.proposal, ": so many landmarks suffice for every kernel and rows with ",
        "this margin. Your rows may need fewer, which only measuring shows.");
    return;
  }
  advice.to_measure = kMeasuredMapping;
  advice.to_do = absl::StrCat(
      "Measure: the theorem asks for ", CountText(landmarks), " landmarks where a mapping has at ",
      "most ", Thousands(query.max_landmarks), ", for the worst rows that have this margin, and ",
      "says nothing of yours. Build ", advice.to_measure,
      ", which adds landmarks until 95 % of the rows keep 90 % of their K(x, x); then test a ",
      "learner on labeled rows, for a few numbers of landmarks, and take the smallest that does.");
}

}  // namespace

void DecideF2OrF3(const AdviceQuery& query, Advice& advice) {
  const double margin = query.margin;
  const double delta = query.delta();
  const std::optional<int64_t> f2 = F2Dimensions(kSharpest.f2, margin, query.error, delta);
  const std::optional<int64_t> f3 = F3Dimensions(kSharpest.f3, margin, query.error, delta);
  advice.f3_helps = F3Wins(kSharpest, margin, query.error, delta);
  advice.f3_helps_below_error = F3WinsBelow(kSharpest, margin, delta);
  if (advice.f3_helps) {
    advice.verdict = absl::StrCat(
        "F3 helps: ", CountText(f3), " features where F2 has ", CountText(f2),
        ", at margin γ/4 instead of γ/2. F3 still evaluates the kernel on every landmark, and more "
        "dimensions than landmarks bring no gain.");
  } else {
    advice.verdict = absl::StrCat(
        "F3 cannot help: it takes ", CountText(f3), " features where F2 has ", CountText(f2),
        ", and leaves margin γ/4 instead of γ/2. Use F2. At this margin and confidence F3 is the "
        "smaller one for errors ",
        BelowText(advice.f3_helps_below_error), " (exact law against binomial), ",
        BelowText(F3WinsBelow(kSharperF3, margin, delta)), " (derived against literal), ",
        BelowText(F3WinsBelow(kPrinted, margin, delta)), " (both literal).");
  }
  const std::optional<int64_t> landmarks =
      advice.f3_helps ? BinomialLandmarks(margin, query.error / 2, delta / 2) : f2;
  const bool fits =
      landmarks.has_value() && (query.max_landmarks == 0 || *landmarks <= query.max_landmarks);
  if (!fits) {
    if (query.max_landmarks != 0) advice.verdict += OverTheLimit(query, landmarks);
  } else if (advice.f3_helps) {
    advice.proposal = absl::StrCat("f3(landmarks=", *landmarks, ", dimensions=", *f3, ")");
  } else {
    advice.proposal = absl::StrCat("f2(landmarks=", *landmarks, ")");
  }
  SayWhatToDo(query, landmarks, advice);
}

}  // namespace phimap
