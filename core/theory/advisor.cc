#include "core/theory/advisor.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

template <typename Number>
absl::Status InRange(absl::string_view field, Number value, Number low, Number high,
                     absl::string_view what_to_do) {
  if (value >= low && value <= high) return absl::OkStatus();  // NaN is not.
  // Enough digits to tell 1 − 1e-9 from 1.
  const std::string limits[] = {absl::StrFormat("%.12g", static_cast<double>(low)),
                                absl::StrFormat("%.12g", static_cast<double>(high))};
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, field,
      absl::StrCat("expected ", limits[0], " to ", limits[1], ", got ", value, "; ", what_to_do),
      {{"limit", value < low ? limits[0] : limits[1]}, {"actual", absl::StrCat(value)}});
}

}  // namespace

absl::Status AdviceQuery::Validate() const {
  PHIMAP_RETURN_IF_ERROR(
      InRange("margin", margin, 1e-4, 1.0,
              "the margin is a cosine; divide any other margin by the largest ‖φ(x)‖"));
  PHIMAP_RETURN_IF_ERROR(
      InRange("error", error, 1e-6, 1 - 1e-6,
              "the error is the share of examples that may be misclassified, such as 0.1"));
  PHIMAP_RETURN_IF_ERROR(
      InRange("confidence", confidence, 1e-9, 1 - 1e-9,
              "the confidence is the probability 1 − δ that the statement holds, such as 0.95"));
  PHIMAP_RETURN_IF_ERROR(InRange("alpha", alpha, 0.0, 1 - 1e-6,
                                 "alpha is the share of examples that miss the margin"));
  if (!(alpha + error < 1)) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, "alpha",
                     absl::StrCat("a mapping's error is alpha + error, here ", alpha, " + ", error,
                                  "; expected less than 1"),
                     {{"limit", absl::StrCat(1 - error)}, {"actual", absl::StrCat(alpha)}});
  }
  if (points != 0) {
    PHIMAP_RETURN_IF_ERROR(InRange<int64_t>("points", points, 1, 1'000'000'000'000'000,
                                            "leave it unset if there is no data set"));
  }
  if (classes != 0) {
    PHIMAP_RETURN_IF_ERROR(InRange<int64_t>("classes", classes, 2, 1'000'000,
                                            "leave it unset if there are no classes"));
  }
  if (distortion != 0) {
    PHIMAP_RETURN_IF_ERROR(InRange("distortion", distortion, 1e-6, 1 - 1e-6,
                                   "the distortion is the largest relative error of squared "
                                   "lengths; if it is unset, the one that halves the margin is "
                                   "used"));
  }
  if (kernel_error != 0) {
    PHIMAP_RETURN_IF_ERROR(InRange(
        "kernel_error", kernel_error, 1e-6, 1.0,
        "the kernel error is the largest error of a kernel value; if it is unset, 0.1 is used"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Advice> Advise(const AdviceQuery& query) {
  PHIMAP_RETURN_IF_ERROR(query.Validate());
  Advice advice;
  advice.lines = LandmarkAdvice(query);
  for (AdviceLine& line : ProjectionAdvice(query)) advice.lines.push_back(std::move(line));
  DecideF2OrF3(query, advice);
  return advice;
}

}  // namespace phimap
