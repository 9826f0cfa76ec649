#include "server/rpc/answer_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

constexpr int64_t kRetryDelayMs = 100;

}  // namespace

absl::Status AnswerBudget::CheckRoom(int64_t bytes) const {
  const int64_t held = held_.load();
  if (held == 0 || held + bytes <= max_bytes_) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, "ANSWERS_FULL", "",
                   absl::StrCat("answers that clients have not fetched yet hold ", held, " bytes; ",
                                bytes, " more would pass the limit of ", max_bytes_),
                   {{"limit", absl::StrCat(max_bytes_)}, {"actual", absl::StrCat(held + bytes)}},
                   kRetryDelayMs);
}

AnswerBudget::Held AnswerBudget::Hold(int64_t bytes) {
  held_.fetch_add(bytes);
  metrics_.answer_bytes->Increment(static_cast<double>(bytes));
  return Held(this, bytes);
}

void AnswerBudget::Return(const Held& answer) {
  held_.fetch_sub(answer.bytes_);
  metrics_.answer_bytes->Decrement(static_cast<double>(answer.bytes_));
  const absl::Duration sending = absl::Now() - answer.computed_;
  metrics_.answer_seconds->Observe(std::max(0.0, absl::ToDoubleSeconds(sending)));
  room_.Notify();
}

}  // namespace phimap
