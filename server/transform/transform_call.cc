#include "server/transform/transform_call.h"

#include "core/status/status_macros.h"
#include "server/transform/examples_from_proto.h"
#include "server/transform/transform_checks.h"

namespace phimap {

absl::StatusOr<TransformCall::Wanted> TransformCall::Read() {
  PHIMAP_ASSIGN_OR_RETURN(const ExamplesView rows, ExamplesFromProto(request().examples()));
  return Wanted{request().reference(), rows, RowsField(rows.kind()), deadline(),
                request().residual() ? kResidualBytes + kAllowanceBytes : 0};
}

absl::Status TransformCall::Accept(const VersionHandle& version, const ExamplesView& rows) {
  PHIMAP_RETURN_IF_ERROR(CheckDigest(version, request().expected_digest()));
  PHIMAP_RETURN_IF_ERROR(
      CheckColumnNamesHash(version, request().column_names_hash(), "column_names_hash"));
  PHIMAP_RETURN_IF_ERROR(version.CheckTakes(rows));
  const Residual* residual = nullptr;
  if (request().residual()) {
    PHIMAP_ASSIGN_OR_RETURN(residual, ResidualOf(version, rows, "residual"));
  }
  answer_.Plan(version, rows.rows(), /*names_version=*/true, residual);
  return absl::OkStatus();
}

}  // namespace phimap
