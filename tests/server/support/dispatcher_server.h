// A dispatcher and a client that is connected to it, for tests of a service's calls.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_DISPATCHER_SERVER_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_DISPATCHER_SERVER_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "google/protobuf/message_lite.h"
#include "server/rpc/dispatcher.h"
#include "tests/server/support/loop_server.h"
#include "tests/server/support/raw_http2_client.h"

namespace phimap::testing {

class DispatcherServer {
 public:
  // Begins to serve. REQUIRES: all services were added to `dispatcher`.
  void Start() {
    server = std::make_unique<LoopServer>(dispatcher);
    client = std::make_unique<RawHttp2Client>(server->Connect());
  }

  // Begins a call, and sends one message. If `end` is true, also ends the client's side of the
  // stream.
  int32_t Begin(const std::string& path, const google::protobuf::MessageLite& message, bool end) {
    const int32_t stream = client->Call(path);
    client->Send(stream, GrpcFrame(message.SerializeAsString()), end);
    return stream;
  }
  // Waits for the next message of an answer, and moves it into `message`. Returns false if none
  // arrives.
  bool Next(int32_t stream, google::protobuf::MessageLite& message) {
    constexpr size_t kPrefix = 5;
    std::string& body = client->answer(stream).body;
    size_t size = 0;
    const bool there = client->RunUntil([&] {
      if (body.size() < kPrefix) return client->answer(stream).ended;
      size = 0;
      for (size_t i = 1; i < kPrefix; ++i) size = size << 8 | static_cast<uint8_t>(body[i]);
      return body.size() >= kPrefix + size || client->answer(stream).ended;
    });
    if (!there || body.size() < kPrefix + size) return false;
    const bool parsed = message.ParseFromString(body.substr(kPrefix, size));
    body.erase(0, kPrefix + size);
    return parsed;
  }
  // The status code that a call ends with; -1 if it has none.
  int CodeOf(int32_t stream) {
    int code = -1;
    if (!client->AwaitEnd(stream)) return -1;
    return absl::SimpleAtoi(client->answer(stream).headers["grpc-status"], &code) ? code : -1;
  }

  Metrics metrics;
  const AccessControl access{nullptr, std::nullopt};
  RequestMemory memory{8 << 20, nullptr};
  CallerShares callers{1000};
  TaskPool parsing{"parsing", 1, 100};
  const Logger logger{LogLevel::kOff};
  const CallEnvironment environment{access, memory, callers, parsing, 1 << 20, logger};
  Dispatcher dispatcher{environment, metrics};
  std::unique_ptr<LoopServer> server;
  std::unique_ptr<RawHttp2Client> client;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_DISPATCHER_SERVER_H_
