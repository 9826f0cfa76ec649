#include "server/observe/http_endpoint.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/start_thread.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace phimap {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxConnections = 32;
// Maximum connections whose answer the client has not read. All others may be closed for the next.
constexpr size_t kMaxUnread = 8;
constexpr size_t kMaxRequestBytes = 8192;
constexpr std::chrono::seconds kPatience(10);

absl::Status CannotListen(const std::string& address, absl::string_view why) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kAddressNotAvailable, "http",
      absl::StrCat("cannot listen on ", address, ": ", why,
                   "; is the port in use, or does the address belong to another machine?"),
      {{"address", address}});
}

// Returns a listening socket whose operations do not block.
absl::StatusOr<int> OpenListener(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return CannotListen(address, "expected HOST:PORT");
  std::string host = address.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found)) {
    return CannotListen(address, gai_strerror(error));
  }
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int one = 1;
  const bool listening =
      fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
      bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (listening) return fd;
  if (fd >= 0) close(fd);
  return CannotListen(address, std::strerror(error));
}

int PortOf(int listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  PHIMAP_CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::string Answer(absl::string_view status, absl::string_view type, absl::string_view body) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", type,
                      "\r\nContent-Length: ", body.size(), "\r\nConnection: close\r\n\r\n", body);
}

std::string AnswerTo(const std::string& problem, const std::string& degraded = "") {
  if (!problem.empty()) return Answer("503 Service Unavailable", "text/plain", problem + "\n");
  return Answer("200 OK", "text/plain",
                degraded.empty() ? "ok\n" : absl::StrCat("ok\ndegraded: ", degraded, "\n"));
}

std::string AnswerTo(absl::string_view head, const prometheus::Collectable& metrics,
                     const HttpChecks& checks) {
  switch (JudgeHttpRequest(head)) {
    case HttpVerdict::kMetrics:
      return Answer("200 OK", "text/plain; version=0.0.4; charset=utf-8",
                    prometheus::TextSerializer().Serialize(metrics.Collect()));
    case HttpVerdict::kLive:
      return AnswerTo(checks.live());
    case HttpVerdict::kReady:
      return AnswerTo(checks.ready(), checks.degraded());
    case HttpVerdict::kNotFound:
      return Answer("404 Not Found", "text/plain",
                    "phimapd serves /metrics, /livez and /readyz here\n");
    case HttpVerdict::kMethodNotAllowed:
      return Answer("405 Method Not Allowed", "text/plain", "only GET is served\n");
    case HttpVerdict::kBadRequest:
      break;
  }
  return Answer("400 Bad Request", "text/plain", "expected an HTTP/1.1 request\n");
}

// One client: its request so far, and then the rest of the answer.
struct Connection {
  int fd = -1;
  Clock::time_point deadline;
  std::string request;
  std::string answer;
  bool answering = false;

  // Reads or writes as much as possible. Returns false when the connection is finished.
  bool Step(const prometheus::Collectable& metrics, const HttpChecks& checks) {
    if (!answering && !Read(metrics, checks)) return false;
    return !answering || Write();
  }

  bool Read(const prometheus::Collectable& metrics, const HttpChecks& checks) {
    char chunk[2048];
    const ssize_t got = recv(fd, chunk, sizeof(chunk), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    request.append(chunk, static_cast<size_t>(got));
    const size_t end = request.find("\r\n\r\n");
    if (end != std::string::npos) {
      answer = AnswerTo(absl::string_view(request).substr(0, end), metrics, checks);
      answering = true;
    } else if (request.size() > kMaxRequestBytes) {
      answer = Answer("431 Request Header Fields Too Large", "text/plain",
                      "the request is over 8192 bytes\n");
      answering = true;
    }
    return true;
  }

  bool Write() {
    const ssize_t sent = send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    answer.erase(0, static_cast<size_t>(sent));
    return !answer.empty();
  }
};

// The work of the endpoint's thread: polls the listener, the stop signal and the clients.
class PollLoop {
 public:
  PollLoop(int listener, int stop, const prometheus::Collectable& metrics, const HttpChecks& checks)
      : listener_(listener), stop_(stop), metrics_(metrics), checks_(checks) {}
  ~PollLoop() {
    for (const Connection& connection : connections_) close(connection.fd);
    close(listener_);
  }

  void Run() {
    for (;;) {
      std::vector<pollfd> fds = {{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const Connection& connection : connections_) {
        fds.push_back(
            {connection.fd, static_cast<short>(connection.answering ? POLLOUT : POLLIN), 0});
      }
      poll(fds.data(), fds.size(), connections_.empty() ? -1 : 1000);
      if (fds[0].revents != 0) return;
      Serve(fds);
      if (fds[1].revents != 0) Accept();
    }
  }

 private:
  void Serve(const std::vector<pollfd>& fds) {
    std::vector<Connection> open;
    const Clock::time_point now = Clock::now();
    for (size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = connections_[i];
      const bool ready = fds[i + 2].revents != 0;
      if (now < connection.deadline && (!ready || connection.Step(metrics_, checks_))) {
        open.push_back(std::move(connection));
      } else {
        close(connection.fd);
      }
    }
    connections_ = std::move(open);
    LimitUnread();
  }

  static bool IsUnread(const Connection& connection) { return connection.answering; }

  // Closes the oldest connection that `which` is true of. REQUIRES: there is one.
  void CloseOldest(bool (*which)(const Connection&)) {
    const auto oldest = std::find_if(connections_.begin(), connections_.end(), which);
    close(oldest->fd);
    connections_.erase(oldest);
  }

  void LimitUnread() {
    auto unread =
        static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(), IsUnread));
    for (; unread > kMaxUnread; --unread) CloseOldest(IsUnread);
  }

  void Accept() {
    int error = 0;
    while (true) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) {
        error = errno;
        break;
      }
      if (connections_.size() >= kMaxConnections) {
        CloseOldest([](const Connection& connection) { return !IsUnread(connection); });
      }
      Connection connection{.fd = fd, .deadline = Clock::now() + kPatience};
      // The request has often arrived already. The connection is then answered, and later
      // connections cannot displace it.
      if (connection.Step(metrics_, checks_)) {
        connections_.push_back(std::move(connection));
        LimitUnread();
      } else {
        close(fd);
      }
    }
    // While no descriptor is free, the listener stays readable, and without a pause the loop would
    // spin.
    if (error == EMFILE || error == ENFILE) poll(nullptr, 0, 100);
  }

  const int listener_;
  const int stop_;
  const prometheus::Collectable& metrics_;
  const HttpChecks& checks_;
  std::vector<Connection> connections_;
};

}  // namespace

HttpVerdict JudgeHttpRequest(absl::string_view head) {
  const absl::string_view line = head.substr(0, head.find("\r\n"));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.") ||
      !absl::StartsWith(words[1], "/")) {
    return HttpVerdict::kBadRequest;
  }
  const absl::string_view path = words[1].substr(0, words[1].find('?'));
  HttpVerdict verdict = HttpVerdict::kNotFound;
  if (path == "/metrics") verdict = HttpVerdict::kMetrics;
  if (path == "/livez") verdict = HttpVerdict::kLive;
  if (path == "/readyz") verdict = HttpVerdict::kReady;
  if (verdict == HttpVerdict::kNotFound) return verdict;
  return words[0] == "GET" ? verdict : HttpVerdict::kMethodNotAllowed;
}

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Listen(
    const std::string& address, std::shared_ptr<const prometheus::Collectable> metrics,
    HttpChecks checks) {
  PHIMAP_ASSIGN_OR_RETURN(const int listener, OpenListener(address));
  return absl::WrapUnique(
      new HttpEndpoint(listener, PortOf(listener), std::move(metrics), std::move(checks)));
}

HttpEndpoint::HttpEndpoint(int listener, int port,
                           std::shared_ptr<const prometheus::Collectable> metrics,
                           HttpChecks checks)
    : port_(port) {
  if (pipe2(stop_, O_CLOEXEC) != 0) {
    EndForLackOf("a pipe for metrics and probes", errno,
                 "see the limit of open files (RLIMIT_NOFILE, ulimit -n)");
  }
  thread_ = StartThread(
      "metrics and probes",
      [listener, stop = stop_[0], metrics = std::move(metrics), checks = std::move(checks)] {
        PollLoop(listener, stop, *metrics, checks).Run();
      });
}

HttpEndpoint::~HttpEndpoint() {
  close(stop_[1]);
  thread_.join();
  close(stop_[0]);
}

}  // namespace phimap
