#include "server/acceptor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// What the store, builds, the metrics endpoint (32 connections) and the reading of tokens and
// certificates may have open at a time.
constexpr rlim_t kReserve = 64;
constexpr int kPauseMs = 100;
constexpr auto kQuiet = std::chrono::seconds(10);

}  // namespace

int MaxConnectionDescriptor() {
  rlimit limit{};
  PHIMAP_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlim_t files = std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int>::max());
  return static_cast<int>(files - std::min(kReserve, files / 2));
}

Acceptor::Acceptor(std::vector<Door> doors, int max_descriptor, const ConnectionMetrics& metrics,
                   const Logger& logger)
    : doors_(std::move(doors)),
      max_descriptor_(max_descriptor),
      metrics_(metrics),
      logger_(logger) {
  PHIMAP_CHECK(pipe2(stop_, O_CLOEXEC) == 0);
  thread_ = std::thread([this] { Run(); });
}

Acceptor::~Acceptor() {
  Stop();
  close(stop_[0]);
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  close(stop_[1]);
  thread_.join();
  doors_.clear();
}

void Acceptor::Run() {
  std::vector<pollfd> waiting = {{stop_[0], POLLIN, 0}};
  for (const Door& door : doors_) waiting.push_back({door.socket.fd(), POLLIN, 0});
  while (true) {
    poll(waiting.data(), waiting.size(), -1);
    if (waiting[0].revents != 0) return;
    bool later = false;
    for (size_t i = 0; i < doors_.size(); ++i) {
      if (waiting[i + 1].revents == 0) continue;
      later |= AcceptAll(doors_[i]) == Verdict::kTryLater;
    }
    // The listener stays readable: without a pause this would be a busy loop.
    if (later && !Pause()) return;
  }
}

Acceptor::Verdict Acceptor::AcceptAll(const Door& door) {
  // Of one door in a row, lest the others wait for a flood to end.
  constexpr int kMaxInARow = 64;
  for (int i = 0; i < kMaxInARow; ++i) {
    const int connection =
        accept4(door.socket.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= max_descriptor_) {
      close(connection);
      Refused();
    } else if (connection >= 0) {
      metrics_.accepted->Increment();
      door.take(connection);
    } else if (errno == EAGAIN) {
      return Verdict::kDone;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      // EMFILE, ENFILE, ENOMEM …, and errors of the network: they pass.
      Warn("cannot_accept", std::strerror(errno));
      return Verdict::kTryLater;
    }
  }
  return Verdict::kDone;
}

void Acceptor::Refused() {
  metrics_.refused->Increment();
  Warn("connections_refused", "too many are open");
}

bool Acceptor::Pause() {
  pollfd stop = {stop_[0], POLLIN, 0};
  return poll(&stop, 1, kPauseMs) == 0;
}

void Acceptor::Warn(const char* event, const char* reason) {
  const auto now = std::chrono::steady_clock::now();
  if (now < quiet_until_) return;
  quiet_until_ = now + kQuiet;
  logger_.Log(LogLevel::kWarning, event,
              {{"reason", reason},
               {"descriptors_for_connections", absl::StrCat(max_descriptor_)},
               {"help", "raise the limit of open files (RLIMIT_NOFILE, LimitNOFILE=)"}});
}

}  // namespace phimap
