// A client that a stream waits for, and for how long.
#ifndef PHIMAP_SERVER_RPC_IDLE_ALARM_H_
#define PHIMAP_SERVER_RPC_IDLE_ALARM_H_

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/alarm.h"

namespace phimap {

// Looks now and then whether the call has waited for its client for longer than the limit, and
// tells it once. Costs a message nothing.
class IdleAlarm {
 public:
  // Since when the call waits; InfiniteFuture while it does not; nullopt once it has ended.
  using WaitingSince = std::function<std::optional<absl::Time>()>;

  // Both functions are called on threads of gRPC, one at a time, while `call`, which the alarm is a
  // member of, is held; never after it has gone.
  IdleAlarm(absl::Duration limit, std::weak_ptr<void> call, WaitingSince since,
            std::function<void()> silent);
  IdleAlarm(const IdleAlarm&) = delete;
  IdleAlarm& operator=(const IdleAlarm&) = delete;

 private:
  void Set(absl::Duration wait);
  void Look();

  const absl::Duration limit_;
  const std::weak_ptr<void> call_;
  const WaitingSince since_;
  const std::function<void()> silent_;
  // Of the constructor, then of its own callback.
  std::unique_ptr<grpc::Alarm> alarm_;
};

// DEADLINE_EXCEEDED (IDLE_STREAM): a client that sends a stream was silent for too long.
absl::Status SilentStream(absl::Duration limit);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_IDLE_ALARM_H_
