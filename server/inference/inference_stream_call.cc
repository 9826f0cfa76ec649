#include "server/inference/inference_stream_call.h"

#include <algorithm>

#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/inference/inference_input.h"
#include "server/inference/inference_model.h"
#include "server/inference/inference_stream.h"

namespace phimap {

absl::Status InferenceStreamCall::Read(Slot& slot) {
  PHIMAP_RETURN_IF_ERROR(slot.answer.Read(slot.request));
  slot.rows = slot.answer.rows();
  slot.field = kInputField;
  slot.deadline = std::min(deadline(), slot.received + slot.answer.timeout());
  return absl::OkStatus();
}

absl::Status InferenceStreamCall::Accept(Slot& slot) {
  PHIMAP_RETURN_IF_ERROR(slot.answer.Accept(slot.version, InferenceAnswer::Message::kStreamInfer));
  return WithFieldPrefix(
      CheckAnswerFits(slot.version, slot.rows.rows(), slot.answer.extra_row_bytes(),
                      environment().max_message_bytes),
      slot.field);
}

absl::Status InferenceStreamCall::Failed(Slot& slot, const absl::Status& status) {
  if (slot.unreadable) return status;
  const absl::Status named = InModelFields(status, kModelOfInfer);
  PHIMAP_ASSIGN_OR_RETURN(slot.told, Frame(StreamErrorOf(named, slot.request)));
  return absl::OkStatus();
}

}  // namespace phimap
