// Runs a real server in the test's own process: a real store in a temporary folder, a real
// listener, and the real core.
#ifndef PHIMAP_TESTS_SERVER_RPC_SERVER_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_RPC_SERVER_FIXTURE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "phimap/rpc/error_details.pb.h"
#include "phimap/v1/evaluation_service.grpc.pb.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "phimap/v1/transform_service.grpc.pb.h"
#include "server/observe/log.h"
#include "server/server.h"
#include "server/sync/mutex.h"
#include "tests/server/support/gate.h"
#include "tests/server/support/temporary_folder.h"

namespace phimap::testing {

// The contents of an error's details.
struct ErrorFacts {
  std::string field;
  std::string reason;
  std::map<std::string, std::string> metadata;
  std::optional<int64_t> retry_ms;
};
ErrorFacts FactsOf(const grpc::Status& status);

// `rows` × `columns` float32 numbers in (-1, 1), from `seed`.
v1::Examples UniformExamples(int rows, int columns, uint64_t seed = 1);
// float32 rows in sparse form. Contains only the nonzero numbers.
v1::Examples SparseExamples(const v1::DenseRows& dense);
v1::Examples SparseUniformExamples(int rows, int columns, uint64_t seed = 1);

// A Build call, seen from the client, message by message.
class BuildStream {
 public:
  explicit BuildStream(v1::MappingService::Stub& stub) : stream_(stub.Build(&context_)) {}

  bool Send(const v1::BuildSpec& spec);
  bool Send(const v1::Examples& examples);
  bool SendFinish(int64_t row_count);
  void HalfClose() { stream_->WritesDone(); }
  void Vanish() { context_.TryCancel(); }
  // The next event; false at the end of the stream.
  bool Read(v1::BuildResponse* response) { return stream_->Read(response); }
  // Reads until `accepted`; nullopt if the stream ends first.
  std::optional<v1::BuildAccepted> AwaitAccepted();
  // Reads to the end of the stream, and returns the status. If a version arrives, version() returns
  // it.
  grpc::Status Finish();
  const std::optional<v1::Version>& version() const { return version_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::BuildRequest, v1::BuildResponse>> stream_;
  std::optional<v1::Version> version_;
};

class ServerFixture : public ::testing::Test {
 protected:
  ServerFixture();
  ~ServerFixture() override;

  // Opens the store, and begins to serve. May be called again after Stop().
  void Start();
  void Stop(absl::Duration drain = absl::ZeroDuration());
  void Restart();

  static v1::BuildSpec Spec(const std::string& mapping = "letter",
                            const std::string& expression = "f2(landmarks=5)",
                            const std::string& id = "00000000-0000-4000-8000-000000000001");
  // Builds a version from `rows` × 3 uniform numbers.
  grpc::Status Build(const v1::BuildSpec& spec, int rows = 40,
                     std::optional<v1::Version>* version = nullptr);
  // Builds a version with a new build id. The build must succeed.
  v1::Version MustBuild(const std::string& mapping = "letter",
                        const std::string& expression = "f2(landmarks=5)");
  grpc::Status Transform(const v1::TransformRequest& request, v1::TransformResponse* response);
  // Expects that there is no version, no blob, no temporary file, and no build in progress.
  void ExpectNothingStored();
  // The answer to GET /metrics. REQUIRES: options_.http was set before Start.
  std::string Scrape() { return HttpGet("/metrics"); }
  // The head and body of the answer to GET `path`. REQUIRES: options_.http was set before Start.
  std::string HttpGet(const std::string& path);

  TemporaryFolder folder_;
  ServerOptions options_;
  Server::Hooks hooks_;
  // Build threads wait at this gate before each tile and each block.
  Gate build_gate_{/*open=*/true};
  // Lines that the server logged at level ERROR.
  std::string LoggedErrors();

  Mutex log_mutex_;
  std::string log_ ABSL_GUARDED_BY(log_mutex_);
  Logger logger_{LogLevel::kError, [this](absl::string_view line) {
                   MutexLock lock(&log_mutex_);
                   log_.append(line.data(), line.size());
                 }};
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::MappingService::Stub> mappings_;
  std::unique_ptr<v1::TransformService::Stub> transforms_;
  std::unique_ptr<v1::EvaluationService::Stub> evaluations_;
  int next_id_ = 100;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_RPC_SERVER_FIXTURE_H_
