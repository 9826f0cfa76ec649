#include "client/cpp/revision_memory.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap::client {
namespace {

constexpr char kTold[] = "phimap-revision";
constexpr char kAsked[] = "phimap-min-revision";
constexpr char kOfAnotherHistory[] = "REVISION_HISTORY_MISMATCH";

}  // namespace

bool IsOfAnotherHistory(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return false;
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail.has_value() && detail->reason == kOfAnotherHistory;
}

std::string RevisionMemory::AddTo(grpc::ClientContext& context) const {
  if (!known_.load(std::memory_order_acquire)) return "";
  std::string epoch;
  int64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    epoch = epoch_;
    number = number_;
  }
  if (!epoch.empty()) context.AddMetadata(kAsked, absl::StrCat(epoch, ":", number));
  return epoch;
}

void RevisionMemory::Note(const grpc::ClientContext& context, const absl::Status& status,
                          absl::string_view asked) {
  if (status.ok()) {
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto told = trailers.find(kTold);
    if (told != trailers.end()) Learn({told->second.data(), told->second.size()}, asked);
    return;
  }
  if (!IsOfAnotherHistory(status)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  // Another thread may already have learned of the new history.
  if (asked != epoch_) return;
  epoch_.clear();
  known_.store(false, std::memory_order_release);
}

void RevisionMemory::Learn(absl::string_view revision, absl::string_view asked) {
  const size_t colon = revision.rfind(':');
  int64_t number = 0;
  if (colon == revision.npos || colon == 0 ||
      !absl::SimpleAtoi(revision.substr(colon + 1), &number)) {
    return;
  }
  const absl::string_view epoch = revision.substr(0, colon);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (epoch == epoch_ ? number <= number_ : epoch == asked) return;
  epoch_ = std::string(epoch);
  number_ = number;
  known_.store(true, std::memory_order_release);
}

}  // namespace phimap::client
