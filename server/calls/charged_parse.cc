#include "server/calls/charged_parse.h"

#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/calls/malformed_request.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Maximum factor by which texts and numbers grow when they are parsed. A message that grows by more
// is rejected if it would not fit into an otherwise empty budget.
constexpr int64_t kUsualGrowth = 4;

absl::Status GrowsTooLarge(size_t bytes, int64_t parsed, int64_t limit) {
  return MakeError(Code::kResourceExhausted, "MESSAGE_TOO_LARGE", "",
                   absl::StrCat("the message has ", bytes, " bytes and would take ", parsed,
                                " bytes when parsed, more than --memory_bytes=", limit,
                                "; send fewer elements at once, and send numbers as bytes"),
                   {{"actual", absl::StrCat(parsed)}, {"limit", absl::StrCat(limit)}});
}

// Increases `charge` if it does not cover the message's bytes and the parsed message, whose size is
// `parsed`.
absl::Status ChargeParsed(RequestMemory& memory, const CallerPointer& caller,
                          absl::string_view bytes, const absl::StatusOr<int64_t>& parsed,
                          RequestMemory::Charge& charge) {
  if (!parsed.ok()) return parsed.status();
  const int64_t needed = static_cast<int64_t>(bytes.size()) + *parsed;
  if (needed <= charge.bytes()) return absl::OkStatus();
  if (needed > memory.max_bytes() && *parsed > kUsualGrowth * static_cast<int64_t>(bytes.size())) {
    return GrowsTooLarge(bytes.size(), *parsed, memory.max_bytes());
  }
  std::optional<RequestMemory::Charge> more =
      memory.Take(caller, needed - charge.bytes(), /*held=*/charge.bytes());
  if (!more.has_value()) return memory.Full(caller, "the parsed request", needed);
  charge.Add(*std::move(more));
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseCharged(RequestMemory& memory, const CallerPointer& caller,
                          const absl::StatusOr<int64_t>& cost, ChargedMessage& message,
                          google::protobuf::MessageLite& parsed) {
  const absl::string_view bytes = message.bytes.view();
  absl::Status charged = ChargeParsed(memory, caller, bytes, cost, message.charge);
  if (!charged.ok()) return charged;
  try {
    if (!parsed.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return MalformedRequest(parsed.GetTypeName());
    }
  } catch (const std::bad_alloc&) {
    return MakeError(Code::kResourceExhausted, "MACHINE_MEMORY_FULL", "",
                     "not enough memory for this request", {}, /*retry_delay_ms=*/1000);
  }
  const int64_t wire = static_cast<int64_t>(bytes.size());
  message.bytes = MessageBytes();
  message.charge.ShrinkTo(message.charge.bytes() - wire);
  return absl::OkStatus();
}

}  // namespace phimap
