#include "server/rpc/inference_infer_call.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/rpc/features_to_proto.h"
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
  PHIMAP_ASSIGN_OR_RETURN(outputs_, OutputsOf(request_));
  const absl::Time deadline = std::min(scope().deadline(), scope().started() + timeout);
  Wanted wanted{reference_, {rows, kInputField, deadline}};
  if (Wants(InferenceOutput::kResidual)) wanted.rows.extra_row_bytes = kResidualBytes;
  return wanted;
}

absl::Status InferenceInferCall::ReferenceError(const absl::Status& status) const {
  return InModelFields(status, kModelOfInfer);
}

absl::Status InferenceInferCall::Accept(const VersionHandle& version, const ExamplesView& rows) {
  PHIMAP_RETURN_IF_ERROR(CheckInputShape(version, *rows.dense()));
  const VersionRecord& record = version.record();
  response_->set_model_name(record.mapping);
  response_->set_model_version(absl::StrCat(record.number));
  response_->set_id(request_.id());
  (*response_->mutable_parameters())["digest"].set_string_param(record.digest);
  if (Wants(InferenceOutput::kResidual)) {
    PHIMAP_ASSIGN_OR_RETURN(residual_, ResidualOf(version, rows, "outputs[residual]"));
  }
  for (const InferenceOutput output : outputs_) {
    const bool features = output == InferenceOutput::kFeatures;
    auto& tensor = *response_->add_outputs();
    tensor.set_name(features ? kFeaturesName : kResidualName);
    tensor.set_datatype(
        DatatypeOf(features ? version.engine().serving_type() : FloatType::kFloat64));
    tensor.add_shape(rows.rows());
    tensor.add_shape(features ? version.engine().output_columns() : 1);
  }
  return absl::OkStatus();
}

bool InferenceInferCall::Wants(InferenceOutput output) const {
  return std::find(outputs_.begin(), outputs_.end(), output) != outputs_.end();
}

char* InferenceInferCall::Allocate(const Engine& engine, int64_t rows) {
  std::string* features = &hidden_features_;
  for (const InferenceOutput output : outputs_) {
    std::string* const bytes = response_->add_raw_output_contents();
    if (output == InferenceOutput::kFeatures) {
      features = bytes;
    } else {
      bytes->resize(static_cast<size_t>(rows * kResidualBytes));
    }
  }
  features->resize(rows * engine.output_columns() * FloatTypeBytes(engine.serving_type()));
  features_ = features->data();
  return features->data();
}

void InferenceInferCall::Complete(const ExamplesView& rows) {
  if (residual_ == nullptr) return;
  std::vector<double> residuals(static_cast<size_t>(rows.rows()));
  residual_->Compute(rows, features_, residuals.data());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i] != InferenceOutput::kResidual) continue;
    std::memcpy(response_->mutable_raw_output_contents(static_cast<int>(i))->data(),
                residuals.data(), residuals.size() * sizeof(double));
  }
}

}  // namespace phimap
