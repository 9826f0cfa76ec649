// A collector of traces that speaks HTTP over a real socket, and answers as a test tells it to.
#ifndef PHIMAP_TESTS_SERVER_TRACE_COLLECTOR_H_
#define PHIMAP_TESTS_SERVER_TRACE_COLLECTOR_H_

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "opentelemetry/trace.pb.h"

namespace phimap::testing {

class Collector {
 public:
  struct Request {
    // The request line and the headers.
    std::string head;
    opentelemetry::ExportTraceServiceRequest body;
  };

  Collector();
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // "http://127.0.0.1:PORT".
  std::string url() const;
  // Answers requests with this status, such as "503 Service Unavailable", from now on. `headers`:
  // lines that end with "\r\n". At the start it answers 200 with an empty body.
  void AnswerWith(absl::string_view status, absl::string_view body = "",
                  absl::string_view headers = "") ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads requests and answers none, until Release.
  void Hold() ABSL_LOCKS_EXCLUDED(mutex_);
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until `count` requests have arrived, and returns all.
  std::vector<Request> AwaitRequests(size_t count) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until `count` spans have arrived, and returns all.
  std::vector<opentelemetry::Span> AwaitSpans(size_t count);

 private:
  void Run();
  // Reads one request of the connection and answers it. False at its end.
  bool Serve(int connection, std::string& buffer) ABSL_LOCKS_EXCLUDED(mutex_);

  const int listener_;
  int port_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::string answer_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // The open connection, or -1.
  int connection_ ABSL_GUARDED_BY(mutex_) = -1;
  std::vector<Request> requests_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_TRACE_COLLECTOR_H_
