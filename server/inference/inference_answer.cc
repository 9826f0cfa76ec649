#include "server/inference/inference_answer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/calls/status_trailers.h"
#include "server/serving/row_server.h"
#include "server/transform/transform_checks.h"

namespace phimap {
namespace {

using Response = inference::ModelInferResponse;
using StreamResponse = inference::ModelStreamInferResponse;

absl::Status CheckId(const std::string& id) {
  if (id.size() <= kMaxIdBytes) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, "FIELD_TOO_LONG", "id",
                   absl::StrCat("expected at most ", kMaxIdBytes, " bytes, got ", id.size()),
                   {{"limit", absl::StrCat(kMaxIdBytes)}, {"actual", absl::StrCat(id.size())}});
}

// Parameter that marks the last answer to a request, for clients that do not know how many answers
// each request gets.
constexpr char kFinal[] = "triton_final_response";

std::string ReasonOf(const absl::Status& error) {
  const std::optional<ErrorDetail> detail = DetailOf(error);
  if (detail.has_value() && !detail->reason.empty()) return detail->reason;
  return absl::StatusCodeToString(error.code());
}

}  // namespace

void MarkAsStreamAnswer(inference::ModelStreamInferResponse& response) {
  (*response.mutable_infer_response()->mutable_parameters())[kFinal].set_bool_param(true);
}

inference::ModelStreamInferResponse StreamErrorOf(const absl::Status& error,
                                                  const inference::ModelInferRequest& request) {
  PHIMAP_CHECK(!error.ok());
  inference::ModelStreamInferResponse response;
  response.set_error_message(absl::StrCat(ReasonOf(error), ": ", DetailsForClient(error).message));
  inference::ModelInferResponse& answer = *response.mutable_infer_response();
  answer.set_id(Shortened(request.id(), kMaxIdBytes));
  answer.set_model_name(Shortened(request.model_name(), kMaxIdBytes));
  answer.set_model_version(Shortened(request.model_version(), kMaxIdBytes));
  MarkAsStreamAnswer(response);
  return response;
}

absl::Status InferenceAnswer::Read(const inference::ModelInferRequest& request) {
  PHIMAP_RETURN_IF_ERROR(CheckParameters(request));
  PHIMAP_ASSIGN_OR_RETURN(
      reference_, ReferenceToModel(request.model_name(), request.model_version(), kModelOfInfer));
  PHIMAP_RETURN_IF_ERROR(CheckId(request.id()));
  id_ = request.id();
  PHIMAP_ASSIGN_OR_RETURN(timeout_, TimeoutOf(request.parameters()));
  PHIMAP_ASSIGN_OR_RETURN(rows_, RowsFromInput(request));
  PHIMAP_ASSIGN_OR_RETURN(outputs_, OutputsOf(request));
  return absl::OkStatus();
}

int64_t InferenceAnswer::extra_row_bytes() const {
  return Wants(InferenceOutput::kResidual) ? kResidualBytes : 0;
}

absl::Status InferenceAnswer::Accept(const VersionHandle& version, Message as) {
  PHIMAP_RETURN_IF_ERROR(CheckInputShape(version, rows_));
  if (Wants(InferenceOutput::kResidual)) {
    PHIMAP_ASSIGN_OR_RETURN(residual_,
                            ResidualOf(version, ExamplesView(rows_), "outputs[residual]"));
  }
  LayOut(version, as);
  if (features_ < 0) {
    hidden_bytes_ = BytesOf(InferenceOutput::kFeatures, version);
    message_.AddScratch(hidden_bytes_);
  }
  return absl::OkStatus();
}

size_t InferenceAnswer::BytesOf(InferenceOutput output, const VersionHandle& version) const {
  const int64_t row =
      output == InferenceOutput::kFeatures ? FeatureRowBytes(version) : kResidualBytes;
  return static_cast<size_t>(rows_.rows * row);
}

void InferenceAnswer::LayOut(const VersionHandle& version, Message as) {
  const VersionRecord& record = version.record();
  StreamResponse answer;
  Response& head = *answer.mutable_infer_response();
  head.set_model_name(record.mapping);
  head.set_model_version(absl::StrCat(record.number));
  head.set_id(id_);
  (*head.mutable_parameters())["digest"].set_string_param(record.digest);
  if (as == Message::kStreamInfer) MarkAsStreamAnswer(answer);
  size_t outputs = 0;
  for (const InferenceOutput output : outputs_) {
    const bool features = output == InferenceOutput::kFeatures;
    auto& tensor = *head.add_outputs();
    tensor.set_name(features ? kFeaturesName : kResidualName);
    tensor.set_datatype(
        DatatypeOf(features ? version.engine().serving_type() : FloatType::kFloat64));
    tensor.add_shape(rows_.rows);
    tensor.add_shape(features ? version.engine().output_columns() : 1);
    const size_t bytes = BytesOf(output, version);
    outputs +=
        PlannedAnswer::FieldHeadBytes(Response::kRawOutputContentsFieldNumber, bytes) + bytes;
  }
  const std::string head_bytes = head.SerializeAsString();
  if (as == Message::kStreamInfer) {
    message_.AddFieldHead(StreamResponse::kInferResponseFieldNumber, head_bytes.size() + outputs);
  }
  message_.AddBytes(head_bytes);
  for (const InferenceOutput output : outputs_) {
    int& place = output == InferenceOutput::kFeatures ? features_ : residuals_;
    place = message_.AddField(Response::kRawOutputContentsFieldNumber, BytesOf(output, version));
  }
}

bool InferenceAnswer::Wants(InferenceOutput output) const {
  return std::find(outputs_.begin(), outputs_.end(), output) != outputs_.end();
}

char* InferenceAnswer::Features() {
  if (features_ >= 0) return message_.field(features_);
  if (hidden_features_ == nullptr) hidden_features_.reset(new char[hidden_bytes_]);
  return hidden_features_.get();
}

void InferenceAnswer::Complete(const ExamplesView& seen) {
  if (residual_ == nullptr) return;
  // A vector is needed because the field in the message may not be aligned for doubles.
  std::vector<double> residuals(static_cast<size_t>(seen.rows()));
  residual_->Compute(seen, Features(), residuals.data(), /*allowances=*/nullptr);
  std::memcpy(message_.field(residuals_), residuals.data(), residuals.size() * sizeof(double));
  hidden_features_.reset();
}

}  // namespace phimap
