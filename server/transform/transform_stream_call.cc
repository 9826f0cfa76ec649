#include "server/transform/transform_stream_call.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/transform/examples_from_proto.h"
#include "server/transform/transform_checks.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Adds the request's number in its stream to an error.
absl::Status WithRequestNumber(const absl::Status& status, int64_t number) {
  const std::string message = absl::StrCat("request ", number, ": ", status.message());
  std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return absl::Status(status.code(), message);
  detail->metadata["request"] = absl::StrCat(number);
  const size_t prefix = detail->field.empty() ? 0 : detail->field.size() + 2;
  return MakeError(status.code(), detail->reason, detail->field,
                   absl::StrCat("request ", number, ": ", status.message().substr(prefix)),
                   detail->metadata, detail->retry_delay_ms);
}

// Rejects fields that only the first request may have.
absl::Status CheckLater(const v1::TransformStreamRequest& request) {
  if (!request.reference().empty()) {
    return MakeError(Code::kInvalidArgument, "FIELD_UNEXPECTED", "reference",
                     "expected in the first request only");
  }
  if (!request.expected_digest().empty()) {
    return MakeError(Code::kInvalidArgument, "FIELD_UNEXPECTED", "expected_digest",
                     "expected in the first request only");
  }
  if (request.column_names_hash() != 0) {
    return MakeError(Code::kInvalidArgument, "FIELD_UNEXPECTED", "column_names_hash",
                     "expected in the first request only");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TransformStreamCall::Read(Slot& slot) {
  if (slot.number == 0) return absl::OkStatus();
  slot.version = version_;
  return CheckLater(slot.request);
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
  const absl::Status fits = CheckAnswerFits(
      version_, slot.rows.rows(), residual == nullptr ? 0 : kResidualBytes + kAllowanceBytes,
      environment().max_message_bytes);
  if (!fits.ok()) return WithFieldPrefix(fits, slot.field);
  slot.answer.Plan(version_, slot.rows.rows(), /*names_version=*/slot.number == 0, residual);
  return absl::OkStatus();
}

absl::Status TransformStreamCall::Failed(Slot& slot, const absl::Status& status) {
  return WithRequestNumber(status, slot.number);
}

}  // namespace phimap
