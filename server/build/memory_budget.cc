#include "server/build/memory_budget.h"

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

constexpr int64_t kRetryDelayMs = 5000;

}  // namespace

MemoryBudget::Reservation::~Reservation() {
  if (budget_ != nullptr) budget_->Return(bytes_);
}

absl::StatusOr<MemoryBudget::Reservation> MemoryBudget::Reserve(int64_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > max_bytes_ - reserved_bytes_) {
    return MakeError(absl::StatusCode::kResourceExhausted, "BUILD_MEMORY", "",
                     absl::StrCat("this may need ", bytes, " bytes of memory; other builds, ",
                                  "imports and evaluations hold ", reserved_bytes_,
                                  " of the limit of ", max_bytes_),
                     {{"needed", absl::StrCat(bytes)}, {"limit", absl::StrCat(max_bytes_)}},
                     bytes <= max_bytes_ ? kRetryDelayMs : 0);
  }
  reserved_bytes_ += bytes;
  gauge_->Set(static_cast<double>(reserved_bytes_));
  return Reservation(this, bytes);
}

void MemoryBudget::Return(int64_t bytes) {
  MutexLock lock(&mutex_);
  reserved_bytes_ -= bytes;
  gauge_->Set(static_cast<double>(reserved_bytes_));
}

}  // namespace phimap
