#include "server/mapping/forecasts.h"

#include "absl/strings/str_cat.h"
#include "core/landmark/reservoir.h"
#include "core/mapping/build/version_build.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/theory/advisor.h"
#include "proto/error/request_errors.h"
#include "server/mapping/request_fields.h"
#include "server/registry/reference.h"

namespace phimap {
BuildSpeed BuildEstimator::Speed() {
  // Callers wait while the speed is measured: two measurements at once would slow each other.
  MutexLock lock(&mutex_);
  if (!speed_.has_value()) speed_ = measure_();
  return *speed_;
}

BuildEstimate BuildEstimator::Estimate(const BuildSpec& spec, int64_t rows, int64_t columns) {
  const BuildCost cost = CostOfBuild(spec, rows, columns, threads_);
  return {.cost = cost, .seconds = SecondsOf(cost.work, Speed())};
}

namespace {

absl::Status CheckCount(absl::string_view field, int64_t count, int64_t limit) {
  if (count >= 1 && count <= limit) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, field,
                   absl::StrCat("expected 1 to ", limit, ", got ", count),
                   {{"limit", absl::StrCat(limit)}, {"actual", absl::StrCat(count)}});
}

// The core and the API use the same numbers.
static_assert(static_cast<int>(AdviceSubject::kWeakLearner) ==
              v1::AdviseResponse::Line::SUBJECT_WEAK_LEARNER);
static_assert(static_cast<int>(Tier::kExact) == v1::AdviseResponse::Line::TIER_EXACT_LAW);

void LineToProto(const AdviceLine& line, v1::AdviseResponse::Line* out) {
  out->set_subject(static_cast<v1::AdviseResponse::Line::Subject>(line.subject));
  out->set_source(line.source);
  out->set_tier(static_cast<v1::AdviseResponse::Line::Tier>(line.tier));
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

absl::Status EstimateFromProto(const v1::EstimateBuildRequest& request, BuildEstimator& estimator,
                               const BuildManager& builds, v1::EstimateBuildResponse* response) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.spec().name(), "spec.name"));
  PHIMAP_ASSIGN_OR_RETURN(const BuildSpec spec, BuildSpecFromProto(request.spec()));
  PHIMAP_RETURN_IF_ERROR(builds.CheckKernel(spec));
  PHIMAP_RETURN_IF_ERROR(CheckCount("rows", request.rows(), Reservoir::kMaxStreamRows));
  // Strings have no columns; a string counts as one.
  const bool of_strings = !spec.remote.has_value() && spec.kernel.TakesStrings();
  const int64_t columns = of_strings ? 1 : request.columns();
  PHIMAP_RETURN_IF_ERROR(CheckCount("columns", columns, kMaxColumns));
  PHIMAP_RETURN_IF_ERROR(FromRequestRoot(CheckStreamRows(spec, request.rows())));
  PHIMAP_RETURN_IF_ERROR(FromRequestRoot(spec.CheckColumns(columns)));
  const BuildEstimate estimate = estimator.Estimate(spec, request.rows(), columns);
  response->set_peak_memory_bytes(estimate.cost.memory_bytes());
  response->set_artifact_size_bytes(estimate.cost.artifact_bytes);
  response->set_flops(estimate.cost.work.flops());
  response->set_seconds(estimate.seconds);
  response->set_reserved_memory_bytes(ReservedBytes(spec, columns, estimator.threads()));
  response->set_memory_limit_bytes(builds.memory_limit_bytes());
  return absl::OkStatus();
}

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
