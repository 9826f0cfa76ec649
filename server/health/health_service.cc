#include "server/health/health_service.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "google/protobuf/descriptor.h"
#include "server/calls/call_errors.h"
#include "server/calls/stream_call.h"
#include "server/calls/unary_call.h"

namespace phimap {

HealthStatus::HealthStatus(const std::vector<std::string>& services) {
  serving_.emplace("", false);
  for (const std::string& service : services) serving_.emplace(service, false);
}

HealthStatus::~HealthStatus() { PHIMAP_CHECK(watchers_.empty()); }

void HealthStatus::SetServing(bool serving) {
  MutexLock lock(&mutex_);
  for (auto& [name, now] : serving_) now = serving;
  TellAll();
}

void HealthStatus::SetServing(absl::string_view service, bool serving) {
  MutexLock lock(&mutex_);
  const auto found = serving_.find(service);
  PHIMAP_CHECK(found != serving_.end());
  found->second = serving;
  TellAll();
}

HealthStatus::Serving HealthStatus::Of(absl::string_view service) const {
  using Response = grpc::health::v1::HealthCheckResponse;
  MutexLock lock(&mutex_);
  const auto found = serving_.find(service);
  if (found == serving_.end()) return Response::SERVICE_UNKNOWN;
  return found->second ? Response::SERVING : Response::NOT_SERVING;
}

void HealthStatus::EndWatches() {
  MutexLock lock(&mutex_);
  watches_ended_ = true;
  TellAll();
}

bool HealthStatus::watches_ended() const {
  MutexLock lock(&mutex_);
  return watches_ended_;
}

void HealthStatus::Watch(Watcher& watcher) {
  MutexLock lock(&mutex_);
  watchers_.insert(&watcher);
}

void HealthStatus::Unwatch(Watcher& watcher) {
  MutexLock lock(&mutex_);
  watchers_.erase(&watcher);
}

// Runs under the lock, so that no watcher is called after its Unwatch has returned.
void HealthStatus::TellAll() {
  for (Watcher* const watcher : watchers_) watcher->OnHealthChange();
}

namespace {

// Maximum size of a request, which only names a service. Requests this small are accepted even
// without capacity, so that health checks always work.
constexpr int64_t kMaxHealthRequestBytes = 4 << 10;

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Maximum time for the client to send its request, or to read an answer.
constexpr absl::Duration kIdleLimit = absl::Minutes(1);

class CheckCall final : public TypedUnaryCall<HealthCheckRequest, HealthCheckResponse> {
 public:
  CheckCall(const CallStart& start, const HealthStatus& status)
      : TypedUnaryCall(start), status_(status) {}

 private:
  void Start() override {
    const HealthStatus::Serving serving = status_.Of(request().service());
    if (serving != HealthCheckResponse::SERVICE_UNKNOWN) {
      response().set_status(serving);
      return Finish(absl::OkStatus());
    }
    Finish(MakeError(absl::StatusCode::kNotFound, "SERVICE_UNKNOWN", "service",
                     absl::StrCat("this server has no service ", Quoted(request().service()),
                                  "; expected a full name such as \"phimap.v1.TransformService\", "
                                  "or nothing for the server as a whole")));
  }

  const HealthStatus& status_;
};

class WatchCall final : public TypedStreamCall<HealthCheckRequest>, private HealthStatus::Watcher {
 public:
  WatchCall(const CallStart& start, HealthStatus& status)
      : TypedStreamCall(start), status_(status) {}

 private:
  void Start() override {
    SetIdleLimit(kIdleLimit);
    ReadNext();
  }
  // Watches before Tell reads the status, so that no change is missed in between.
  void OnRequest() override {
    status_.Watch(*this);
    Tell();
  }
  void OnRequestsEnd() override { Finish(WrongMessageCount(request().GetTypeName(), "none")); }
  void OnWritten() override { Tell(); }
  void OnHealthChange() override {
    Post([this] { Tell(); });
  }
  void OnEnd(const absl::Status&) override { status_.Unwatch(*this); }

  // Sends the status if the client does not know it yet. If the status changes faster than the
  // client reads, only the last change is sent.
  void Tell() {
    if (finishing()) return;
    const bool ended = status_.watches_ended();
    const HealthStatus::Serving serving = status_.Of(request().service());
    if (!writing() && told_ != serving) {
      told_ = serving;
      HealthCheckResponse response;
      response.set_status(serving);
      Write(response);
    }
    if (ended) Finish(ShuttingDown());
  }

  HealthStatus& status_;
  std::optional<HealthStatus::Serving> told_;
};

}  // namespace

void AddHealthService(HealthStatus& status, Dispatcher& dispatcher) {
  const google::protobuf::FileDescriptor* const file = HealthCheckRequest::descriptor()->file();
  dispatcher.Add(*file->FindServiceByName("Health"),
                 {{"Check", Opens<CheckCall>(status)}, {"Watch", Opens<WatchCall>(status)}},
                 Dispatcher::Access::kOpenToAll, kMaxHealthRequestBytes);
}

}  // namespace phimap
