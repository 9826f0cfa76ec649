#include "server/store/postgres/postgres_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/server/store/postgres/postgres_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

// Accepts connections but never sends anything. The operating system accepts them by itself.
class SilentServer {
 public:
  SilentServer() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    PHIMAP_CHECK(bind(fd_, reinterpret_cast<sockaddr*>(&address), length) == 0);
    PHIMAP_CHECK(listen(fd_, 16) == 0);
    PHIMAP_CHECK(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { close(fd_); }
  int port() const { return port_; }

 private:
  const int fd_;
  int port_ = 0;
};

class PostgresConnectionTest : public PostgresTest {};

TEST_F(PostgresConnectionTest, ValuesComeBackAsTheyWereSent) {
  auto connection = Connect();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::string text = "it's \"quoted\" \\ and\nλ→𝄞";
  for (const bool binary : {false, true}) {
    SCOPED_TRACE(binary);
    const std::vector<PostgresValue> values = {
        std::monostate(),    kLeast,    kMost, int64_t{-1}, absl::string_view(text),
        absl::string_view(), int64_t{0}};
    const char kSelect[] = "SELECT $1::bigint, $2, $3, $4, $5, $6, $7, true, 7::smallint";
    const SqlRows rows =
        (binary ? connection->RunBinary(kSelect, values) : connection->Run(kSelect, values))
            .value();
    ASSERT_EQ(rows.size(), 1);
    EXPECT_TRUE(rows.IsNull(0, 0));
    EXPECT_EQ(rows.Int(0, 1), kLeast);
    EXPECT_EQ(rows.Int(0, 2), kMost);
    EXPECT_EQ(rows.Int(0, 3), -1);
    EXPECT_EQ(rows.Text(0, 4), text);
    EXPECT_EQ(rows.Text(0, 5), "");
    EXPECT_EQ(rows.Int(0, 6), 0);
    EXPECT_EQ(rows.Int(0, 7), 1);
    EXPECT_EQ(rows.Int(0, 8), 7);
  }
}

TEST_F(PostgresConnectionTest, BytesOfAnyValueComeBack) {
  std::string bytes(256, '\0');
  for (int i = 0; i < 256; ++i) bytes[static_cast<size_t>(i)] = static_cast<char>(i);
  const auto rows = Connect()->RunBinary("SELECT $1, $2", {PostgresBytes{bytes}, PostgresBytes{}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->Text(0, 0), bytes);
  EXPECT_EQ(rows->Text(0, 1), "");
}

TEST_F(PostgresConnectionTest, CountsAndSumsAreIntegers) {
  auto connection = Connect();
  const auto rows =
      connection->Run("SELECT count(*), sum(x) FROM (VALUES (1::bigint), (2)) t(x)").value();
  EXPECT_EQ(rows.Int(0, 0), 2);
  EXPECT_EQ(rows.Int(0, 1), 3);
}

TEST_F(PostgresConnectionTest, TextThatIsNoUtf8IsRefusedAndNotCut) {
  auto connection = Connect();
  for (const absl::string_view text : {absl::string_view("a\0b", 3), absl::string_view("\xff")}) {
    const absl::Status status = connection->Run("SELECT $1", {PostgresValue(text)}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
  }
  EXPECT_TRUE(connection->IsAlive());
}

TEST_F(PostgresConnectionTest, EachErrorHasItsCodeAndReason) {
  struct Case {
    const char* state;
    Code code;
    const char* reason;
    bool waiting_helps;
  };
  auto connection = Connect();
  for (const Case& c : {Case{"53100", Code::kResourceExhausted, "DISK_FULL", false},
                        Case{"53300", Code::kUnavailable, "DATABASE_UNAVAILABLE", true},
                        Case{"08006", Code::kUnavailable, "DATABASE_UNAVAILABLE", true},
                        Case{"57P01", Code::kUnavailable, "DATABASE_UNAVAILABLE", true},
                        Case{"57P03", Code::kUnavailable, "DATABASE_UNAVAILABLE", true},
                        Case{"25006", Code::kUnavailable, "DATABASE_READ_ONLY", true},
                        Case{"55P03", Code::kUnavailable, "DATABASE_BUSY", true},
                        Case{"57014", Code::kUnavailable, "DATABASE_BUSY", true},
                        Case{"40001", Code::kUnavailable, "DATABASE_BUSY", true},
                        Case{"28P01", Code::kFailedPrecondition, "DATABASE_REFUSED", false},
                        Case{"3D000", Code::kFailedPrecondition, "DATABASE_REFUSED", false},
                        Case{"42501", Code::kFailedPrecondition, "DATABASE_REFUSED", false},
                        Case{"XX001", Code::kDataLoss, "DATABASE_DAMAGED", false},
                        Case{"XX002", Code::kDataLoss, "DATABASE_DAMAGED", false},
                        Case{"42601", Code::kInternal, "DATABASE_FAILED", false}}) {
    SCOPED_TRACE(c.state);
    const absl::Status status =
        connection
            ->RunBatch(absl::StrCat("DO $$ BEGIN RAISE EXCEPTION 'so it is' USING ERRCODE = '",
                                    c.state, "'; END $$"))
            .status();
    EXPECT_THAT(status, IsError(c.code, c.reason));
    EXPECT_EQ(DetailOf(status)->retry_delay_ms > 0, c.waiting_helps);
    EXPECT_EQ(connection->last_sqlstate(), c.state);
    EXPECT_THAT(std::string(status.message()), HasSubstr("so it is"));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("\"", name_, "\" on 127.0.0.1:", server_.port())));
  }
}

TEST_F(PostgresConnectionTest, WarningsAreThoseOfTheLastCall) {
  auto connection = Connect();
  ASSERT_TRUE(connection->RunBatch("DO $$ BEGIN RAISE WARNING 'careful'; END $$").ok());
  EXPECT_THAT(connection->last_warnings(), ElementsAre("careful"));
  ASSERT_TRUE(connection->RunBatch("DO $$ BEGIN RAISE NOTICE 'by the way'; END $$").ok());
  EXPECT_THAT(connection->last_warnings(), IsEmpty());
}

TEST_F(PostgresConnectionTest, AStatementOverItsTimeEndsAndTheConnectionGoesOn) {
  auto connection = Connect();
  const absl::Status status =
      connection->RunBatch("SET statement_timeout = 50; SELECT pg_sleep(30)").status();
  EXPECT_EQ(ReasonOf(status), "DATABASE_BUSY") << status;
  EXPECT_TRUE(connection->RunBatch("SELECT 1").ok());
}

TEST_F(PostgresConnectionTest, AServerThatStallsIsGivenUpAndTheConnectionClosed) {
  auto connection = Connect({.statement = absl::Milliseconds(50)});
  const auto pid = connection->Run("SELECT pg_backend_pid()").value();
  const PausedProcess paused(static_cast<pid_t>(pid.Int(0, 0)));
  const absl::Status status = connection->RunBatch("SELECT 1").status();
  EXPECT_EQ(ReasonOf(status), "DATABASE_UNAVAILABLE") << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("did not answer in time"));
  EXPECT_FALSE(connection->usable());
  EXPECT_TRUE(absl::IsUnavailable(connection->RunBatch("SELECT 1").status()));
}

TEST_F(PostgresConnectionTest, AServerThatAcceptsAndIsSilentIsGivenUp) {
  const SilentServer silent;
  const absl::Status status =
      PostgresConnection::Open(absl::StrCat("postgresql://127.0.0.1:", silent.port(), "/x"),
                               {.connect = absl::Milliseconds(100)})
          .status();
  EXPECT_EQ(ReasonOf(status), "DATABASE_UNAVAILABLE") << status;
  EXPECT_GT(DetailOf(status)->retry_delay_ms, 0);
}

TEST_F(PostgresConnectionTest, AHostThatIsSilentOrRefusesIsPassedOver) {
  const SilentServer silent;
  const std::string uri = absl::StrCat("postgresql://postgres@127.0.0.1:", silent.port(),
                                       ",127.0.0.1:1,127.0.0.1:", server_.port(), "/", name_,
                                       "?target_session_attrs=read-write");
  const auto connection = PostgresConnection::Open(uri, {.connect = absl::Seconds(1)}).value();
  EXPECT_EQ(connection->place().port, absl::StrCat(server_.port()));
}

TEST_F(PostgresConnectionTest, RefusalsSayWhyWithoutThePassword) {
  const std::string at = absl::StrCat("@127.0.0.1:", server_.port(), "/");
  struct Case {
    std::string uri;
    Code code;
    const char* reason;
  };
  for (const Case& c :
       {Case{"postgresql://locked:hunter2" + at + name_, Code::kFailedPrecondition,
             "DATABASE_REFUSED"},
        Case{"postgresql://locked" + at + name_, Code::kFailedPrecondition, "DATABASE_REFUSED"},
        Case{"postgresql://postgres:hunter2" + at + "nowhere", Code::kFailedPrecondition,
             "DATABASE_REFUSED"},
        Case{"postgresql://u:hunter2@127.0.0.1:1/x", Code::kUnavailable, "DATABASE_UNAVAILABLE"},
        Case{"postgresql://u:hunter2@nowhere.invalid/x", Code::kUnavailable,
             "DATABASE_UNAVAILABLE"}}) {
    const absl::Status status = PostgresConnection::Open(c.uri, {}).status();
    EXPECT_THAT(status, IsError(c.code, c.reason));
    EXPECT_THAT(status.ToString(), Not(HasSubstr("hunter2")));
    EXPECT_THAT(status.ToString(), Not(HasSubstr(".c:"))) << "a place in PostgreSQL's sources";
  }
  const std::string right =
      absl::StrCat("postgresql://locked:", PostgresServer::kLockedPassword, at, name_);
  EXPECT_TRUE(PostgresConnection::Open(right, {}).ok());
}

TEST_F(PostgresConnectionTest, APassFileThatLibpqDoesNotReadIsNamedWithTheRefusal) {
  ASSERT_EQ(setenv("PGPASSFILE", "/nowhere/pgpass", /*overwrite=*/1), 0);
  const absl::Status status =
      PostgresConnection::Open(
          absl::StrCat("postgresql://locked@127.0.0.1:", server_.port(), "/", name_), {})
          .status();
  unsetenv("PGPASSFILE");
  EXPECT_EQ(ReasonOf(status), "DATABASE_REFUSED");
  EXPECT_THAT(status.ToString(),
              HasSubstr("(PGPASSFILE: cannot find /nowhere/pgpass: No such file"));
}

TEST_F(PostgresConnectionTest, AnAddressWithAStrayPasswordIsRefusedWithoutRepeatingIt) {
  for (const char* uri :
       {"postgresql://u:p@hunter2@127.0.0.1/x", "postgresql://u:hunter2/p@127.0.0.1/x",
        "postgresql://u:12/hunter2@127.0.0.1/x", "postgresql://u:hunter2%zz@127.0.0.1/x",
        "host=127.0.0.1 password=a hunter2", "postgresql://127.0.0.1:hunter2/x",
        "postgresql://127.0.0.1/x?hunter2=y", "host=a,b port=1,2,3 password=hunter2"}) {
    SCOPED_TRACE(uri);
    const absl::Status status = PostgresConnection::Open(uri, {}).status();
    EXPECT_EQ(ReasonOf(status), "DATABASE_ADDRESS_INVALID") << status;
    EXPECT_THAT(status.ToString(), Not(HasSubstr("hunter2")));
  }
}

TEST_F(PostgresConnectionTest, ASessionSaysWhoItIsUnlessTheAddressDoes) {
  const auto name = [](const std::string& uri) {
    auto connection = PostgresConnection::Open(uri, {}).value();
    return connection->RunBatch("SHOW application_name")->Text(0, 0);
  };
  EXPECT_EQ(name(uri_), "phimapd");
  EXPECT_EQ(name(uri_ + "?application_name=other"), "other");
}

TEST_F(PostgresConnectionTest, ANotificationEndsTheWait) {
  auto connection = Connect();
  using Clock = std::chrono::steady_clock;
  ASSERT_TRUE(connection->Listen("phimap").ok());
  EXPECT_FALSE(*connection->WaitForNotification(Clock::now() + std::chrono::milliseconds(5)));
  Run("NOTIFY phimap; NOTIFY other");
  Run("NOTIFY phimap");
  EXPECT_TRUE(*connection->WaitForNotification(Clock::now() + std::chrono::seconds(30)));
  server_.CutConnections(name_);
  absl::StatusOr<bool> notified = true;  // the other notification may have arrived late
  while (notified.ok() && *notified) {
    notified = connection->WaitForNotification(Clock::now() + std::chrono::seconds(30));
  }
  EXPECT_TRUE(absl::IsUnavailable(notified.status())) << notified.status();
}

TEST_F(PostgresConnectionTest, AConnectionThatWasCutIsNotAlive) {
  auto connection = Connect();
  EXPECT_TRUE(connection->IsAlive());
  EXPECT_EQ(server_.CutConnections(name_), 1);
  // A backend leaves pg_stat_activity before its process has closed the socket.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (connection->IsAlive() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(connection->IsAlive());
}

}  // namespace
}  // namespace phimap::testing
