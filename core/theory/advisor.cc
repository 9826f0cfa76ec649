#include "core/theory/advisor.h"

#include <utility>

#include "core/status/status_macros.h"

namespace phimap {

absl::StatusOr<Advice> Advise(const AdviceQuery& query) {
  PHIMAP_RETURN_IF_ERROR(query.Validate());
  Advice advice;
  advice.lines = LandmarkAdvice(query);
  for (AdviceLine& line : ProjectionAdvice(query)) advice.lines.push_back(std::move(line));
  DecideF2OrF3(query, advice);
  return advice;
}

}  // namespace phimap
