// The floor: a server of the same messages, set up as phimapd is, that computes nothing. Answers
// Transform with --features numbers for each row. What a call takes here is what gRPC takes.
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "phimap/v1/transform_service.grpc.pb.h"

namespace phimap::bench {
namespace {

constexpr int kMaxMessageSizeBytes = 64 << 20;

class EchoService final : public v1::TransformService::CallbackService {
 public:
  explicit EchoService(int32_t features) : features_(features), row_(features, 0.5f) {}

  grpc::ServerUnaryReactor* Transform(grpc::CallbackServerContext* context,
                                      const v1::TransformRequest* request,
                                      v1::TransformResponse* response) override {
    v1::VersionRef& version = *response->mutable_version();
    version.set_mapping(request->reference());
    version.set_number(1);
    version.set_digest(std::string(64, '0'));  // as long as a real one
    const v1::DenseRows& rows = request->examples().dense();
    v1::DenseRows& features = *response->mutable_features();
    features.set_rows(rows.rows());
    features.set_columns(features_);
    const size_t row_bytes = row_.size() * sizeof(float);
    std::string& bytes = *features.mutable_float32_le();
    bytes.reserve(row_bytes * rows.rows());
    for (int32_t i = 0; i < rows.rows(); ++i) {
      bytes.append(reinterpret_cast<const char*>(row_.data()), row_bytes);
    }
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const int32_t features_;
  const std::vector<float> row_;
};

int Run(int argc, char** argv) {
  std::string listen = "127.0.0.1:0";
  int32_t features = 512;
  CLI::App app("Answers Transform without computing anything.");
  app.add_option("--listen", listen, "HOST:PORT or unix:PATH")->capture_default_str();
  app.add_option("--features", features, "Numbers in an answer, for each row")
      ->check(CLI::Range(1, 65'536))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as phimapd does
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  EchoService service(features);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageSizeBytes);
  builder.SetMaxSendMessageSize(kMaxMessageSizeBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::fprintf(stderr, "echo_server: cannot listen on %s\n", listen.c_str());
    return 1;
  }
  const std::string address = listen.rfind("unix:", 0) == 0
                                  ? listen
                                  : listen.substr(0, listen.rfind(':') + 1) + std::to_string(port);
  std::printf("echo_server ready: grpc=%s\n", address.c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&stop, &signal);
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) { return phimap::bench::Run(argc, argv); }
