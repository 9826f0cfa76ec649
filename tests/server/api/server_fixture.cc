#include "tests/server/api/server_fixture.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {

ErrorFacts FactsOf(const grpc::Status& status) {
  ErrorFacts facts;
  rpc::Status details;
  PHIMAP_CHECK(details.ParseFromString(status.error_details()));
  for (const google::protobuf::Any& any : details.details()) {
    if (any.type_url() == "type.googleapis.com/google.rpc.BadRequest") {
      rpc::BadRequest bad;
      PHIMAP_CHECK(bad.ParseFromString(any.value()));
      facts.field = bad.field_violations(0).field();
    } else if (any.type_url() == "type.googleapis.com/google.rpc.ErrorInfo") {
      rpc::ErrorInfo info;
      PHIMAP_CHECK(info.ParseFromString(any.value()) && info.domain() == "phimap");
      facts.reason = info.reason();
      facts.metadata = {info.metadata().begin(), info.metadata().end()};
    } else if (any.type_url() == "type.googleapis.com/google.rpc.RetryInfo") {
      rpc::RetryInfo retry;
      PHIMAP_CHECK(retry.ParseFromString(any.value()));
      facts.retry_ms =
          retry.retry_delay().seconds() * 1000 + retry.retry_delay().nanos() / 1'000'000;
    }
  }
  return facts;
}

::testing::Matcher<grpc::Status> IsError(grpc::StatusCode code, const TextMatcher& reason,
                                         const TextMatcher& field, const TextMatcher& message) {
  const auto reason_of = [](const grpc::Status& status) { return FactsOf(status).reason; };
  const auto field_of = [](const grpc::Status& status) { return FactsOf(status).field; };
  return AllOf(::testing::Property("code", &grpc::Status::error_code, code),
               ::testing::ResultOf("the reason", reason_of, reason),
               ::testing::ResultOf("the field", field_of, field),
               ::testing::Property("message", &grpc::Status::error_message, message));
}

void ExpectMetadata(const grpc::Status& status, const std::string& facts) {
  std::map<std::string, std::string> metadata = FactsOf(status).metadata;
  for (const absl::string_view fact : absl::StrSplit(facts, "; ", absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(fact, absl::MaxSplits('=', 1));
    EXPECT_EQ(metadata[pair.first], pair.second) << pair.first;
  }
}

v1::Examples UniformExamples(int rows, int columns, uint64_t seed) {
  const Matrix<float> numbers = UniformFloatRows({.rows = rows, .cols = columns, .seed = seed});
  const RowsView view = WireRows(numbers);
  v1::Examples examples;
  examples.mutable_dense()->set_rows(rows);
  examples.mutable_dense()->set_columns(columns);
  examples.mutable_dense()->set_float32_le(view.data, rows * view.RowBytes());
  return examples;
}

std::vector<double> NumbersOf(const v1::DenseRows& rows) {
  if (!rows.float64_le().empty()) return ArrayOf<double>(rows.float64_le());
  const std::vector<float> singles = ArrayOf<float>(rows.float32_le());
  return {singles.begin(), singles.end()};
}

v1::TransformRequest TransformOf(const std::string& reference, const v1::Examples& examples) {
  v1::TransformRequest request;
  request.set_reference(reference);
  *request.mutable_examples() = examples;
  return request;
}

v1::Examples SparseExamples(const v1::DenseRows& dense) {
  v1::Examples examples;
  v1::SparseRows& sparse = *examples.mutable_sparse();
  sparse.set_rows(dense.rows());
  sparse.set_columns(dense.columns());
  const auto append = [](auto value, std::string* to) {
    to->append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  int64_t entries = 0;
  append(entries, sparse.mutable_row_offsets_le());
  sparse.mutable_float32_le();
  for (int32_t i = 0; i < dense.rows(); ++i) {
    for (int32_t j = 0; j < dense.columns(); ++j) {
      float value = 0;
      const size_t at = sizeof(value) * static_cast<size_t>(i * dense.columns() + j);
      std::memcpy(&value, dense.float32_le().data() + at, sizeof(value));
      if (value == 0) continue;
      append(j, sparse.mutable_column_indices_le());
      append(value, sparse.mutable_float32_le());
      ++entries;
    }
    append(entries, sparse.mutable_row_offsets_le());
  }
  return examples;
}

v1::Examples SparseUniformExamples(int rows, int columns, uint64_t seed) {
  return SparseExamples(UniformExamples(rows, columns, seed).dense());
}

BuildStream::BuildStream(v1::MappingService::Stub& stub, const std::string& token) {
  if (!token.empty()) context_.AddMetadata("authorization", absl::StrCat("Bearer ", token));
  stream_ = stub.Build(&context_);
}

bool BuildStream::Send(const v1::BuildSpec& spec) {
  v1::BuildRequest request;
  *request.mutable_spec() = spec;
  return stream_->Write(request);
}

bool BuildStream::Send(const v1::Examples& examples) {
  v1::BuildRequest request;
  *request.mutable_examples() = examples;
  return stream_->Write(request);
}

bool BuildStream::SendFinish(int64_t row_count) {
  v1::BuildRequest request;
  request.mutable_finish()->set_row_count(row_count);
  return stream_->Write(request);
}

std::optional<v1::BuildAccepted> BuildStream::AwaitAccepted() {
  v1::BuildResponse response;
  while (Read(&response)) {
    if (response.has_accepted()) return response.accepted();
  }
  return std::nullopt;
}

grpc::Status BuildStream::Finish() {
  v1::BuildResponse response;
  while (Read(&response)) {
    if (response.has_version()) version_ = response.version();
  }
  return stream_->Finish();
}

ServerFixture::ServerFixture() {
  options_.data_dir = folder_.path();
  options_.listen = "127.0.0.1:0";
  options_.http = "";
  options_.compute_threads = 2;
  hooks_.build_yield = [this] { build_gate_.Wait(); };
}

ServerFixture::~ServerFixture() { Stop(); }

void ServerFixture::Start() {
  auto store = SqliteStore::Open({.data_dir = options_.data_dir}, PosixFileSystem()).value();
  auto server = Server::Start(options_, std::move(store), logger_, hooks_).value();
  server_ = std::move(server);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // A local pool of subchannels ensures that the channel does not reuse a connection to an earlier
  // server.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(server_->grpc_address(), grpc::InsecureChannelCredentials(),
                                       arguments);
  mappings_ = v1::MappingService::NewStub(channel_);
  transforms_ = v1::TransformService::NewStub(channel_);
  evaluations_ = v1::LearningService::NewStub(channel_);
}

void ServerFixture::Stop(absl::Duration drain) {
  if (server_ == nullptr) return;
  server_->Shutdown(drain);
  build_gate_.Open();  // lets cancelled builds that wait at the gate end
  server_.reset();
}

void ServerFixture::Restart() {
  Stop();
  Start();
}

v1::BuildSpec ServerFixture::Spec(const std::string& mapping, const std::string& expression,
                                  const std::string& id) {
  v1::BuildSpec spec;
  spec.set_name(mapping);
  spec.set_build_id(id);
  spec.set_spec(expression);
  spec.set_kernel("rbf(gamma=0.5)");
  return spec;
}

grpc::Status ServerFixture::Build(const v1::BuildSpec& spec, int rows,
                                  std::optional<v1::Version>* version) {
  return Build(spec, rows > 0 ? UniformExamples(rows, 3) : v1::Examples(), rows, version);
}

grpc::Status ServerFixture::Build(const v1::BuildSpec& spec, const v1::Examples& examples,
                                  int64_t count, std::optional<v1::Version>* version) {
  BuildStream stream(*mappings_);
  stream.Send(spec);
  if (count > 0) stream.Send(examples);
  stream.SendFinish(count);
  stream.HalfClose();
  const grpc::Status status = stream.Finish();
  if (version != nullptr) *version = stream.version();
  return status;
}

v1::Version ServerFixture::MustBuild(const std::string& mapping, const std::string& expression) {
  std::optional<v1::Version> version;
  const std::string id = absl::StrFormat("00000000-0000-4000-8000-%012d", next_id_++);
  const grpc::Status status = Build(Spec(mapping, expression, id), 40, &version);
  PHIMAP_CHECK(status.ok() && version.has_value());
  return *version;
}

grpc::Status ServerFixture::Transform(const v1::TransformRequest& request,
                                      v1::TransformResponse* response) {
  return transforms_->Transform(NewContext(), request, response);
}

grpc::Status ServerFixture::Transform(const v1::TransformRequest& request) {
  v1::TransformResponse response;
  return Transform(request, &response);
}

v1::TransformResponse ServerFixture::Mapped(const v1::TransformRequest& request) {
  v1::TransformResponse response;
  EXPECT_THAT(Transform(request, &response), IsOk());
  return response;
}

grpc::ClientContext* ServerFixture::NewContext() {
  MutexLock lock(&contexts_mutex_);
  return &contexts_.emplace_back();
}

void ServerFixture::ExpectNothingStored() {
  v1::ListMappingsResponse mappings = Answer(&MappingStub::ListMappings);
  EXPECT_EQ(mappings.mappings_size(), 0);
  EXPECT_EQ(folder_.CountBlobs(), 0);
  v1::ListBuildsResponse builds = Answer(&MappingStub::ListBuilds);
  for (const v1::BuildJob& build : builds.builds()) {
    EXPECT_GE(build.state(), v1::BuildJob::STATE_DONE) << build.ShortDebugString();
  }
}

std::string ServerFixture::LoggedErrors() {
  MutexLock lock(&log_mutex_);
  return log_;
}

std::string ServerFixture::HttpGet(const std::string& path) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int port = 0;
  const std::string& http = server_->http_address();
  PHIMAP_CHECK(absl::SimpleAtoi(http.substr(http.rfind(':') + 1), &port));
  address.sin_port = htons(static_cast<uint16_t>(port));
  PHIMAP_CHECK(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  PHIMAP_CHECK(write(socket, request.data(), request.size()) ==
               static_cast<ssize_t>(request.size()));
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(socket, buffer, sizeof(buffer))) > 0;) text.append(buffer, n);
  close(socket);
  return text;
}

}  // namespace phimap::testing
