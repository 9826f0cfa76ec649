#include "client/cpp/revision_memory.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "core/status/error.h"

namespace phimap::client {
namespace {

constexpr char kTold[] = "phimap-revision";
constexpr char kAsked[] = "phimap-min-revision";

}  // namespace

bool IsOfAnotherHistory(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return false;
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail.has_value() && detail->reason == reason::kRevisionHistoryMismatch;
}

RevisionMemory::Asked RevisionMemory::AddTo(grpc::ClientContext& context) const {
  Asked asked = AskingForNone();
  if (!known_.load(std::memory_order_acquire)) return asked;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked = {revision_, history_};
  }
  if (!asked.revision.empty()) context.AddMetadata(kAsked, asked.revision);
  return asked;
}

RevisionMemory::Asked RevisionMemory::AskingForNone() const { return {"", history_.load()}; }

void RevisionMemory::Note(const grpc::ClientContext& context, const absl::Status& status,
                          const Asked& asked) {
  if (status.ok()) {
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto told = trailers.find(kTold);
    if (told != trailers.end()) Learn({told->second.data(), told->second.size()}, asked.history);
    return;
  }
  if (!IsOfAnotherHistory(status)) return;
  int64_t history = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Another thread may already have learned of the new history.
    if (asked.revision != revision_) return;
    history = ++history_;
    revision_.clear();
    known_.store(false, std::memory_order_release);
  }
  const auto metadata = DetailOf(status)->metadata;
  if (const auto now = metadata.find("expected"); now != metadata.end()) {
    Learn(now->second, history);
  }
}

void RevisionMemory::Learn(absl::string_view revision, int64_t history) {
  const size_t colon = revision.rfind(':');
  int64_t number = 0;
  if (colon == revision.npos || colon == 0 ||
      !absl::SimpleAtoi(revision.substr(colon + 1), &number)) {
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (history != history_ || (!revision_.empty() && number <= number_)) return;
  revision_ = std::string(revision);
  number_ = number;
  known_.store(true, std::memory_order_release);
}

}  // namespace phimap::client
