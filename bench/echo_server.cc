// The floors of the benchmarks: grpc++ servers that answer as phimapd does, but compute nothing.
// The time of a call to such a server is grpc++'s own.
//
//   --api=callback   the callback echo: parses a Transform, answers --features numbers for each row
//   --api=generic    the generic echo: parses nothing and answers every call with the same bytes,
//                    which encode --rows rows; no grpc++ server can do less
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "phimap/v1/transform_service.grpc.pb.h"

namespace phimap::bench {
namespace {

constexpr int kMaxMessageSizeBytes = 64 << 20;

// Fills `response` with `row`, once for each of `rows` rows.
void Fill(const std::string& mapping, int32_t rows, const std::vector<float>& row,
          v1::TransformResponse& response) {
  v1::VersionRef& version = *response.mutable_version();
  version.set_name(mapping);
  version.set_number(1);
  version.set_digest(std::string(64, '0'));  // as long as a real digest
  v1::DenseRows& features = *response.mutable_features();
  features.set_rows(rows);
  features.set_columns(static_cast<int32_t>(row.size()));
  const size_t row_bytes = row.size() * sizeof(float);
  std::string& bytes = *features.mutable_float32_le();
  bytes.reserve(row_bytes * rows);
  for (int32_t i = 0; i < rows; ++i) {
    bytes.append(reinterpret_cast<const char*>(row.data()), row_bytes);
  }
}

std::string AnswerBytes(int32_t rows, int32_t features) {
  v1::TransformResponse response;
  Fill("echo", rows, std::vector<float>(features, 0.5f), response);
  return response.SerializeAsString();
}

class CallbackEcho final : public v1::TransformService::CallbackService {
 public:
  explicit CallbackEcho(int32_t features) : row_(features, 0.5f) {}

  grpc::ServerUnaryReactor* Transform(grpc::CallbackServerContext* context,
                                      const v1::TransformRequest* request,
                                      v1::TransformResponse* response) override {
    Fill(request->reference(), request->examples().dense().rows(), row_, *response);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const std::vector<float> row_;
};

// One call of the generic echo; deletes itself.
class GenericEchoCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit GenericEchoCall(const grpc::ByteBuffer& answer) : answer_(answer) {
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::INTERNAL, "no request"));
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  const grpc::ByteBuffer answer_;  // shares its bytes with all calls
  grpc::ByteBuffer request_;
};

class GenericEcho final : public grpc::CallbackGenericService {
 public:
  explicit GenericEcho(const std::string& answer) {
    const grpc::Slice slice(answer);
    answer_ = grpc::ByteBuffer(&slice, 1);
  }
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new GenericEchoCall(answer_);
  }

 private:
  grpc::ByteBuffer answer_;
};

struct Arguments {
  std::string listen = "127.0.0.1:0";
  int32_t features = 512;
  std::string api = "callback";
  int32_t rows = 1;
  std::string certificate;
  std::string key;
};

void AddOptions(CLI::App& app, Arguments& arguments) {
  app.add_option("--listen", arguments.listen, "HOST:PORT or unix:PATH")->capture_default_str();
  app.add_option("--features", arguments.features, "Numbers of an answer for each row")
      ->check(CLI::Range(1, 65'536))
      ->capture_default_str();
  app.add_option("--api", arguments.api, "API of grpc++ to serve with: callback or generic")
      ->check(CLI::IsMember({"callback", "generic"}))
      ->capture_default_str();
  app.add_option("--rows", arguments.rows, "Rows of every answer of the generic API")
      ->check(CLI::Range(1, 65'536))
      ->capture_default_str();
  CLI::Option* const certificate =
      app.add_option("--tls_certificate", arguments.certificate, "Serve with TLS (PEM)")
          ->check(CLI::ExistingFile);
  app.add_option("--tls_key", arguments.key, "The certificate's key (PEM)")
      ->check(CLI::ExistingFile)
      ->needs(certificate);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const Arguments& arguments) {
  if (arguments.certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({ReadFile(arguments.key), ReadFile(arguments.certificate)});
  return grpc::SslServerCredentials(options);
}

// Returns the address of the server; empty if the server cannot listen.
std::string Listen(grpc::ServerBuilder& builder, const Arguments& arguments,
                   std::unique_ptr<grpc::Server>& server) {
  builder.SetMaxReceiveMessageSize(kMaxMessageSizeBytes);
  builder.SetMaxSendMessageSize(kMaxMessageSizeBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  int port = 0;
  builder.AddListeningPort(arguments.listen, CredentialsOf(arguments), &port);
  server = builder.BuildAndStart();
  if (server == nullptr) return "";
  const std::string& listen = arguments.listen;
  if (listen.rfind("unix:", 0) == 0) return listen;
  return listen.substr(0, listen.rfind(':') + 1) + std::to_string(port);
}

int Run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Answers Transform without computing anything.");
  AddOptions(app, arguments);
  CLI11_PARSE(app, argc, argv);

  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as phimapd does
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  CallbackEcho callback(arguments.features);
  GenericEcho generic(AnswerBytes(arguments.rows, arguments.features));
  grpc::ServerBuilder builder;
  if (arguments.api == "callback") {
    builder.RegisterService(&callback);
  } else {
    builder.RegisterCallbackGenericService(&generic);
  }
  std::unique_ptr<grpc::Server> server;
  const std::string address = Listen(builder, arguments, server);
  if (address.empty()) {
    std::fprintf(stderr, "echo_server: cannot listen on %s\n", arguments.listen.c_str());
    return 1;
  }
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
