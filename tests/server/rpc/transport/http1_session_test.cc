#include "server/rpc/transport/http1_session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/rpc/transport/connection_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// A client that sends bytes as they are.
class Http1Test : public ConnectionTest {
 protected:
  Http1Test() { Serve(); }
  ~Http1Test() override {
    for (const int fd : fds_) close(fd);
  }
  int Connect() {
    fds_.push_back(server_->Connect(/*http1=*/true));
    return fds_.back();
  }
  static void Send(int fd, std::string_view text) {
    ASSERT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Returns what arrives until the server closes the connection.
  static std::string Rest(int fd) {
    std::string all;
    char chunk[4096];
    for (ssize_t got; (got = read(fd, chunk, sizeof(chunk))) > 0;) {
      all.append(chunk, static_cast<size_t>(got));
    }
    return all;
  }
  // Returns what arrives until `end` has arrived.
  static std::string Until(int fd, const std::string& end) {
    std::string all;
    char byte;
    while (all.find(end) == std::string::npos && read(fd, &byte, 1) == 1) all.push_back(byte);
    return all;
  }
  std::string Ask(std::string_view request) {
    const int fd = Connect();
    Send(fd, request);
    return Rest(fd);
  }

 private:
  std::vector<int> fds_;
};

constexpr char kEchoed[] =
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    "5\r\nhello\r\n0\r\n\r\n";

TEST_F(Http1Test, ABodyIsPassedOnAndAnswered) {
  EXPECT_EQ(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\n"
                "hello"),
            kEchoed);
}

TEST_F(Http1Test, ABodyInChunksIsPassedOn) {
  const std::string answer = Ask(
      "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: dropped\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("\r\n0\r\n\r\n"));
  EXPECT_THAT(answer, HasSubstr("hel"));
  EXPECT_EQ(EventsOf(0).data_bytes, 5u);
  EXPECT_EQ(acceptor_.heads[0].Count("trailer"), 0);
}

// The head of a request is what a request of HTTP/2 has, so that a handler need not know which one
// it was.
TEST_F(Http1Test, TheHeadHasTheNamesOfHttp2) {
  Ask("GET /count HTTP/1.1\r\nhOsT: a:80\r\nX-One:   1 \r\nConnection: close\r\n\r\n");
  const RequestHead& head = acceptor_.heads.at(0);
  EXPECT_EQ(head.Find(":method"), "GET");
  EXPECT_EQ(head.Find(":path"), "/count");
  EXPECT_EQ(head.Find(":authority"), "a:80");
  EXPECT_EQ(head.Find("x-one"), "1");
}

TEST_F(Http1Test, RequestsOfAConnectionAreAnsweredInTheirOrder) {
  const std::string one = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n";
  const std::string last =
      "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\n";
  const std::string answers = Ask(one + "1" + one + "2" + last + "3");
  EXPECT_EQ(Streams(), 3u) << answers;
  const size_t first = answers.find("1\r\n1\r\n");
  const size_t second = answers.find("1\r\n2\r\n");
  const size_t third = answers.find("1\r\n3\r\n");
  ASSERT_NE(third, std::string::npos);
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
}

TEST_F(Http1Test, ARequestByteForByteIsOneRequest) {
  const int fd = Connect();
  const std::string request =
      "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
  for (const char byte : request) Send(fd, std::string_view(&byte, 1));
  EXPECT_THAT(Rest(fd), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(EventsOf(0).data_bytes, 5u);
}

TEST_F(Http1Test, AClientOfHttp10ReadsToTheEndOfTheConnection) {
  EXPECT_EQ(Ask("POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello"),
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello");
}

TEST_F(Http1Test, AHeadIsAnsweredWithoutABody) {
  EXPECT_EQ(Ask("HEAD /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n");
}

TEST_F(Http1Test, AClientThatAsksMaySendItsBody) {
  const int fd = Connect();
  Send(fd,
       "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n"
       "Expect: 100-Continue\r\n\r\n");
  // This handler sends its head at once, so only the final status is sent.
  EXPECT_THAT(Until(fd, "\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  const int silent = Connect();
  Send(silent,
       "POST /silent HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
       "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(Until(silent, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
}

// What proxies and servers have read differently, so that a request was hidden in another one's
// body.
TEST_F(Http1Test, AmbiguousRequestsAreRefusedAndEndTheirConnection) {
  const std::pair<const char*, const char*> cases[] = {
      {"two lengths",
       "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n"
       "\r\nhello!"},
      {"the same length twice",
       "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
       "Content-Length: 5\r\n\r\nhello"},
      {"length and chunks",
       "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"an unknown coding",
       "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"
       "0\r\n\r\n"},
      {"a length with a sign", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"},
      {"a blank before the colon",
       "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n"
       "hello"},
      {"a line that ends with LF alone", "GET /count HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
      {"a head that ends with LF alone",
       "GET /count HTTP/1.1\r\nHost: a\r\n\nGET /count HTTP/1.1\r\n"},
      {"a CR in a line", "GET /count HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"},
      {"a line that goes on with the one before",
       "GET /count HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n"},
      {"a folded name", "GET /count HTTP/1.1\r\n Host: a\r\nHost: b\r\n\r\n"},
      {"two hosts", "GET /count HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
      {"no host", "GET /count HTTP/1.1\r\n\r\n"},
      {"an absolute target", "GET http://a/count HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"a tunnel", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"no HTTP", "\x16\x03\x01"},
      {"two blanks before the path", "GET  /count HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"chunks of HTTP/1.0",
       "POST /echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
  };
  for (const auto& [what, request] : cases) {
    const std::string answer = Ask(request);
    // The head of an answer may have been sent before the body was found to be wrong.
    EXPECT_TRUE(answer.rfind("HTTP/1.1 400 ", 0) == 0 || answer.find("\r\n0\r\n") == answer.npos)
        << what << ": " << answer;
    EXPECT_EQ(answer.find("HTTP/1.1 ", 1), std::string::npos) << what << ": " << answer;
  }
}

// A request in chunks that are framed wrongly, and another request behind it, which is not
// answered.
TEST_F(Http1Test, AmbiguousChunksAreRefusedAndEndTheirConnection) {
  const std::pair<const char*, std::string> cases[] = {
      {"no size", "x\r\n"},
      {"an empty size", "\r\nhello\r\n0\r\n\r\n"},
      {"a size of 17 digits", "00000000000000005\r\nhello\r\n0\r\n\r\n"},
      {"a sign", "+5\r\nhello\r\n0\r\n\r\n"},
      {"0x", "0x5\r\nhello\r\n0\r\n\r\n"},
      {"a blank behind the size", "5 \r\nhello\r\n0\r\n\r\n"},
      {"17 KiB of extensions", "5;" + std::string(17 << 10, 'a') + "\r\nhello\r\n0\r\n\r\n"},
      {"an extension with LF", "5;a\nb\r\nhello\r\n0\r\n\r\n"},
      {"LF alone behind the size", "5\nhello\r\n0\r\n\r\n"},
      {"CR alone behind the size", "5\rXhello\r\n0\r\n\r\n"},
      {"other bytes behind the data", "5\r\nhelloXX0\r\n\r\n"},
      {"LF alone behind the data", "5\r\nhello\n0\r\n\r\n"},
      {"more data than the size", "5\r\nhello!\r\n0\r\n\r\n"},
      {"CR alone behind the last size", "5\r\nhello\r\n0\r\n\rX"},
      {"a trailer with LF", "5\r\nhello\r\n0\r\na: b\n\r\n"},
      {"an end with LF", "5\r\nhello\r\n0\r\na: b\r\n\n"},
      {"a folded trailer", "5\r\nhello\r\n0\r\na: b\r\n c\r\n\r\n"},
      {"17 KiB of trailers", "5\r\nhello\r\n0\r\na: " + std::string(17 << 10, 'b') + "\r\n\r\n"},
  };
  for (const auto& [what, body] : cases) {
    SCOPED_TRACE(what);
    const std::string request =
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body +
        "GET /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for (const size_t step : {request.size(), size_t{1}}) {
      const int fd = Connect();
      for (size_t at = 0; at < request.size(); at += step) {
        // The server may have closed.
        static_cast<void>(
            send(fd, request.data() + at, std::min(step, request.size() - at), MSG_NOSIGNAL));
      }
      const std::string answer = Rest(fd);
      EXPECT_EQ(answer.find("HTTP/1.1 ", 1), std::string::npos) << answer;
      EXPECT_EQ(answer.find("\r\n0\r\n"), std::string::npos) << "complete: " << answer;
    }
  }
}

TEST_F(Http1Test, TrailersAreDropped) {
  const std::string answer =
      Ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
          "5\r\nhello\r\n0\r\nX-A: b\r\nX-C: d\r\n\r\n"
          "GET /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"));
}

// Old clients send a blank line after a body (RFC 9112, section 2.2).
TEST_F(Http1Test, BlankLinesBeforeARequestAreNoPartOfIt) {
  const std::string answer =
      Ask("\r\nPOST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\na\n b\n\r\n"
          "GET /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("a\n b\n"));
  EXPECT_THAT(answer.substr(1), HasSubstr("HTTP/1.1 200 OK\r\n"));
}

TEST_F(Http1Test, AnOtherVersionAndExpectationAreRefused) {
  EXPECT_THAT(Ask("GET /count HTTP/2.0\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 505 "));
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n"),
              StartsWith("HTTP/1.1 417 "));
}

// Clients in Java offer an upgrade to HTTP/2 with each first request.
TEST_F(Http1Test, AnUpgradeIsIgnored) {
  const std::string answer =
      Ask("POST /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\n"
          "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("hello"));
}

TEST_F(Http1Test, AHeadOverTheLimitIsTold) {
  const std::string long_value(20'000, 'a');
  Ask("GET /count HTTP/1.1\r\nHost: a\r\nX: " + long_value + "\r\nConnection: close\r\n\r\n");
  ASSERT_EQ(acceptor_.heads.size(), 1u);
  EXPECT_TRUE(acceptor_.heads[0].too_large);
  EXPECT_LE(acceptor_.heads[0].list_bytes(), ConnectionLimits().max_header_bytes + 200);
  // Past 80 KiB nothing more is read.
  EXPECT_THAT(Ask("GET /count HTTP/1.1\r\nHost: a\r\nX: " + std::string(90'000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
}

// An answer that comes before the request is complete ends the connection, since nobody reads the
// rest of the request.
TEST_F(Http1Test, AnEarlyAnswerEndsTheConnection) {
  const std::string answer =
      Ask("POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegin");
  EXPECT_THAT(answer, HasSubstr("connection: close\r\n"));
}

// The handler of /hold consumes nothing, so the server stops reading: a body of 8 MiB does not fit
// into the sockets' buffers.
TEST_F(Http1Test, ABodyThatIsNotConsumedIsNotReadOn) {
  const int fd = Connect();
  Send(fd, "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 8388608\r\n\r\n");
  const std::string piece(64 << 10, 'x');
  size_t sent = 0;
  for (int i = 0; i < 10'000 && sent < (8 << 20); ++i) {
    const ssize_t got = send(fd, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got > 0) sent += static_cast<size_t>(got);
    server_->Run([] {});
  }
  EXPECT_LT(sent, size_t{2} << 20);
  EXPECT_LE(EventsOf(0).data_bytes, ConnectionLimits().stream_window + (4u << 10));
}

// Far more than the sockets and the connection's output hold.
TEST_F(Http1Test, ALargeAnswerArrivesWhole) {
  const int fd = Connect();
  Send(fd, "GET /megabytes/30 HTTP/1.0\r\n\r\n");
  EXPECT_EQ(Until(fd, "\r\n\r\n"), "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
  std::string chunk(64 << 10, '\0');
  size_t got = 0;
  while (got < 30'000'000) {
    const ssize_t size = read(fd, chunk.data(), chunk.size());
    ASSERT_GT(size, 0);
    const std::string_view piece(chunk.data(), static_cast<size_t>(size));
    ASSERT_EQ(piece.find_first_not_of('x'), std::string_view::npos);
    got += piece.size();
  }
  EXPECT_EQ(got, 30'000'000u);
}

TEST_F(Http1Test, AClientThatLeavesEndsItsStream) {
  const int fd = Connect();
  Send(fd, "GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
  while (Streams() == 0) {
  }
  shutdown(fd, SHUT_RDWR);
  server_->AwaitNoConnections();
  EXPECT_EQ(EventsOf(0).closed, 1);
  EXPECT_EQ(EventsOf(0).code, ResetCode::kCancel);
}

TEST_F(Http1Test, AfterTheLastCallIsRefusedTheConnectionEnds) {
  const int idle = Connect();
  Send(idle, "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(Until(idle, "0\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  server_->Run([&] { server_->ForEach([](Connection& c) { c.BeginGoAway(); }); });
  Send(idle, "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(Rest(idle), HasSubstr("connection: close\r\n"));
  const int other = Connect();
  Send(other, "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  Until(other, "0\r\n\r\n");
  server_->Run([&] { server_->ForEach([](Connection& c) { c.FinishGoAway(); }); });
  EXPECT_EQ(Rest(other), "");
}

TEST_F(Http1Test, AClientOfHttp2OnTheSamePortIsServed) {
  const int fd = Connect();
  Send(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  const std::string empty_settings("\0\0\0\4\0\0\0\0\0", 9);
  Send(fd, empty_settings);
  char head[9];
  ASSERT_EQ(recv(fd, head, sizeof(head), MSG_WAITALL), 9);
  EXPECT_EQ(head[3], 4);  // the server's SETTINGS
}

}  // namespace
}  // namespace phimap::testing
