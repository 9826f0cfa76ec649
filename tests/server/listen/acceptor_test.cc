#include "server/acceptor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/sync/mutex.h"
#include "tests/server/support/client_socket.h"

namespace phimap::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kNoLimit = std::numeric_limits<int>::max();

// Takes all descriptors that this process may have, until it is destroyed.
class Exhaustion {
 public:
  Exhaustion() {
    PHIMAP_CHECK(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit few{.rlim_cur = 256, .rlim_max = before_.rlim_max};
    PHIMAP_CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    for (int fd; (fd = dup(STDIN_FILENO)) >= 0;) taken_.push_back(fd);
    PHIMAP_CHECK(errno == EMFILE && !taken_.empty());
  }
  ~Exhaustion() {
    for (const int fd : taken_) close(fd);
    PHIMAP_CHECK(setrlimit(RLIMIT_NOFILE, &before_) == 0);
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

// What was logged.
class Lines {
 public:
  void Append(absl::string_view line) {
    MutexLock lock(&mutex_);
    absl::StrAppend(&text_, line);
  }
  std::string text() {
    MutexLock lock(&mutex_);
    return text_;
  }

 private:
  Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

class AcceptorTest : public ::testing::Test {
 protected:
  // A door that counts who comes in.
  Door MakeDoor(std::atomic<int>& entered, int* port) {
    auto sockets = ListeningSocket::Tcp("127.0.0.1:0");
    PHIMAP_CHECK(sockets.ok());
    *port = (*sockets)[0].port();
    return {std::move((*sockets)[0]), [&entered](int connection) {
              close(connection);
              ++entered;
            }};
  }
  std::vector<Door> OneDoor() {
    std::vector<Door> doors;
    doors.push_back(MakeDoor(entered_, &port_));
    return doors;
  }

  prometheus::Registry registry_;
  const ConnectionMetrics metrics_{registry_};
  Lines log_;
  const Logger logger_{LogLevel::kInfo, [this](absl::string_view line) { log_.Append(line); }};
  std::atomic<int> entered_{0};
  int port_ = 0;
};

TEST_F(AcceptorTest, HandsConnectionsOfEveryDoorOver) {
  std::atomic<int> others{0};
  int other_port = 0;
  std::vector<Door> doors = OneDoor();
  doors.push_back(MakeDoor(others, &other_port));
  const Acceptor acceptor(std::move(doors), kNoLimit, metrics_, logger_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ClientSocket().Connect(port_), 0);
    EXPECT_EQ(ClientSocket().Connect(other_port), 0);
  }
  while (entered_ < 3 || others < 3) std::this_thread::yield();
  EXPECT_EQ(metrics_.accepted->Value(), 6);
  EXPECT_EQ(metrics_.refused->Value(), 0);
}

TEST_F(AcceptorTest, GoesOnWhenDescriptorsRanOut) {
  const Acceptor acceptor(OneDoor(), kNoLimit, metrics_, logger_);
  ClientSocket client;
  ClientSocket another;
  bool connected = false;
  int entered_meanwhile = -1;
  {
    // Only what is not polymorphic, and no assertion: UndefinedBehaviorSanitizer opens a pipe to
    // look at a table of virtual functions.
    Lines& log = log_;
    const std::atomic<int>& entered = entered_;
    const int port = port_;
    const Exhaustion nothing_left;
    connected = client.Connect(port) == 0 && another.Connect(port) == 0;
    while (connected && log.text().empty()) std::this_thread::yield();
    entered_meanwhile = entered;
  }
  ASSERT_TRUE(connected);
  EXPECT_EQ(entered_meanwhile, 0);
  EXPECT_THAT(log_.text(), HasSubstr("cannot_accept reason=\"Too many open files\""));
  while (entered_ < 2) std::this_thread::yield();
  EXPECT_EQ(ClientSocket().Connect(port_), 0);
  while (entered_ < 3) std::this_thread::yield();
}

TEST_F(AcceptorTest, WhatComesBeyondTheLimitIsHungUpOnAtOnceAndLoggedOnce) {
  const Acceptor acceptor(OneDoor(), /*max_descriptor=*/0, metrics_, logger_);
  for (int i = 0; i < 5; ++i) {
    ClientSocket client;
    ASSERT_EQ(client.Connect(port_), 0);
    client.AwaitHangUp();
  }
  while (metrics_.refused->Value() < 5) std::this_thread::yield();
  EXPECT_EQ(entered_, 0);
  const std::string log = log_.text();
  EXPECT_EQ(log.find("connections_refused"), log.rfind("connections_refused"));
  EXPECT_THAT(log, HasSubstr("connections_refused"));
}

TEST_F(AcceptorTest, AStoppedOneIsNotThere) {
  Acceptor acceptor(OneDoor(), kNoLimit, metrics_, logger_);
  ASSERT_EQ(ClientSocket().Connect(port_), 0);
  acceptor.Stop();
  EXPECT_EQ(ClientSocket().Connect(port_), ECONNREFUSED);
  acceptor.Stop();
}

TEST_F(AcceptorTest, APartOfTheDescriptorsIsKeptForOtherThings) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = 200;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(MaxConnectionDescriptor(), 136);
  limit.rlim_cur = 40;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(MaxConnectionDescriptor(), 20);
  limit.rlim_cur = before;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace
}  // namespace phimap::testing
