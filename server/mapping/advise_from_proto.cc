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
  if (line.dimensions.has_value()) out->set_dimensions(*line.dimensions);
  if (line.margin.has_value()) out->set_margin(*line.margin);
  out->set_note(line.note);
  if (line.landmarks.has_value()) out->set_landmarks(*line.landmarks);
  if (line.error.has_value()) out->set_error(*line.error);
  if (line.distortion.has_value()) out->set_distortion(*line.distortion);
  if (line.success.has_value()) out->set_success(*line.success);
  if (line.draws.has_value()) out->set_draws(*line.draws);
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
  response->set_to_do(advice.to_do);
  response->set_to_measure(advice.to_measure);
  response->set_verdict(advice.verdict);
  response->set_proposal(advice.proposal);
  response->set_f3_helps(advice.f3_helps);
  response->set_f3_helps_below_error(advice.f3_helps_below_error);
  return absl::OkStatus();
}

}  // namespace phimap
