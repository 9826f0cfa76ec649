// A dispatcher with a few methods, connected to a raw HTTP/2 client.
//
// The methods borrow the names and messages of the Health and ServerReflection services: Check is a
// unary call, and ServerReflectionInfo is a stream that echoes.
#ifndef PHIMAP_TESTS_SERVER_RPC_CALL_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_RPC_CALL_FIXTURE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "phimap/rpc/error_details.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/dispatcher.h"
#include "tests/server/support/gate.h"
#include "tests/server/support/loop_server.h"
#include "tests/server/support/raw_http2_client.h"

namespace phimap::testing {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

inline constexpr char kUnary[] = "/grpc.health.v1.Health/Check";
inline constexpr char kStream[] = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

// Counts and records events of the server's calls.
struct CallLog {
  // Idle limit of streams; set before the call begins.
  absl::Duration idle_limit = absl::Seconds(60);
  int64_t slowest_bytes_per_second = 0;
  // Largest answer of a StreamTestCall; set before the call begins.
  size_t answer_bytes = 10'000;
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  std::atomic<int> messages{0};
  std::atomic<absl::StatusCode> last_end{absl::StatusCode::kOk};

  void End(const absl::Status& status) {
    last_end = status.code();
    ++ended;
  }
};

// Answers SERVING. A call for the service "wait" does not end by itself, and a call for "fail" ends
// with an error.
class UnaryTestCall final : public TypedUnaryCall<HealthCheckRequest, HealthCheckResponse> {
 public:
  UnaryTestCall(const CallStart& start, CallLog& log) : TypedUnaryCall(start), log_(log) {
    ++log_.begun;
  }

 private:
  void Start() override {
    ++log_.messages;
    if (request().service() == "wait") return;
    if (request().service() == "fail") {
      return Finish(MakeError(absl::StatusCode::kNotFound, "NOT_THERE", "service", "100 % ä\n"));
    }
    response().set_status(HealthCheckResponse::SERVING);
    Finish(absl::OkStatus());
  }
  void OnEnd(const absl::Status& status) override { log_.End(status); }

  CallLog& log_;
};

// Answers each request with the request's host, or with the beginning of it. Ends when the client's
// stream ends.
class StreamTestCall final : public TypedStreamCall<ServerReflectionRequest> {
 public:
  StreamTestCall(const CallStart& start, CallLog& log) : TypedStreamCall(start), log_(log) {
    ++log_.begun;
  }

 private:
  void Start() override {
    SetIdleLimit(log_.idle_limit);
    SetPace(log_.slowest_bytes_per_second);
    ReadNext();
  }
  void OnRequest() override {
    ++log_.messages;
    ServerReflectionResponse response;
    response.set_valid_host(request().host().substr(0, log_.answer_bytes));
    Write(response);
  }
  void OnWritten() override { ReadNext(); }
  void OnRequestsEnd() override { Finish(absl::OkStatus()); }
  void OnEnd(const absl::Status& status) override { log_.End(status); }

  CallLog& log_;
};

class CallTest : public ::testing::Test {
 protected:
  static constexpr int64_t kMaxMessageBytes = 1 << 20;
  // Canonical status codes, as numbers on the wire.
  static constexpr int kInvalidArgument = 3;
  static constexpr int kDeadlineExceeded = 4;
  static constexpr int kNotFound = 5;
  static constexpr int kResourceExhausted = 8;
  static constexpr int kUnimplemented = 12;
  static constexpr int kInternal = 13;
  static constexpr int kUnavailable = 14;

  CallTest() {
    // The Health service is open to all callers, so its methods have no roles.
    dispatcher_.Add(*HealthCheckRequest::descriptor()->file()->FindServiceByName("Health"),
                    {{"Check", Opens<UnaryTestCall>(log_)}}, Dispatcher::Access::kOpenToAll);
    dispatcher_.Add(
        *ServerReflectionRequest::descriptor()->file()->FindServiceByName("ServerReflection"),
        {{"ServerReflectionInfo", Opens<StreamTestCall>(log_)}});
    server_ = std::make_unique<LoopServer>(dispatcher_);
    client_ = std::make_unique<RawHttp2Client>(server_->Connect());
  }
  ~CallTest() override {
    client_.reset();
    server_.reset();
    // A task that has parsed a message may hold its call for a moment longer.
    Gate parsed;
    EXPECT_TRUE(parsing_.Submit([&] { parsed.Open(); }).ok());
    parsed.Wait();
    EXPECT_EQ(log_.ended, log_.begun) << "each call ends exactly once";
    EXPECT_EQ(memory_.held_bytes(), 0);
  }

  static std::string Named(const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return GrpcFrame(request.SerializeAsString());
  }
  static std::string ToHost(const std::string& host) {
    ServerReflectionRequest request;
    request.set_host(host);
    return GrpcFrame(request.SerializeAsString());
  }

  // Sends `body` to the method `path`, and returns the answer.
  RawHttp2Client::Answer& Answer(const std::string& path, const std::string& body,
                                 const RawHttp2Client::Headers& headers = {}) {
    const int32_t stream = client_->Call(path, headers);
    client_->Send(stream, body, /*end=*/true);
    EXPECT_TRUE(client_->AwaitEnd(stream));
    return client_->answer(stream);
  }
  // The status code of an answer; -1 if it has none.
  static int CodeOf(RawHttp2Client::Answer& answer) {
    int code = -1;
    return absl::SimpleAtoi(answer.headers["grpc-status"], &code) ? code : -1;
  }
  // The reason in an answer's grpc-status-details-bin.
  static std::string ReasonOf(RawHttp2Client::Answer& answer) {
    std::string bytes;
    rpc::Status status;
    EXPECT_TRUE(absl::Base64Unescape(answer.headers["grpc-status-details-bin"], &bytes));
    EXPECT_TRUE(status.ParseFromString(bytes));
    for (const auto& detail : status.details()) {
      rpc::ErrorInfo info;
      if (detail.type_url() != "type.googleapis.com/google.rpc.ErrorInfo") continue;
      EXPECT_TRUE(info.ParseFromString(detail.value()));
      return info.reason();
    }
    return "";
  }
  // Runs the client until `done` returns true. Returns false if the connection ends first.
  bool RunUntil(const std::function<bool()>& done) {
    while (!done()) {
      if (!client_->RoundTrip()) return false;
    }
    return true;
  }

  CallLog log_;
  Metrics metrics_;
  const AccessControl access_{nullptr, std::nullopt};
  RequestMemory memory_{8 << 20, nullptr};
  CallerShares callers_{1000};
  TaskPool parsing_{"parsing", 1, 100};
  const Logger logger_{LogLevel::kOff};
  CallEnvironment environment_{access_, memory_, callers_, parsing_, kMaxMessageBytes, logger_};
  Dispatcher dispatcher_{environment_, metrics_};
  std::unique_ptr<LoopServer> server_;
  std::unique_ptr<RawHttp2Client> client_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_RPC_CALL_FIXTURE_H_
