// Runs a real server in the test's own process: a real store in a temporary folder, a real
// listener, and the real core.
#ifndef PHIMAP_TESTS_SERVER_API_SERVER_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_API_SERVER_FIXTURE_H_

#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "core/thread/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "phimap/rpc/error_details.pb.h"
#include "phimap/v1/learning_service.grpc.pb.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "phimap/v1/transform_service.grpc.pb.h"
#include "server/observe/log.h"
#include "server/server.h"
#include "tests/server/support/gate.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/matchers.h"
#include "tests/support/text_proto.h"

namespace grpc {
inline void PrintTo(const Status& status, std::ostream* out) {
  *out << status.error_code() << ": " << status.error_message();
}
}  // namespace grpc

namespace phimap::testing {

using Code = grpc::StatusCode;

// The contents of an error's details.
struct ErrorFacts {
  std::string field;
  std::string reason;
  std::map<std::string, std::string> metadata;
  std::optional<int64_t> retry_ms;
};
ErrorFacts FactsOf(const grpc::Status& status);
MATCHER(IsOk, "is OK") { return arg.ok(); }
// Matches an error by its code, the reason and the field of its details, and its message.
::testing::Matcher<grpc::Status> IsError(grpc::StatusCode code, const TextMatcher& reason = _,
                                         const TextMatcher& field = _,
                                         const TextMatcher& message = _);
// Expects that the error's metadata contains `facts`, written as "name=value; name=value".
void ExpectMetadata(const grpc::Status& status, const std::string& facts);

// `rows` × `columns` float32 numbers in (-1, 1), from `seed`.
v1::Examples UniformExamples(int rows, int columns, uint64_t seed = 1);
// float32 rows in sparse form. Contains only the nonzero numbers.
v1::Examples SparseExamples(const v1::DenseRows& dense);
v1::Examples SparseUniformExamples(int rows, int columns, uint64_t seed = 1);

// The numbers of rows in either float type.
template <typename T>
std::vector<T> ArrayOf(const std::string& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Replaces number `index` of an array of numbers.
template <typename T>
void Put(T value, int64_t index, std::string* to) {
  to->replace(static_cast<size_t>(index) * sizeof(T), sizeof(T),
              std::string(reinterpret_cast<const char*>(&value), sizeof(T)));
}

std::vector<double> NumbersOf(const v1::DenseRows& rows);

v1::TransformRequest TransformOf(const std::string& reference, const v1::Examples& examples);

// A Build call, seen from the client, message by message.
class BuildStream {
 public:
  explicit BuildStream(v1::MappingService::Stub& stub, const std::string& token = "");

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
  // Builds a version from these examples, of which there are `count`.
  grpc::Status Build(const v1::BuildSpec& spec, const v1::Examples& examples, int64_t count,
                     std::optional<v1::Version>* version = nullptr);
  // Builds a version with a new build id. The build must succeed.
  v1::Version MustBuild(const std::string& mapping = "letter",
                        const std::string& expression = "f2(landmarks=5)");
  grpc::Status Transform(const v1::TransformRequest& request, v1::TransformResponse* response);
  grpc::Status Transform(const v1::TransformRequest& request);
  // Returns the answer of a Transform, which must succeed.
  v1::TransformResponse Mapped(const v1::TransformRequest& request);
  // Returns the answer of a call, such as Answer(&MappingStub::GetVersion, request). The call must
  // succeed.
  using MappingStub = v1::MappingService::Stub;
  template <typename Request, typename Response>
  Response Answer(grpc::Status (MappingStub::*method)(grpc::ClientContext*, const Request&,
                                                      Response*),
                  const Request& request = {}) {
    Response response;
    EXPECT_THAT(((*mappings_).*method)(NewContext(), request, &response), IsOk());
    return response;
  }
  // Calls a method with a request in text form, such as "reference: 'letter@1'".
  template <typename Request, typename Response>
  grpc::Status Ask(grpc::Status (MappingStub::*method)(grpc::ClientContext*, const Request&,
                                                       Response*),
                   const std::string& request, Response* response = nullptr) {
    Response unused;
    return ((*mappings_).*method)(NewContext(), Parsed<Request>(request),
                                  response == nullptr ? &unused : response);
  }
  // Like Ask, but the call must succeed. Returns its answer.
  template <typename Request, typename Response>
  Response Answer(grpc::Status (MappingStub::*method)(grpc::ClientContext*, const Request&,
                                                      Response*),
                  const std::string& request) {
    return Answer(method, Parsed<Request>(request));
  }
  // Points an alias to a version, as in "letter@1".
  grpc::Status SetAlias(const std::string& version, const std::string& alias = "prod") {
    return Ask(&MappingStub::SetAlias, "reference: '" + version + "' alias: '" + alias + "'");
  }
  // Ends the requests of a stream, whose answers must have been read, and expects that it
  // succeeded.
  template <typename Stream>
  static void ExpectEnds(Stream& stream) {
    v1::TransformResponse response;
    stream.WritesDone();
    EXPECT_FALSE(stream.Read(&response));
    EXPECT_THAT(stream.Finish(), IsOk());
  }
  // Returns the context of a new call. It lives as long as the test.
  grpc::ClientContext* NewContext();
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
  std::unique_ptr<v1::LearningService::Stub> evaluations_;
  int next_id_ = 100;

 private:
  Mutex contexts_mutex_;
  std::list<grpc::ClientContext> contexts_ ABSL_GUARDED_BY(contexts_mutex_);
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_API_SERVER_FIXTURE_H_
