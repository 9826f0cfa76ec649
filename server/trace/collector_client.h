// Sends traces to a collector: the Trace service of OTLP over HTTP, with protobuf
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp).
#ifndef PHIMAP_SERVER_TRACE_COLLECTOR_CLIENT_H_
#define PHIMAP_SERVER_TRACE_COLLECTOR_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// Returns the URL to which traces are sent, for the value of `flag`: http://HOST:PORT or
// https://HOST:PORT, to which OTLP's path /v1/traces is added, or such a URL with another path.
// INVALID_ARGUMENT (FLAG_INVALID) for anything else. A user or password is refused, because
// everybody can read the command line of a process. Pure.
absl::StatusOr<std::string> CollectorUrl(absl::string_view flag, absl::string_view text);

// How a collector took one request.
struct CollectorAnswer {
  enum class Kind {
    // It took all spans but `rejected`.
    kTaken,
    // It will never take this request.
    kRefused,
    // It is away or busy: the same request may be sent again, after `retry_after`.
    kTryLater,
  };
  Kind kind = Kind::kTryLater;
  int64_t rejected = 0;
  // Zero if the collector did not say.
  std::chrono::seconds retry_after{0};
  // What went wrong, for the log; "" if nothing did.
  std::string error;
};

// A connection to a collector, kept from one request to the next.
//
// No proxy of the environment is used and no redirect followed: the operator's flag alone decides
// where traces go. Thread-safety: only Wake may be called from another thread.
class CollectorClient {
 public:
  using Clock = std::chrono::steady_clock;

  // FAILED_PRECONDITION if libcurl cannot be loaded. `url`: as CollectorUrl returned it. `agent`:
  // the name and the version of this program.
  static absl::StatusOr<std::unique_ptr<CollectorClient>> Make(const std::string& url,
                                                               const std::string& agent);
  ~CollectorClient();
  CollectorClient(const CollectorClient&) = delete;
  CollectorClient& operator=(const CollectorClient&) = delete;

  // Sends an ExportTraceServiceRequest, and waits for its answer until the time that `give_up_at`
  // returns. `give_up_at` is asked again after each Wake.
  CollectorAnswer Post(const std::string& request,
                       const std::function<Clock::time_point()>& give_up_at);
  // Makes a Post that is waiting ask `give_up_at`, or the next one. Any thread.
  void Wake();

 private:
  struct Handles;
  explicit CollectorClient(std::unique_ptr<Handles> handles);

  const std::unique_ptr<Handles> handles_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRACE_COLLECTOR_CLIENT_H_
