// A gRPC server in the test's process. The test defines its answers. It replaces the real server in
// tests of the client's own logic.
#ifndef PHIMAP_TESTS_CLIENT_SCRIPTED_SERVER_H_
#define PHIMAP_TESTS_CLIENT_SCRIPTED_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "phimap/rpc/error_details.pb.h"
#include "phimap/v1/learning_service.grpc.pb.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "phimap/v1/transform_service.grpc.pb.h"

namespace phimap::client {

using BuildStream = grpc::ServerReaderWriter<v1::BuildResponse, v1::BuildRequest>;
using BuildScript = std::function<grpc::Status(BuildStream&)>;
using TransformStreamStream = grpc::ServerReaderWriter<v1::TransformResponse, v1::TransformRequest>;
using EvaluateStream = grpc::ServerReaderWriter<v1::EvaluateResponse, v1::EvaluateRequest>;

// Adds a detail to an error, as the message google.rpc.NAME.
inline void Pack(const google::protobuf::Message& detail, const std::string& name,
                 rpc::Status& status) {
  google::protobuf::Any& any = *status.add_details();
  any.set_type_url("type.googleapis.com/google.rpc." + name);
  any.set_value(detail.SerializeAsString());
}
// Returns an error as phimapd would send it. It includes a retry delay unless `delay_ms` is 0.
inline grpc::Status Refusal(grpc::StatusCode code, const std::string& reason, int delay_ms = 0,
                            const std::map<std::string, std::string>& metadata = {}) {
  rpc::Status details;
  rpc::ErrorInfo info;
  info.set_reason(reason);
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  Pack(info, "ErrorInfo", details);
  if (delay_ms > 0) {
    rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_nanos(delay_ms * 1'000'000);
    Pack(retry, "RetryInfo", details);
  }
  return {code, "refused", details.SerializeAsString()};
}

// A server that listens on a free port of the loopback interface. A test sets its scripts before it
// makes calls.
class ScriptedServer : public v1::MappingService::Service,
                       public v1::TransformService::Service,
                       public v1::LearningService::Service {
 public:
  ScriptedServer() {
    grpc::ServerBuilder builder;
    // With SO_REUSEPORT, the server could get a port that another test is already using.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(static_cast<v1::MappingService::Service*>(this));
    builder.RegisterService(static_cast<v1::TransformService::Service*>(this));
    builder.RegisterService(static_cast<v1::LearningService::Service*>(this));
    server_ = builder.BuildAndStart();
    target_ = absl::StrCat("127.0.0.1:", port);
  }
  ~ScriptedServer() override { Stop(); }
  // Stops the server. Returns when no script is running any more.
  void Stop() { server_->Shutdown(); }

  const std::string& target() const { return target_; }

  // The scripts of the first build attempt, the second, and so on. If there are more attempts than
  // scripts, the test fails, and the attempt gets INTERNAL.
  std::vector<BuildScript> builds;
  std::function<grpc::Status(const v1::TransformRequest&, v1::TransformResponse&)> transform;
  std::function<grpc::Status(TransformStreamStream&)> transform_stream;
  std::function<grpc::Status(EvaluateStream&)> evaluate;
  std::function<grpc::Status(const v1::CancelBuildRequest&, v1::BuildJob&)> cancel_build;
  std::function<grpc::Status(const v1::ListMappingsRequest&, v1::ListMappingsResponse&)>
      list_mappings;
  std::function<grpc::Status(const v1::GetVersionRequest&, v1::Version&)> get_version;
  std::function<grpc::Status(const v1::SetAliasRequest&, v1::Alias&)> set_alias;
  std::function<grpc::Status(const v1::DeleteVersionRequest&, v1::DeleteVersionResponse&)>
      delete_version;
  std::function<grpc::Status(grpc::ServerWriter<v1::ArtifactChunk>&)> export_artifact;
  std::atomic<size_t> build_attempts = 0;

  // The value of "phimap-min-revision" in each call of SetAlias, Transform, TransformStream,
  // Evaluate and Export so far; "" for a call without it. The answers to these calls contain the
  // revisions in `revisions_told`, in order.
  std::vector<std::string> revisions_asked() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
  }
  std::vector<std::string> revisions_told;

  // The client's address in each call of Transform and TransformStream so far.
  std::vector<std::string> peers() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return peers_;
  }

 private:
  grpc::Status Build(grpc::ServerContext*, BuildStream* stream) override {
    const size_t attempt = build_attempts++;
    if (attempt >= builds.size()) return {grpc::StatusCode::INTERNAL, "unexpected attempt"};
    return builds[attempt](*stream);
  }
  grpc::Status CancelBuild(grpc::ServerContext*, const v1::CancelBuildRequest* request,
                           v1::BuildJob* job) override {
    return cancel_build(*request, *job);
  }
  grpc::Status ListMappings(grpc::ServerContext*, const v1::ListMappingsRequest* request,
                            v1::ListMappingsResponse* response) override {
    return list_mappings(*request, *response);
  }
  grpc::Status GetVersion(grpc::ServerContext*, const v1::GetVersionRequest* request,
                          v1::Version* version) override {
    return get_version(*request, *version);
  }
  grpc::Status SetAlias(grpc::ServerContext* context, const v1::SetAliasRequest* request,
                        v1::Alias* alias) override {
    TellRevision(*context);
    return set_alias(*request, *alias);
  }
  grpc::Status Export(grpc::ServerContext* context, const v1::ExportRequest*,
                      grpc::ServerWriter<v1::ArtifactChunk>* writer) override {
    TellRevision(*context);
    return export_artifact(*writer);
  }
  grpc::Status DeleteVersion(grpc::ServerContext*, const v1::DeleteVersionRequest* request,
                             v1::DeleteVersionResponse* response) override {
    return delete_version(*request, *response);
  }
  grpc::Status Transform(grpc::ServerContext* context, const v1::TransformRequest* request,
                         v1::TransformResponse* response) override {
    RecordPeer(*context);
    TellRevision(*context);
    return transform(*request, *response);
  }
  grpc::Status TransformStream(grpc::ServerContext* context,
                               TransformStreamStream* stream) override {
    RecordPeer(*context);
    TellRevision(*context);
    return transform_stream(*stream);
  }
  grpc::Status Evaluate(grpc::ServerContext* context, EvaluateStream* stream) override {
    TellRevision(*context);
    return evaluate(*stream);
  }

  void TellRevision(grpc::ServerContext& context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto asked = context.client_metadata().find("phimap-min-revision");
    asked_.emplace_back(asked == context.client_metadata().end()
                            ? ""
                            : std::string(asked->second.data(), asked->second.size()));
    if (asked_.size() > revisions_told.size()) return;
    context.AddTrailingMetadata("phimap-revision", revisions_told[asked_.size() - 1]);
  }

  void RecordPeer(const grpc::ServerContext& context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    peers_.push_back(context.peer());
  }

  std::unique_ptr<grpc::Server> server_;
  std::string target_;
  std::mutex mutex_;
  std::vector<std::string> peers_;  // guarded by mutex_
  std::vector<std::string> asked_;  // guarded by mutex_
};

// Stops the server in its destructor. A client's call may return while its script is still running.
// Declare this object after the variables that scripts use, so that the server stops before they
// are destroyed.
class StopAtEnd {
 public:
  explicit StopAtEnd(ScriptedServer& server) : server_(server) {}
  ~StopAtEnd() { server_.Stop(); }
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;

 private:
  ScriptedServer& server_;
};

}  // namespace phimap::client

#endif  // PHIMAP_TESTS_CLIENT_SCRIPTED_SERVER_H_
