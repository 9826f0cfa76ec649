#include "server/mapping/advise_from_proto.h"

#include "core/mapping/spec/build_spec.h"
#include "core/status/status_macros.h"
#include "core/theory/advisor.h"

namespace phimap {
namespace {

void LineToProto(const AdviceLine& line, v1::AdviseResponse::Line* out) {
  out->set_what(line.what);
  out->set_source(line.source);
  out->set_tier(TierName(line.tier));
  out->set_dimensions(line.dimensions.value_or(0));
  out->set_margin(line.margin.value_or(0));
  out->set_note(line.note);
  out->set_landmarks(line.landmarks.value_or(0));
  out->set_error(line.error.value_or(0));
  out->set_distortion(line.distortion.value_or(0));
  out->set_success(line.success.value_or(0));
  out->set_draws(line.draws.value_or(0));
}

}  // namespace

absl::Status AdviseFromProto(const v1::AdviseRequest& request, v1::AdviseResponse* response) {
  const AdviceQuery query{.margin = request.margin(),
                          .error = request.error(),
                          .confidence = request.confidence(),
                          .alpha = request.alpha(),
                          .points = request.points(),
                          .classes = request.classes(),
                          .distortion = request.distortion(),
                          .kernel_error = request.kernel_error(),
                          .max_landmarks = kMaxLandmarks};
  PHIMAP_ASSIGN_OR_RETURN(const Advice advice, Advise(query));
  for (const AdviceLine& line : advice.lines) LineToProto(line, response->add_lines());
  response->set_verdict(advice.verdict);
  response->set_proposal(advice.proposal);
  response->set_f3_helps(advice.f3_helps);
  response->set_f3_helps_below_error(advice.f3_helps_below_error);
  return absl::OkStatus();
}

}  // namespace phimap
