#include "server/rpc/transform_call.h"

#include "core/status/status_macros.h"
#include "server/rpc/examples_from_proto.h"
#include "server/rpc/features_to_proto.h"
#include "server/rpc/version_ref_to_proto.h"

namespace phimap {

TransformCall::TransformCall(const TransformEnvironment& environment, const RpcMethod& method,
                             const grpc::CallbackServerContext& context,
                             const v1::TransformRequest& request, v1::TransformResponse* response)
    : TransformUnaryCall(environment, method, context), request_(request), response_(response) {}

absl::StatusOr<TransformCall::Wanted> TransformCall::Read() {
  PHIMAP_ASSIGN_OR_RETURN(const ExamplesView rows, ExamplesFromProto(request_.examples()));
  Wanted wanted{request_.reference(), {rows, RowsField(rows.kind()), scope().deadline()}};
  if (request_.residual()) wanted.rows.extra_row_bytes = kResidualBytes;
  return wanted;
}

absl::Status TransformCall::Accept(const VersionHandle& version, const ExamplesView& rows) {
  PHIMAP_RETURN_IF_ERROR(CheckDigest(version, request_.expected_digest()));
  PHIMAP_RETURN_IF_ERROR(version.CheckTakes(rows));
  if (request_.residual()) {
    PHIMAP_ASSIGN_OR_RETURN(residual_, ResidualOf(version, rows, "residual"));
  }
  RefToProto(version.record(), response_->mutable_version());
  return absl::OkStatus();
}

char* TransformCall::Allocate(const Engine& engine, int64_t rows) {
  return AllocateFeatures(engine, rows, response_->mutable_features());
}

void TransformCall::Complete(const ExamplesView& rows) {
  if (residual_ == nullptr) return;
  AddResiduals(*residual_, rows, response_->features(), response_->mutable_residuals());
}

}  // namespace phimap
