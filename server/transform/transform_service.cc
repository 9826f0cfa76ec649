#include "server/transform/transform_service.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "phimap/v1/transform_service.pb.h"
#include "server/registry/version_handle.h"
#include "server/transform/planned_answer.h"
#include "server/transform/row_messages.h"
#include "server/transform/row_stream_call.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

using Response = v1::TransformResponse;
// An answer of Transform or TransformStream. It is laid out before the features are computed, and
// then written in place.
//
// Not thread-safe.
class TransformAnswer {
 public:
  // Lays out an answer of `rows` rows. `names_version` says whether the answer names the version:
  // all do, except the later answers of a stream. `residual` is the version's if the answer has
  // residuals, or null.
  void Plan(const VersionHandle& version, int64_t rows, bool names_version,
            const Residual* residual);

  PlannedAnswer& message() { return message_; }
  // Allocates the message, and returns the destination of the features in it.
  char* Allocate(const TransformMetrics& metrics) {
    message_.Allocate(metrics);
    return message_.field(features_);
  }
  // Writes the other parts of the answer. Called after the features were written. `seen` are the
  // rows that the engine got.
  absl::Status Complete(const ExamplesView& seen);

 private:
  PlannedAnswer message_;
  // Places of the fields in message_; -1 if there are no residuals.
  int features_ = -1;
  int residuals_ = -1;
  int allowances_ = -1;
  const Residual* residual_ = nullptr;
};

void TransformAnswer::Plan(const VersionHandle& version, int64_t rows, bool names_version,
                           const Residual* residual) {
  residual_ = residual;
  const Engine& engine = version.engine();
  const auto bytes =
      static_cast<size_t>(rows * engine.output_columns() * FloatTypeBytes(engine.serving_type()));
  const int values = engine.serving_type() == FloatType::kFloat32
                         ? v1::DenseRows::kFloat32LeFieldNumber
                         : v1::DenseRows::kFloat64LeFieldNumber;
  if (names_version) {
    Response named;
    RefToProto(version.record(), named.mutable_version());
    message_.AddBytes(named.SerializeAsString());
  }
  v1::DenseRows shape;
  shape.set_rows(static_cast<int>(rows));
  shape.set_columns(static_cast<int>(engine.output_columns()));
  const std::string shape_bytes = shape.SerializeAsString();
  message_.AddFieldHead(Response::kFeaturesFieldNumber,
                        shape_bytes.size() + PlannedAnswer::FieldHeadBytes(values, bytes) + bytes);
  message_.AddBytes(shape_bytes);
  features_ = message_.AddField(values, bytes);
  if (residual != nullptr) {
    const size_t column_bytes = static_cast<size_t>(rows) * sizeof(double);
    residuals_ = message_.AddField(Response::kResidualsFieldNumber, column_bytes);
    allowances_ = message_.AddField(Response::kResidualAllowancesFieldNumber, column_bytes);
  }
}

absl::Status TransformAnswer::Complete(const ExamplesView& seen) {
  if (residual_ == nullptr) return absl::OkStatus();
  // Vectors are needed because the fields in the message may not be aligned for doubles.
  std::vector<double> values(static_cast<size_t>(seen.rows()));
  std::vector<double> allowances(values.size());
  residual_->Compute(seen, message_.field(features_), values.data(), allowances.data());
  std::memcpy(message_.field(residuals_), values.data(), values.size() * sizeof(double));
  std::memcpy(message_.field(allowances_), allowances.data(), values.size() * sizeof(double));
  return absl::OkStatus();
}

// Returns the bytes that a row takes in the answer.
int64_t RowBytes(const VersionHandle& version, const Residual* residual) {
  return FeatureRowBytes(version) + (residual == nullptr ? 0 : kResidualBytes + kAllowanceBytes);
}

// One Transform call: receives rows, sends features.
class TransformCall final : public RowCall<v1::TransformRequest> {
 public:
  TransformCall(const CallStart& start, const RowCallEnvironment& environment)
      : RowCall(start, environment) {}

 private:
  absl::StatusOr<Wanted> Read() override;
  absl::StatusOr<int64_t> Accept(const VersionHandle& version, const ExamplesView& rows) override;
  PlannedAnswer& answer() override { return answer_.message(); }
  char* Allocate(const TransformMetrics& metrics) override { return answer_.Allocate(metrics); }
  absl::Status Complete(const ExamplesView& seen) override { return answer_.Complete(seen); }

  TransformAnswer answer_;
};

absl::StatusOr<TransformCall::Wanted> TransformCall::Read() {
  PHIMAP_ASSIGN_OR_RETURN(const ExamplesView rows, ExamplesFromProto(request().examples()));
  return Wanted{request().reference(), rows, RowsField(rows.kind()), deadline()};
}

absl::StatusOr<int64_t> TransformCall::Accept(const VersionHandle& version,
                                              const ExamplesView& rows) {
  PHIMAP_RETURN_IF_ERROR(CheckDigest(version, request().expected_digest()));
  PHIMAP_RETURN_IF_ERROR(
      CheckColumnNamesHash(version, request().column_names_hash(), "column_names_hash"));
  PHIMAP_RETURN_IF_ERROR(version.CheckTakes(rows));
  const Residual* residual = nullptr;
  if (request().residual()) {
    PHIMAP_ASSIGN_OR_RETURN(residual, ResidualOf(version, rows, "residual"));
  }
  answer_.Plan(version, rows.rows(), /*names_version=*/true, residual);
  return RowBytes(version, residual);
}

// One TransformStream call: receives requests and sends features, in order. Several requests may be
// in progress at once.
//
// The first request names the version for the whole stream. An error ends the stream.
class TransformStreamCall final : public RowStreamCall<v1::TransformRequest, TransformAnswer> {
 public:
  TransformStreamCall(const CallStart& start, const RowCallEnvironment& environment,
                      const absl::Duration& idle_limit)
      : RowStreamCall(start, environment, idle_limit) {}

 private:
  absl::Status Read(Slot& slot) override;
  absl::string_view ReferenceOf(Slot& slot) override { return slot.request.reference(); }
  absl::Status Accept(Slot& slot) override;
  absl::Status Failed(Slot& slot, const absl::Status& status) override;

  VersionHandle version_;
};

absl::Status TransformStreamCall::Read(Slot& slot) {
  if (slot.number == 0) return absl::OkStatus();
  slot.version = version_;
  return CheckNamesNoVersion(slot.request);
}

absl::Status TransformStreamCall::Accept(Slot& slot) {
  if (slot.number == 0) {
    version_ = slot.version;
    PHIMAP_RETURN_IF_ERROR(CheckDigest(version_, slot.request.expected_digest()));
    PHIMAP_RETURN_IF_ERROR(
        CheckColumnNamesHash(version_, slot.request.column_names_hash(), "column_names_hash"));
  }
  PHIMAP_ASSIGN_OR_RETURN(slot.rows, ExamplesFromProto(slot.request.examples()));
  slot.field = RowsField(slot.rows.kind());
  PHIMAP_RETURN_IF_ERROR(version_.CheckTakes(slot.rows));
  const Residual* residual = nullptr;
  if (slot.request.residual()) {
    PHIMAP_ASSIGN_OR_RETURN(residual, ResidualOf(version_, slot.rows, "residual"));
  }
  const absl::Status fits = CheckAnswerFits(RowBytes(version_, residual), slot.rows.rows(),
                                            environment().max_message_bytes);
  if (!fits.ok()) return WithFieldPrefix(fits, slot.field);
  slot.answer.Plan(version_, slot.rows.rows(), /*names_version=*/slot.number == 0, residual);
  return absl::OkStatus();
}

absl::Status TransformStreamCall::Failed(Slot& slot, const absl::Status& status) {
  return WithRequestNumber(status, slot.number);
}

}  // namespace

void AddTransformService(const RowCallEnvironment& environment, const absl::Duration& idle_limit,
                         Dispatcher& dispatcher) {
  const google::protobuf::FileDescriptor* const file = v1::TransformRequest::descriptor()->file();
  dispatcher.Add(*file->FindServiceByName("TransformService"),
                 {{"Transform", Opens<TransformCall>(environment)},
                  {"TransformStream", Opens<TransformStreamCall>(environment, idle_limit)}});
}

}  // namespace phimap
