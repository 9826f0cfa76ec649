#include "server/memory/memory_budget.h"

#include <limits>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kRetryDelayMs = 5000;

std::map<std::string, std::string> Numbers(int64_t needed, int64_t limit) {
  return {{"needed", absl::StrCat(needed)}, {"limit", absl::StrCat(limit)}};
}

}  // namespace

MemoryBudget::Reservation::~Reservation() {
  if (budget_ != nullptr) budget_->Return(bytes_);
}

absl::StatusOr<MemoryBudget::Reservation> MemoryBudget::Reserve(int64_t bytes) {
  Reservation reservation(this, 0);
  PHIMAP_RETURN_IF_ERROR(Grow(reservation, bytes));
  return reservation;
}

absl::Status MemoryBudget::Grow(Reservation& reservation, int64_t bytes) {
  const int64_t held = reservation.bytes_;
  if (bytes > max_bytes_ - held) {
    return CheckEverFits(bytes > std::numeric_limits<int64_t>::max() - held ? bytes : held + bytes);
  }
  MutexLock lock(&mutex_);
  if (bytes > max_bytes_ - reserved_bytes_) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, "BUILD_MEMORY", "",
        absl::StrCat("this may need ", held + bytes, " bytes of memory; other builds, ",
                     "imports and evaluations hold ", reserved_bytes_ - held, " of the limit of ",
                     max_bytes_),
        Numbers(held + bytes, max_bytes_), kRetryDelayMs);
  }
  reservation.budget_ = this;
  reservation.bytes_ += bytes;
  reserved_bytes_ += bytes;
  gauge_->Set(static_cast<double>(reserved_bytes_));
  return absl::OkStatus();
}

absl::Status MemoryBudget::CheckEverFits(int64_t bytes) const {
  if (bytes <= max_bytes_) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, "BUILD_MEMORY", "",
                   absl::StrCat("this needs ", bytes, " bytes of memory, more than ",
                                "--build_memory_bytes=", max_bytes_, " allows at all"),
                   Numbers(bytes, max_bytes_));
}

void MemoryBudget::Return(int64_t bytes) {
  MutexLock lock(&mutex_);
  reserved_bytes_ -= bytes;
  gauge_->Set(static_cast<double>(reserved_bytes_));
}

}  // namespace phimap
