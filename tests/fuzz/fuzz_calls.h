// A dispatcher for fuzz targets. It has a unary method and a streaming method, which use the
// messages of gRPC's health and reflection services.
#ifndef PHIMAP_TESTS_FUZZ_FUZZ_CALLS_H_
#define PHIMAP_TESTS_FUZZ_FUZZ_CALLS_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/dispatcher.h"

namespace phimap {

struct CallCounts {
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
};

// Answers SERVING. A check of the service "wait" is never answered.
class FuzzUnaryCall final : public TypedUnaryCall<grpc::health::v1::HealthCheckRequest,
                                                  grpc::health::v1::HealthCheckResponse> {
 public:
  FuzzUnaryCall(const CallStart& start, CallCounts& counts)
      : TypedUnaryCall(start), counts_(counts) {
    ++counts_.begun;
  }

 private:
  void Start() override {
    if (request().service() == "wait") return;
    response().set_status(grpc::health::v1::HealthCheckResponse::SERVING);
    Finish(absl::OkStatus());
  }
  void OnEnd(const absl::Status&) override { ++counts_.ended; }

  CallCounts& counts_;
};

// Answers each request with the host in the request.
class FuzzStreamCall final : public TypedStreamCall<grpc::reflection::v1::ServerReflectionRequest> {
 public:
  FuzzStreamCall(const CallStart& start, CallCounts& counts)
      : TypedStreamCall(start), counts_(counts) {
    ++counts_.begun;
  }

 private:
  void Start() override { ReadNext(); }
  void OnRequest() override {
    grpc::reflection::v1::ServerReflectionResponse response;
    response.set_valid_host(request().host());
    Write(response);
  }
  void OnWritten() override { ReadNext(); }
  void OnRequestsEnd() override { Finish(absl::OkStatus()); }
  void OnEnd(const absl::Status&) override { ++counts_.ended; }

  CallCounts& counts_;
};

struct FuzzCalls {
  // If `certificate_role` is given, only clients with a TLS certificate may call the streaming
  // method.
  explicit FuzzCalls(std::optional<Role> certificate_role) : access(nullptr, certificate_role) {
    dispatcher.Add(*grpc::health::v1::HealthCheckRequest::descriptor()->file()->service(0),
                   {{"Check", Opens<FuzzUnaryCall>(counts)}}, Dispatcher::Access::kOpenToAll);
    dispatcher.Add(*grpc::reflection::v1::ServerReflectionRequest::descriptor()->file()->service(0),
                   {{"ServerReflectionInfo", Opens<FuzzStreamCall>(counts)}});
  }

  static constexpr int64_t kMemoryBytes = 8 << 20;
  CallCounts counts;
  Metrics metrics;
  const AccessControl access;
  RequestMemory memory{kMemoryBytes, nullptr};
  CallerShares callers{1000};
  TaskPool parsing{"parsing", 1, 100};
  const Logger logger{LogLevel::kOff};
  const CallEnvironment environment{access, memory, callers, parsing, 1 << 20, logger};
  Dispatcher dispatcher{environment, metrics};
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_FUZZ_FUZZ_CALLS_H_
