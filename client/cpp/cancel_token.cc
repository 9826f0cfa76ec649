#include "client/cpp/cancel_token.h"

#include <algorithm>
#include <utility>

namespace phimap::client {

CancelToken::Registration::~Registration() {
  const std::lock_guard<std::mutex> lock(token_->mutex_);
  token_->callbacks_.erase(id_);
}

void CancelToken::Cancel() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  for (const auto& [id, callback] : callbacks_) callback();
  changed_.notify_all();
}

bool CancelToken::cancelled() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cancelled_;
}

bool CancelToken::WaitFor(absl::Duration duration) const {
  std::unique_lock<std::mutex> lock(mutex_);
  // wait_for adds the duration to the current time, so an infinite duration would overflow.
  const absl::Duration finite = std::min(duration, absl::Hours(24 * 365));
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(finite), [this] { return cancelled_; });
}

CancelToken::Registration CancelToken::OnCancel(std::function<void()> callback) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t id = next_id_++;
  if (cancelled_) {
    callback();
  } else {
    callbacks_.emplace(id, std::move(callback));
  }
  return Registration(this, id);
}

}  // namespace phimap::client
