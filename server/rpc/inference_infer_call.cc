#include "server/rpc/inference_infer_call.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/rpc/inference_input.h"
#include "server/rpc/inference_model.h"
#include "server/rpc/inference_outputs.h"
#include "server/rpc/inference_tensor.h"
#include "server/rpc/inference_timeout.h"

namespace phimap {
namespace {

// It is sent back beside the features, in the room that an answer has for all but them.
constexpr size_t kMaxIdBytes = 512;
static_assert(kMaxIdBytes <= kEnvelopeBytes / 2);

absl::Status CheckId(const std::string& id) {
  if (id.size() <= kMaxIdBytes) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, "TOO_LONG", "id",
                   absl::StrCat("expected at most ", kMaxIdBytes, " bytes, got ", id.size()),
                   {{"limit", absl::StrCat(kMaxIdBytes)}, {"actual", absl::StrCat(id.size())}});
}

}  // namespace

InferenceInferCall::InferenceInferCall(const TransformEnvironment& environment,
                                       const RpcMethod& method,
                                       const grpc::CallbackServerContext& context,
                                       const inference::ModelInferRequest& request,
                                       inference::ModelInferResponse* response)
    : TransformUnaryCall(environment, method, context), request_(request), response_(response) {}

absl::StatusOr<InferenceInferCall::Wanted> InferenceInferCall::Read() {
  PHIMAP_ASSIGN_OR_RETURN(
      reference_, ReferenceToModel(request_.model_name(), request_.model_version(), kModelOfInfer));
  PHIMAP_RETURN_IF_ERROR(CheckId(request_.id()));
  PHIMAP_ASSIGN_OR_RETURN(const absl::Duration timeout, TimeoutOf(request_.parameters()));
  PHIMAP_ASSIGN_OR_RETURN(const RowsView rows, RowsFromInput(request_));
  PHIMAP_RETURN_IF_ERROR(CheckOutputs(request_));
  const absl::Time deadline = std::min(scope().deadline(), scope().started() + timeout);
  return Wanted{reference_, {rows, kInputField, deadline}};
}

absl::Status InferenceInferCall::ReferenceError(const absl::Status& status) const {
  return InModelFields(status, kModelOfInfer);
}

absl::Status InferenceInferCall::Accept(const VersionHandle& version, const RowsView& rows) {
  PHIMAP_RETURN_IF_ERROR(CheckInputShape(version, rows));
  const VersionRecord& record = version.record();
  response_->set_model_name(record.mapping);
  response_->set_model_version(absl::StrCat(record.number));
  response_->set_id(request_.id());
  (*response_->mutable_parameters())["digest"].set_string_param(record.digest);
  auto& features = *response_->add_outputs();
  features.set_name(kFeaturesName);
  features.set_datatype(DatatypeOf(version.engine().serving_type()));
  features.add_shape(rows.rows);
  features.add_shape(version.engine().output_columns());
  return absl::OkStatus();
}

char* InferenceInferCall::Allocate(const Engine& engine, int64_t rows) {
  std::string& bytes = *response_->add_raw_output_contents();
  bytes.resize(rows * engine.output_columns() * FloatTypeBytes(engine.serving_type()));
  return bytes.data();
}

}  // namespace phimap
