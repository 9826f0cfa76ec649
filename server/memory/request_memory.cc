#include "server/memory/request_memory.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "server/sync/steady_time.h"

namespace phimap {
namespace {

// Retry delay of a refused request. Memory becomes free within about this time, when answers have
// been sent, unless clients do not read.
constexpr int64_t kFullRetryMs = 50;

// Requests of more than kLarge bytes leave 1/kShareOfSmall of the budget to smaller ones. Otherwise
// large messages that are announced and then sent slowly would shut out all others.
constexpr int64_t kLarge = 64 << 10;
constexpr int64_t kShareOfSmall = 16;
// Limit of the memory of waiting requests: 1/kShareOfWaiting of the budget, but at least
// kLeastForWaiting bytes.
constexpr int64_t kShareOfWaiting = 16;
constexpr int64_t kLeastForWaiting = 1 << 20;

}  // namespace

void RequestMemory::Charge::ShrinkTo(int64_t bytes) {
  PHIMAP_CHECK(bytes >= 0 && bytes <= bytes_);
  const int64_t returned = bytes_ - bytes;
  bytes_ = bytes;
  if (returned > 0) memory_->Return(returned, answer_);
}

void RequestMemory::Charge::Add(Charge other) {
  if (other.memory_ == nullptr) return;
  PHIMAP_CHECK(memory_ == nullptr || memory_ == other.memory_);
  memory_ = other.memory_;
  bytes_ += std::exchange(other.bytes_, 0);
}

void RequestMemory::Charge::Release() {
  if (memory_ != nullptr && bytes_ > 0) memory_->Return(std::exchange(bytes_, 0), answer_);
  memory_ = nullptr;
}

std::optional<RequestMemory::Charge> RequestMemory::Take(int64_t bytes, int64_t held) {
  const int64_t limit = bytes > kLarge ? max_bytes_ - max_bytes_ / kShareOfSmall : max_bytes_;
  int64_t before = held_.load();
  do {
    if (before > held && before + bytes > limit) return NoCapacity();
  } while (!held_.compare_exchange_weak(before, before + bytes));
  Show();
  return Charge(this, bytes, /*answer=*/false);
}

std::optional<RequestMemory::Charge> RequestMemory::TakeForAnswer(int64_t bytes) {
  // A small answer that fits does not count towards answers_, because it may stay unread for long.
  const bool counts = bytes > kLarge;
  int64_t before = held_.load();
  while (!counts && before + bytes <= max_bytes_) {
    if (!held_.compare_exchange_weak(before, before + bytes)) continue;
    Show();
    return Charge(this, bytes, /*answer=*/false);
  }
  // `alone`: no other answer is counted in answers_ now. Of several concurrent attempts, only the
  // first one gets true.
  int64_t none = 0;
  const bool alone = answers_.compare_exchange_strong(none, bytes);
  do {
    if (!alone && before + bytes > max_bytes_) return NoCapacity();
  } while (!held_.compare_exchange_weak(before, before + bytes));
  if (!alone) answers_.fetch_add(bytes);
  Show();
  return Charge(this, bytes, /*answer=*/true);
}

std::nullopt_t RequestMemory::NoCapacity() {
  wanted_ns_.store(absl::ToUnixNanos(SteadyNow()), std::memory_order_relaxed);
  return std::nullopt;
}

bool RequestMemory::IsWantedSince(absl::Time since) const {
  return capacity_.waited_for() ||
         wanted_ns_.load(std::memory_order_relaxed) >= absl::ToUnixNanos(since);
}

absl::Status RequestMemory::Full(absl::string_view what, int64_t bytes) const {
  return MakeError(
      absl::StatusCode::kResourceExhausted, "REQUEST_MEMORY_FULL", "",
      absl::StrCat(what, " takes ", bytes, " bytes, but requests and answers already hold ",
                   held_.load(), " of the limit of ", max_bytes_, " (--memory_bytes)"),
      {{"actual", absl::StrCat(bytes)}, {"limit", absl::StrCat(max_bytes_)}}, kFullRetryMs);
}

RequestMemory::Charge RequestMemory::TakeUnconditionally(int64_t bytes) {
  held_.fetch_add(bytes);
  Show();
  return Charge(this, bytes, /*answer=*/false);
}

bool RequestMemory::TakeWaiting(int64_t bytes) {
  const int64_t limit = std::max(max_bytes_ / kShareOfWaiting, kLeastForWaiting);
  if (waiting_.fetch_add(bytes) + bytes <= limit) return true;
  waiting_.fetch_sub(bytes);
  return false;
}

void RequestMemory::Return(int64_t bytes, bool answer) {
  if (answer) answers_.fetch_sub(bytes);
  held_.fetch_sub(bytes);
  Show();
  capacity_.Notify();
}

void RequestMemory::Show() const {
  if (gauge_ != nullptr) gauge_->Set(static_cast<double>(held_.load(std::memory_order_relaxed)));
}

}  // namespace phimap
