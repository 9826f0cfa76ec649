// From a request's head to its call: which method, whether the caller may, and whether the server
// takes calls at all; all of it before a byte of the message is taken.
//
// Thread-safety: Add while the server is being put together; afterwards OnRequest on any loop's
// thread, StopTaking from any.
#ifndef PHIMAP_SERVER_CALLS_DISPATCHER_H_
#define PHIMAP_SERVER_CALLS_DISPATCHER_H_

#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "server/calls/call.h"
#include "server/calls/method.h"
#include "server/observe/metrics.h"

namespace phimap {

// Maximum concurrent calls of a connection to methods that need no role, where other methods do.
inline constexpr int kMaxOpenCalls = 16;

class Dispatcher final : public StreamAcceptor {
 public:
  // Keyed by the names of a service's methods.
  using Openers = std::map<std::string, Method::Open>;

  // Both outlive the dispatcher.
  Dispatcher(const CallEnvironment& environment, Metrics& metrics);

  // Serves a service. A method without an opener is answered with UNIMPLEMENTED, and counted.
  // REQUIRES: each opener belongs to a method of the service, and each method has a role
  // (server/auth/method_roles.cc), or the service is `open_to_all`, as health is: then at most 16
  // requests of a connection are under way. Requests over `max_request_bytes`, or the server's
  // limit, are refused.
  enum class Access { kByRole, kOpenToAll };
  void Add(const google::protobuf::ServiceDescriptor& service, const Openers& openers,
           Access access = Access::kByRole,
           int64_t max_request_bytes = std::numeric_limits<int64_t>::max());

  // Lets callers name revisions, and tells them; without it they are not looked at. Before Add.
  // `revisions` outlives the dispatcher.
  void SetRevisions(Revisions& revisions) { revisions_ = &revisions; }

  // The names of the services.
  const std::vector<std::string>& services() const { return services_; }

  // Refuses from now on: UNAVAILABLE (SERVER_SHUTTING_DOWN, a retry delay). Health checks are still
  // answered.
  void StopTaking() { taking_.store(false); }

  void OnRequest(Stream& stream, const RequestHead& head, bool ended) override;

 private:
  struct Entry {
    Method method;
    Access access;
  };
  // The method of a request that can be answered as gRPC; null after it was answered otherwise.
  const Entry* Find(Stream& stream, const RequestHead& head);
  absl::Status Admit(const Stream& stream, const RequestHead& head, const Entry& entry) const;
  // `wanted`, unless the call need not wait for it.
  absl::StatusOr<absl::string_view> UnlessKnown(absl::string_view wanted) const;
  void Refuse(Stream& stream, const Method& method, const absl::Status& status) const;
  const Entry& Unknown() const { return *unknown_; }

  const CallEnvironment& environment_;
  Metrics& metrics_;
  Revisions* revisions_ = nullptr;
  std::vector<std::string> services_;
  // Keyed by path: "/package.Service/Method".
  absl::flat_hash_map<std::string, std::unique_ptr<Entry>> methods_;
  // Counts calls to unknown methods.
  std::unique_ptr<Entry> unknown_;
  // Calls that need no role, where others do, by connection.
  CallerShares open_calls_{kMaxOpenCalls};
  std::atomic<bool> taking_{true};
};

// For Dispatcher::Openers: a call of the class `T`, made from the start and `arguments`, which
// outlive the server.
template <typename T, typename... Arguments>
Method::Open Opens(Arguments&... arguments) {
  return [&arguments...](const CallStart& start) {
    return std::static_pointer_cast<Call>(std::make_shared<T>(start, arguments...));
  };
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_DISPATCHER_H_
