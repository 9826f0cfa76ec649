#include "server/inference/inference_answer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/head/head_answers.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "proto/error/request_errors.h"
#include "server/rpc/status_trailers.h"
#include "server/transform/row_messages.h"
#include "server/transform/row_server.h"

namespace phimap {
namespace {

using Response = inference::ModelInferResponse;
using StreamResponse = inference::ModelStreamInferResponse;

absl::Status CheckId(const std::string& id) {
  if (id.size() <= kMaxIdBytes) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldTooLong, "id",
                   absl::StrCat("expected at most ", kMaxIdBytes, " bytes, got ", id.size()),
                   {{"limit", absl::StrCat(kMaxIdBytes)}, {"actual", absl::StrCat(id.size())}});
}

// Bytes of a number, and of the length before each text in a tensor of BYTES.
constexpr int64_t kDoubleBytes = sizeof(double);
constexpr int64_t kLengthBytes = 4;

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

bool InferenceAnswer::WantsAnswers() const {
  return Wants(InferenceOutput::kLabel) || Wants(InferenceOutput::kScore) ||
         Wants(InferenceOutput::kProbability);
}

LivePart InferenceAnswer::part() const {
  if (!WantsAnswers()) return LivePart::kFeatures;
  const bool features = Wants(InferenceOutput::kFeatures) || Wants(InferenceOutput::kResidual);
  return features ? LivePart::kBoth : LivePart::kAnswers;
}

int64_t InferenceAnswer::row_bytes(const VersionHandle& version) const {
  int64_t bytes = Wants(InferenceOutput::kResidual) ? kResidualBytes : 0;
  if (!WantsAnswers()) return FeatureRowBytes(version) + bytes;
  const Head& head = version.head().head();
  if (Wants(InferenceOutput::kFeatures)) bytes += FeatureRowBytes(version);
  if (Wants(InferenceOutput::kScore)) bytes += head.scores() * kDoubleBytes;
  if (Wants(InferenceOutput::kProbability)) {
    bytes += static_cast<int64_t>(head.classes.size()) * kDoubleBytes;
  }
  if (Wants(InferenceOutput::kLabel)) bytes += kLengthBytes + head.longest_class_name();
  return bytes;
}

absl::Status InferenceAnswer::Accept(const VersionHandle& version, Message as) {
  PHIMAP_RETURN_IF_ERROR(CheckInputShape(version, rows_));
  as_ = as;
  if (Wants(InferenceOutput::kResidual)) {
    PHIMAP_ASSIGN_OR_RETURN(residual_,
                            ResidualOf(version, ExamplesView(rows_), "outputs[residual]"));
  }
  if (WantsAnswers()) return AcceptAnswers(version);
  LayOut(version, as);
  if (features_ < 0) {
    hidden_bytes_ = BytesOf(InferenceOutput::kFeatures, version);
    message_.AddScratch(hidden_bytes_);
  }
  return absl::OkStatus();
}

absl::Status InferenceAnswer::AcceptAnswers(const VersionHandle& version) {
  version_ = version;
  if (Wants(InferenceOutput::kLabel) && version.head().head().task == HeadTask::kNumbers) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, reason::kOutputNotAvailable, "outputs[label]",
        "the version's head predicts numbers, which have no labels; ask for \"score\", "
        "which is the number");
  }
  const absl::Status has =
      version.head().Check({.probabilities = Wants(InferenceOutput::kProbability)});
  if (!has.ok()) return WithField(has, "outputs[probability]");
  hidden_bytes_ = static_cast<size_t>(rows_.rows * FeatureRowBytes(version));
  message_.AddScratch(hidden_bytes_ + static_cast<size_t>(rows_.rows * row_bytes(version)));
  return absl::OkStatus();
}

size_t InferenceAnswer::BytesOf(InferenceOutput output, const VersionHandle& version) const {
  const int64_t row =
      output == InferenceOutput::kFeatures ? FeatureRowBytes(version) : kResidualBytes;
  return static_cast<size_t>(rows_.rows * row);
}

StreamResponse InferenceAnswer::Begin(const VersionHandle& version, Message as) const {
  const VersionRecord& record = version.record();
  StreamResponse answer;
  Response& head = *answer.mutable_infer_response();
  head.set_model_name(record.mapping);
  head.set_model_version(absl::StrCat(record.number));
  head.set_id(id_);
  (*head.mutable_parameters())["digest"].set_string_param(record.digest);
  if (as == Message::kStreamInfer) MarkAsStreamAnswer(answer);
  return answer;
}

void InferenceAnswer::LayOut(const VersionHandle& version, Message as) {
  StreamResponse answer = Begin(version, as);
  Response& head = *answer.mutable_infer_response();
  size_t outputs = 0;
  for (const InferenceOutput output : outputs_) {
    const bool features = output == InferenceOutput::kFeatures;
    auto& tensor = *head.add_outputs();
    tensor.set_name(OutputName(output));
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

char* InferenceAnswer::Allocate(const TransformMetrics& metrics) {
  metrics_ = &metrics;
  if (!WantsAnswers()) message_.Allocate(metrics);
  if (features_ < 0) hidden_features_.reset(new char[hidden_bytes_]);
  return Features();
}

char* InferenceAnswer::Features() const {
  return features_ < 0 ? hidden_features_.get() : message_.field(features_);
}

absl::Status InferenceAnswer::CompleteAnswers(const ExamplesView& seen) {
  const HeadAnswers& head = version_.head();
  thread_local EngineScratch scratch;
  PHIMAP_ASSIGN_OR_RETURN(const Answers answers,
                          version_.Answer({.scores = Wants(InferenceOutput::kScore),
                                           .probabilities = Wants(InferenceOutput::kProbability)},
                                          seen, hidden_features_.get(), scratch));
  StreamResponse answer = Begin(version_, as_);
  Response& response = *answer.mutable_infer_response();
  for (const InferenceOutput output : outputs_) {
    auto& tensor = *response.add_outputs();
    std::string& contents = *response.add_raw_output_contents();
    tensor.set_name(OutputName(output));
    tensor.set_datatype(DatatypeOf(FloatType::kFloat64));
    tensor.add_shape(rows_.rows);
    const auto add_matrix = [&](const Matrix<double>& matrix) {
      tensor.add_shape(matrix.cols());
      contents.assign(reinterpret_cast<const char*>(matrix.data()),
                      static_cast<size_t>(matrix.size()) * sizeof(double));
    };
    switch (output) {
      case InferenceOutput::kFeatures:
        tensor.set_datatype(DatatypeOf(version_.engine().serving_type()));
        tensor.add_shape(version_.engine().output_columns());
        contents.assign(hidden_features_.get(), hidden_bytes_);
        break;
      case InferenceOutput::kResidual: {
        Matrix<double> residuals = Matrix<double>::Uninit(rows_.rows, 1);
        residual_->Compute(seen, hidden_features_.get(), residuals.data(), /*allowances=*/nullptr);
        add_matrix(residuals);
        break;
      }
      case InferenceOutput::kScore:
        add_matrix(answers.scores);
        break;
      case InferenceOutput::kProbability:
        add_matrix(answers.probabilities);
        break;
      case InferenceOutput::kLabel:
        tensor.set_datatype("BYTES");
        tensor.add_shape(1);
        for (const int32_t label : answers.labels) {
          const std::string& name = head.head().classes[label];
          const auto size = static_cast<uint32_t>(name.size());
          contents.append(reinterpret_cast<const char*>(&size), kLengthBytes);
          contents.append(name);
        }
        break;
    }
  }
  hidden_features_.reset();
  if (as_ == Message::kStreamInfer) {
    message_.Write(answer, *metrics_);
  } else {
    message_.Write(response, *metrics_);
  }
  return absl::OkStatus();
}

absl::Status InferenceAnswer::Complete(const ExamplesView& seen) {
  if (WantsAnswers()) return CompleteAnswers(seen);
  if (residual_ == nullptr) return absl::OkStatus();
  // A vector is needed because the field in the message may not be aligned for doubles.
  std::vector<double> residuals(static_cast<size_t>(seen.rows()));
  residual_->Compute(seen, Features(), residuals.data(), /*allowances=*/nullptr);
  std::memcpy(message_.field(residuals_), residuals.data(), residuals.size() * sizeof(double));
  hidden_features_.reset();
  return absl::OkStatus();
}

}  // namespace phimap
