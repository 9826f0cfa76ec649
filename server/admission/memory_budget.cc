#include "server/admission/memory_budget.h"

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

MemoryBudget::MemoryBudget(MemoryBudget& whole, absl::string_view who)
    : max_bytes_(0), whole_(&whole), who_(who) {}

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
  const int64_t limit = max_bytes();
  if (bytes > limit - held) {
    return NeverFits(bytes > std::numeric_limits<int64_t>::max() - held ? bytes : held + bytes,
                     limit);
  }
  MutexLock lock(&mutex_);
  return GrowWithin(reservation, bytes, limit);
}

absl::Status MemoryBudget::GrowWithin(Reservation& reservation, int64_t bytes, int64_t limit) {
  const int64_t held = reservation.bytes_;
  if (bytes > limit - reserved_bytes_) {
    const std::string others = whole_ == nullptr ? "builds, imports and evaluations" : who_;
    return MakeError(absl::StatusCode::kResourceExhausted, reason::kBuildMemoryFull, "",
                     absl::StrCat("this may need ", held + bytes, " bytes of memory; other ",
                                  others, " hold ", reserved_bytes_ - held, " of the limit of ",
                                  limit, whole_ == nullptr ? "" : ", half of --build_memory_bytes"),
                     Numbers(held + bytes, limit), kRetryDelayMs);
  }
  if (whole_ != nullptr) {
    // `in_whole` only serves to call Grow on the whole budget. It is not returned at the end of
    // this scope: MemoryBudget::Return gives back the share of the whole.
    Reservation in_whole(whole_, held);
    const absl::Status grown = whole_->Grow(in_whole, bytes);
    in_whole.budget_ = nullptr;
    PHIMAP_RETURN_IF_ERROR(grown);
  }
  reservation.budget_ = this;
  reservation.bytes_ += bytes;
  reserved_bytes_ += bytes;
  if (gauge_ != nullptr) gauge_->Set(static_cast<double>(reserved_bytes_));
  return absl::OkStatus();
}

absl::Status MemoryBudget::CheckEverFits(int64_t bytes) const {
  const int64_t limit = max_bytes();
  return bytes <= limit ? absl::OkStatus() : NeverFits(bytes, limit);
}

absl::Status MemoryBudget::NeverFits(int64_t bytes, int64_t limit) const {
  const std::string allowed =
      whole_ == nullptr
          ? absl::StrCat("--build_memory_bytes=", limit, " allows at all")
          : absl::StrCat("the ", limit, " that ", who_, " may take, half of --build_memory_bytes");
  return MakeError(absl::StatusCode::kResourceExhausted, reason::kBuildMemoryFull, "",
                   absl::StrCat("this needs ", bytes, " bytes of memory, more than ", allowed),
                   Numbers(bytes, limit));
}

void MemoryBudget::Return(int64_t bytes) {
  if (whole_ != nullptr) whole_->Return(bytes);
  MutexLock lock(&mutex_);
  reserved_bytes_ -= bytes;
  if (gauge_ != nullptr) gauge_->Set(static_cast<double>(reserved_bytes_));
}

}  // namespace phimap
