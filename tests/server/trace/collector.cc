#include "tests/server/trace/collector.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"

namespace phimap::testing {
namespace {

constexpr char kEndOfHead[] = "\r\n\r\n";

// Returns the value of Content-Length, of which a request with a body has one.
size_t LengthIn(const std::string& head) {
  for (const absl::string_view line : absl::StrSplit(head, "\r\n")) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    size_t length = 0;
    if (absl::EqualsIgnoreCase(parts.first, "content-length") &&
        absl::SimpleAtoi(absl::StripAsciiWhitespace(parts.second), &length)) {
      return length;
    }
  }
  return 0;
}

}  // namespace

Collector::Collector() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  PHIMAP_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&name), size) == 0);
  PHIMAP_CHECK(listen(listener_, 16) == 0);
  PHIMAP_CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size) == 0);
  port_ = ntohs(name.sin_port);
  AnswerWith("200 OK");
  thread_ = std::thread([this] { Run(); });
}

Collector::~Collector() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.NotifyAll();
    shutdown(listener_, SHUT_RDWR);
    if (connection_ >= 0) shutdown(connection_, SHUT_RDWR);
  }
  thread_.join();
  close(listener_);
}

std::string Collector::url() const { return absl::StrCat("http://127.0.0.1:", port_); }

void Collector::AnswerWith(absl::string_view status, absl::string_view body,
                           absl::string_view headers) {
  MutexLock lock(&mutex_);
  answer_ = absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: application/x-protobuf\r\n",
                         headers, "Content-Length: ", body.size(), kEndOfHead, body);
}

void Collector::Hold() {
  MutexLock lock(&mutex_);
  held_ = true;
}

void Collector::Release() {
  MutexLock lock(&mutex_);
  held_ = false;
  changed_.NotifyAll();
}

std::vector<Collector::Request> Collector::AwaitRequests(size_t count) {
  MutexLock lock(&mutex_);
  while (requests_.size() < count) changed_.Wait(&mutex_);
  return requests_;
}

std::vector<opentelemetry::Span> Collector::AwaitSpans(size_t count) {
  for (size_t requests = 1;; ++requests) {
    std::vector<opentelemetry::Span> spans;
    for (const Request& request : AwaitRequests(requests)) {
      for (const auto& resource : request.body.resource_spans()) {
        for (const auto& scope : resource.scope_spans()) {
          spans.insert(spans.end(), scope.spans().begin(), scope.spans().end());
        }
      }
    }
    if (spans.size() >= count) return spans;
  }
}

void Collector::Run() {
  while (true) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    {
      MutexLock lock(&mutex_);
      if (ending_ || connection < 0) {
        if (connection >= 0) close(connection);
        return;
      }
      connection_ = connection;
    }
    std::string buffer;
    while (Serve(connection, buffer)) {
    }
    MutexLock lock(&mutex_);
    connection_ = -1;
    close(connection);
  }
}

bool Collector::Serve(int connection, std::string& buffer) {
  const auto read_more = [&] {
    char bytes[4096];
    const ssize_t got = recv(connection, bytes, sizeof(bytes), 0);
    if (got > 0) buffer.append(bytes, static_cast<size_t>(got));
    return got > 0;
  };
  while (!absl::StrContains(buffer, kEndOfHead)) {
    if (!read_more()) return false;
  }
  const size_t end = buffer.find(kEndOfHead) + sizeof(kEndOfHead) - 1;
  Request request{buffer.substr(0, end), {}};
  const size_t length = LengthIn(request.head);
  while (buffer.size() < end + length) {
    if (!read_more()) return false;
  }
  PHIMAP_CHECK(request.body.ParseFromString(buffer.substr(end, length)));
  buffer.erase(0, end + length);
  MutexLock lock(&mutex_);
  requests_.push_back(std::move(request));
  changed_.NotifyAll();
  while (held_ && !ending_) changed_.Wait(&mutex_);
  return send(connection, answer_.data(), answer_.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(answer_.size());
}

}  // namespace phimap::testing
