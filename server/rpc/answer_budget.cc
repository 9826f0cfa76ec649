#include "server/rpc/answer_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

constexpr int64_t kRetryDelayMs = 100;

}  // namespace

absl::StatusOr<AnswerBudget::Reservation> AnswerBudget::Reserve(int64_t bytes) {
  const int64_t before = reserved_.fetch_add(bytes);
  if (before == 0 || before + bytes <= max_bytes_) {
    metrics_.answer_bytes->Increment(static_cast<double>(bytes));
    return Reservation(this, bytes);
  }
  reserved_.fetch_sub(bytes);
  return MakeError(absl::StatusCode::kResourceExhausted, "ANSWERS_FULL", "",
                   absl::StrCat("answers that clients have not fetched yet hold ", before,
                                " bytes; ", bytes, " more would pass the limit of ", max_bytes_),
                   {{"limit", absl::StrCat(max_bytes_)}, {"actual", absl::StrCat(before + bytes)}},
                   kRetryDelayMs);
}

void AnswerBudget::Return(const Reservation& reservation) {
  reserved_.fetch_sub(reservation.bytes_);
  metrics_.answer_bytes->Decrement(static_cast<double>(reservation.bytes_));
  if (reservation.computed_ == absl::InfinitePast()) return;
  const absl::Duration sending = absl::Now() - reservation.computed_;
  metrics_.answer_seconds->Observe(std::max(0.0, absl::ToDoubleSeconds(sending)));
}

}  // namespace phimap
