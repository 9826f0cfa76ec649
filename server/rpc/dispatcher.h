// Creates calls from the heads of requests. Before any byte of a message is read, the dispatcher
// finds the method and checks that the caller may call it and that the server accepts calls.
//
// Thread-safety: Add may be called only while the server is being assembled. Afterwards OnRequest
// may be called on any loop's thread, and StopAccepting from any thread.
#ifndef PHIMAP_SERVER_RPC_DISPATCHER_H_
#define PHIMAP_SERVER_RPC_DISPATCHER_H_

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
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/request_id.h"
#include "server/rpc/call.h"

namespace phimap {

// Maximum concurrent calls of one connection to open methods (Access::kOpenToAll), on a server
// whose other methods require a role.
inline constexpr int kMaxOpenCalls = 16;

// A call that may begin, and what it begins with.
struct Admission {
  const Method* method;
  absl::Time deadline;
  CallerShares::Share share;
  PrincipalPointer principal;
  // Revision that must be known before the call begins; "" if none is required, or it is known.
  std::string min_revision;
  // Null if the caller has sent no revision.
  Revisions* revisions;
  CallerIds ids;
};

// Returns the ids that the caller of a call has sent. A header that is sent twice, or that cannot
// be used, counts as absent: ids help to find a call, and are no reason to refuse it.
CallerIds CallerIdsOf(const RequestHead& head);

class Dispatcher final : public StreamAcceptor {
 public:
  // Openers of a service's methods, keyed by method name.
  using Openers = std::map<std::string, Method::Open>;

  // Both arguments must outlive the dispatcher.
  Dispatcher(const CallEnvironment& environment, Metrics& metrics);

  // Serves a service. Calls of a method without an opener are counted and answered with
  // UNIMPLEMENTED. Requests larger than `max_request_bytes`, or than the server's limit, are
  // rejected. If `access` is kOpenToAll, as for health checks, a connection may have at most 16
  // calls in progress. REQUIRES: each opener belongs to a method of the service, and each method
  // has a role (proto/methods/method_facts.h) unless `access` is kOpenToAll.
  enum class Access { kByRole, kOpenToAll };
  void Add(const google::protobuf::ServiceDescriptor& service, const Openers& openers,
           Access access = Access::kByRole,
           int64_t max_request_bytes = std::numeric_limits<int64_t>::max());

  // Lets callers require revisions, and reports revisions to them. If this is not called, callers'
  // revisions are ignored. Must be called before Add. `revisions` must outlive the dispatcher.
  void SetRevisions(Revisions& revisions) { revisions_ = &revisions; }

  // Full names of the services.
  const std::vector<std::string>& services() const { return services_; }

  // Rejects calls from now on with UNAVAILABLE (SERVER_SHUTTING_DOWN, with a retry delay). Health
  // checks are still answered.
  void StopAccepting() { accepting_.store(false); }

  void OnRequest(Stream& stream, const RequestHead& head, bool ended) override;

  // For the doors of other protocols, which then answer a refusal themselves. Admits a call of the
  // method with this path, "/package.Service/Method", under the same rules as OnRequest, from the
  // same headers. A refusal is counted and logged here, with `request_id`.
  absl::StatusOr<Admission> Admit(Stream& stream, const RequestHead& head, absl::string_view path,
                                  const RequestId& request_id);
  // Begins an admitted call, which belongs to `stream` from then on. `parser`: reads its request,
  // if that is no protobuf message.
  void Begin(Stream& stream, Admission admission,
             std::shared_ptr<RequestParser> parser = nullptr) const;
  const CallEnvironment& environment() const { return environment_; }

 private:
  struct Entry {
    Method method;
    Access access;
  };
  // Answers a request that is not gRPC with an HTTP status and a text.
  void AnswerHttp(Stream& stream, const RequestHead& head, int status, absl::string_view message);
  // Returns the entry of the request's method. If the request is not gRPC, answers it in HTTP and
  // returns null.
  const Entry* Find(Stream& stream, const RequestHead& head);
  const Entry& EntryOf(absl::string_view path) const;
  absl::StatusOr<Admission> AdmitTo(Stream& stream, const RequestHead& head, absl::string_view path,
                                    const Entry& entry);
  // Returns who calls if the caller may call the method.
  absl::StatusOr<Admitted> Check(const Caller& caller, const RequestHead& head,
                                 absl::string_view path, const Entry& entry, absl::Time now) const;
  // Counts the call. RESOURCE_EXHAUSTED (CALL_LIMIT_REACHED) if its caller has too many.
  absl::StatusOr<CallerShares::Share> ShareOf(const Peer& peer, const Caller& caller,
                                              const Entry& entry, const Admitted& admitted);
  void CountRefusal(const Stream& stream, const RequestHead& head, const Entry& entry,
                    const absl::Status& status, const RequestId& request_id) const;

  const CallEnvironment& environment_;
  Metrics& metrics_;
  Revisions* revisions_ = nullptr;
  std::vector<std::string> services_;
  // Keyed by path: "/package.Service/Method".
  absl::flat_hash_map<std::string, std::unique_ptr<Entry>> methods_;
  // Counts calls to unknown methods.
  std::unique_ptr<Entry> unknown_;
  // Counts calls to open methods by connection, on a server whose other methods require a role.
  CallerShares open_calls_{kMaxOpenCalls};
  std::atomic<bool> accepting_{true};
  Seldom http_logs_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_DISPATCHER_H_
