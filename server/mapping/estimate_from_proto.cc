#include "server/mapping/estimate_from_proto.h"

#include "absl/strings/str_cat.h"
#include "core/landmark/reservoir.h"
#include "core/mapping/build/version_build.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/build/build_error.h"
#include "server/mapping/build_spec_from_proto.h"
#include "server/registry/reference.h"

namespace phimap {
namespace {

absl::Status CheckCount(absl::string_view field, int64_t count, int64_t limit) {
  if (count >= 1 && count <= limit) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, "FIELD_OUT_OF_RANGE", field,
                   absl::StrCat("expected 1 to ", limit, ", got ", count),
                   {{"limit", absl::StrCat(limit)}, {"actual", absl::StrCat(count)}});
}

}  // namespace

absl::Status EstimateFromProto(const v1::EstimateBuildRequest& request, BuildEstimator& estimator,
                               const BuildManager& builds, v1::EstimateBuildResponse* response) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request.spec().mapping(), "spec.mapping"));
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

}  // namespace phimap
