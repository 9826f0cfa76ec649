#include "client/cpp/client.h"

#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/channel_interface.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/calls.h"
#include "client/cpp/channel_factory.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/revision_memory.h"
#include "client/cpp/row_source.h"
#include "core/digest/named_columns.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "phimap/v1/evaluation_service.grpc.pb.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "phimap/v1/transform_service.grpc.pb.h"

namespace phimap::client {
namespace {

// These types stand for the messages of the health service. Those messages are not compiled here,
// because in a program that contains a gRPC server, the gRPC library registers them. On the wire, a
// HealthCheckRequest (one string, field 1) equals a StringValue, and a HealthCheckResponse (one
// enum, field 1) equals an Int32Value.
using HealthRequest = google::protobuf::StringValue;
using HealthResponse = google::protobuf::Int32Value;

constexpr char kHealthMethod[] = "/grpc.health.v1.Health/Check";
constexpr int kServing = 1;

// Returns true if the server reports that it serves `service`, such as
// "phimap.v1.TransformService"; an empty name asks for the server as a whole. Returns NOT_FOUND if
// the server has no such service.
absl::StatusOr<bool> CallHealth(const std::shared_ptr<grpc::ChannelInterface>& channel,
                                absl::string_view service, absl::Time deadline) {
  HealthRequest request;
  request.set_value(std::string(service));
  HealthResponse response;
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  std::promise<grpc::Status> done;
  grpc::TemplatedGenericStub<HealthRequest, HealthResponse>(channel).UnaryCall(
      &context, kHealthMethod, grpc::StubOptions(), &request, &response,
      [&done](grpc::Status status) { done.set_value(std::move(status)); });
  const absl::Status status = FromGrpc(done.get_future().get());
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(absl::StrCat("the server has no service '", service, "'"));
  }
  PHIMAP_RETURN_IF_ERROR(status);
  return response.value() == kServing;
}

constexpr int kPageSize = 1000;  // The API's limit.
constexpr int kMaxChannels = 64;
// Time limit for telling the server that a build was cancelled. Short, because the user is waiting.
constexpr absl::Duration kCancelTimeout = absl::Seconds(5);

absl::Status NeverMoved(absl::string_view mapping, const v1::Alias& alias) {
  return absl::FailedPreconditionError(
      absl::StrCat(mapping, "@", alias.name(), " has pointed at version ", alias.version(),
                   " since it was made; there is no previous version"));
}

absl::Status GoneBefore(absl::string_view mapping, const v1::Alias& alias) {
  return absl::FailedPreconditionError(
      absl::StrCat(mapping, "@", alias.name(), " cannot go back to version ",
                   alias.previous_version(), ": it was deleted since the alias moved to version ",
                   alias.version(), ". The alias is unchanged; set it to an existing version"));
}

class GrpcClient final : public Client {
 public:
  GrpcClient(const ChannelFactory& channels, const ConnectOptions& options) : options_(options) {
    for (int i = 0; i < options.channels; ++i) {
      const std::shared_ptr<grpc::Channel> channel = channels.Make();
      if (i == 0) first_ = channel;
      transforms_.push_back(v1::TransformService::NewStub(channel));
    }
    mappings_ = v1::MappingService::NewStub(first_);
    evaluations_ = v1::EvaluationService::NewStub(first_);
  }

  absl::StatusOr<v1::Version> Build(const BuildOptions& options, RowSource& source,
                                    const BuildObserver& observer, CancelToken* cancel) override {
    CancelToken never;
    BuildOptions with_id = options;
    if (with_id.build_id.empty()) with_id.build_id = RandomUuid();
    absl::StatusOr<v1::Version> version = CallBuild(*mappings_, revisions_, options_.retry, with_id,
                                                    source, observer, cancel ? *cancel : never);
    if (version.ok() || cancel == nullptr || !cancel->cancelled()) return version;
    return AfterCancel(with_id, version.status());
  }

  absl::StatusOr<TransformResult> Transform(absl::string_view reference, ExampleBlock rows,
                                            const TransformOptions& options) override {
    if (rows.empty()) return absl::InvalidArgumentError("there are no rows to transform");
    const int32_t row_count = rows.rows();
    v1::TransformRequest request;
    request.set_reference(std::string(reference));
    request.set_expected_digest(options.expected_digest);
    request.set_column_names_hash(ColumnNamesHash(options.column_names));
    ToExamples(std::move(rows), *request.mutable_examples());
    v1::TransformResponse response;
    const absl::Time deadline = absl::Now() + options.timeout;
    const absl::Status mapped = CallWithRetries(options_.retry, deadline, [&] {
      return Attempt(deadline, [&](grpc::ClientContext& context) {
        return NextTransforms().Transform(&context, request, &response);
      });
    });
    PHIMAP_RETURN_IF_ERROR(WithBothLists(mapped, reference, options.column_names));
    TransformResult result{.version = std::move(*response.mutable_version())};
    PHIMAP_ASSIGN_OR_RETURN(result.features,
                            FromAnswer(std::move(*response.mutable_features()), row_count));
    return result;
  }

  absl::StatusOr<TransformStreamResult> TransformStream(absl::string_view reference,
                                                        RowSource& source, const FeatureSink& sink,
                                                        const TransformStreamOptions& options,
                                                        CancelToken* cancel) override {
    if (options.window < 1 || options.rows_per_request < 0) {
      return absl::InvalidArgumentError("window must be >= 1 and rows_per_request >= 0");
    }
    CancelToken never;
    absl::StatusOr<TransformStreamResult> result =
        CallTransformStream(NextTransforms(), revisions_, options_.retry, std::string(reference),
                            source, sink, options, cancel ? *cancel : never);
    if (result.ok()) return result;
    return WithBothLists(result.status(), reference, source.column_names());
  }

  absl::StatusOr<std::vector<v1::Mapping>> ListMappings() override {
    std::vector<v1::Mapping> all;
    v1::ListMappingsRequest request;
    request.set_page_size(kPageSize);
    do {
      PHIMAP_ASSIGN_OR_RETURN(v1::ListMappingsResponse page,
                              Call<v1::ListMappingsResponse>(&Stub::ListMappings, request));
      for (v1::Mapping& mapping : *page.mutable_mappings()) all.push_back(std::move(mapping));
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return all;
  }

  absl::StatusOr<v1::Mapping> GetMapping(absl::string_view mapping) override {
    v1::GetMappingRequest request;
    request.set_mapping(std::string(mapping));
    return Call<v1::Mapping>(&Stub::GetMapping, request);
  }

  absl::StatusOr<std::vector<v1::Version>> ListVersions(absl::string_view mapping) override {
    std::vector<v1::Version> all;
    v1::ListVersionsRequest request;
    request.set_mapping(std::string(mapping));
    request.set_page_size(kPageSize);
    do {
      PHIMAP_ASSIGN_OR_RETURN(v1::ListVersionsResponse page,
                              Call<v1::ListVersionsResponse>(&Stub::ListVersions, request));
      for (v1::Version& version : *page.mutable_versions()) all.push_back(std::move(version));
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return all;
  }

  absl::StatusOr<v1::Version> GetVersion(absl::string_view reference) override {
    v1::GetVersionRequest request;
    request.set_reference(std::string(reference));
    return Call<v1::Version>(&Stub::GetVersion, request);
  }

  absl::StatusOr<v1::Version> GetVersionNow(absl::string_view reference) override {
    v1::GetVersionRequest request;
    request.set_reference(std::string(reference));
    v1::Version version;
    const absl::Status once =
        Attempt(absl::Now() + options_.call_timeout, [&](grpc::ClientContext& context) {
          return mappings_->GetVersion(&context, request, &version);
        });
    if (once.ok()) return version;
    const std::optional<ErrorDetail> detail = DetailOf(once);
    if (detail.has_value() && detail->reason == "DATABASE_UNAVAILABLE") return once;
    return GetVersion(reference);
  }

  absl::StatusOr<v1::BuildJob> GetBuild(absl::string_view mapping,
                                        absl::string_view build_id) override {
    v1::GetBuildRequest request;
    request.set_mapping(std::string(mapping));
    request.set_build_id(std::string(build_id));
    return Call<v1::BuildJob>(&Stub::GetBuild, request);
  }

  absl::StatusOr<v1::BuildJob> CancelBuild(absl::string_view mapping,
                                           absl::string_view build_id) override {
    return CancelWithin(options_.call_timeout, mapping, build_id);
  }

  absl::StatusOr<v1::Alias> SetAlias(absl::string_view mapping, absl::string_view alias,
                                     int64_t version, absl::string_view etag) override {
    v1::SetAliasRequest request;
    request.set_mapping(std::string(mapping));
    request.set_alias(std::string(alias));
    request.set_version(version);
    request.set_etag(std::string(etag));
    return Change<v1::Alias>(&Stub::SetAlias, request);
  }

  absl::StatusOr<v1::Alias> SetAliasToDigest(absl::string_view mapping, absl::string_view alias,
                                             absl::string_view digest,
                                             absl::string_view etag) override {
    v1::SetAliasRequest request;
    request.set_mapping(std::string(mapping));
    request.set_alias(std::string(alias));
    request.set_digest(std::string(digest));
    request.set_etag(std::string(etag));
    return Change<v1::Alias>(&Stub::SetAlias, request);
  }

  absl::StatusOr<v1::Alias> RollBackAlias(absl::string_view mapping,
                                          absl::string_view alias) override {
    PHIMAP_ASSIGN_OR_RETURN(const v1::Mapping found, GetMapping(mapping));
    for (const v1::Alias& current : found.aliases()) {
      if (current.name() != alias) continue;
      if (current.previous_version() == 0) return NeverMoved(mapping, current);
      absl::StatusOr<v1::Alias> back =
          SetAlias(mapping, alias, current.previous_version(), current.etag());
      if (absl::IsNotFound(back.status())) return GoneBefore(mapping, current);
      return back;
    }
    return absl::NotFoundError(
        absl::StrCat("mapping \"", mapping, "\" has no alias \"", alias, "\""));
  }

  absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                           absl::string_view etag) override {
    v1::DeleteAliasRequest request;
    request.set_mapping(std::string(mapping));
    request.set_alias(std::string(alias));
    request.set_etag(std::string(etag));
    return Change<v1::DeleteAliasResponse>(&Stub::DeleteAlias, request).status();
  }

  absl::Status DeleteVersion(absl::string_view mapping, int64_t version,
                             bool give_up_rollback) override {
    v1::DeleteVersionRequest request;
    request.set_mapping(std::string(mapping));
    request.set_version(version);
    request.set_give_up_rollback(give_up_rollback);
    return Change<v1::DeleteVersionResponse>(&Stub::DeleteVersion, request).status();
  }

  absl::StatusOr<v1::Version> KeepVersion(absl::string_view reference,
                                          absl::Duration ttl) override {
    v1::KeepVersionRequest request;
    request.set_reference(std::string(reference));
    if (ttl != absl::InfiniteDuration()) ToProto(ttl, *request.mutable_ttl());
    return Change<v1::Version>(&Stub::KeepVersion, request);
  }

  absl::Status DeleteMapping(absl::string_view mapping, bool only_if_empty) override {
    v1::DeleteMappingRequest request;
    request.set_only_if_empty(only_if_empty);
    request.set_mapping(std::string(mapping));
    return Change<v1::DeleteMappingResponse>(&Stub::DeleteMapping, request).status();
  }

  absl::StatusOr<ExportResult> Export(absl::string_view reference, const ArtifactSink& sink,
                                      CancelToken* cancel) override {
    CancelToken never;
    bool begun = false;
    const ArtifactSink first_noted = [&](absl::string_view bytes) {
      begun = true;
      return sink(bytes);
    };
    absl::StatusOr<ExportResult> result = absl::UnknownError("");
    CallWithRetries(options_.retry, absl::InfiniteFuture(), [&] {
      result = CallExport(*mappings_, revisions_, std::string(reference), first_noted,
                          cancel ? *cancel : never);
      // The sink's bytes cannot be taken back, so an export that has begun is not retried.
      return begun ? absl::OkStatus() : result.status();
    }).IgnoreError();
    return result;
  }

  absl::StatusOr<v1::Version> Import(absl::string_view mapping, const ArtifactSource& source,
                                     CancelToken* cancel) override {
    CancelToken never;
    return CallImport(*mappings_, revisions_, std::string(mapping), source,
                      cancel ? *cancel : never);
  }

  absl::StatusOr<v1::Evaluation> Evaluate(const EvaluateOptions& options, LabeledRowSource& source,
                                          const EvaluateObserver& observer,
                                          CancelToken* cancel) override {
    CancelToken never;
    absl::StatusOr<v1::Evaluation> evaluation = CallEvaluate(
        *evaluations_, revisions_, options, source, observer, cancel ? *cancel : never);
    if (evaluation.ok()) return evaluation;
    return WithBothLists(evaluation.status(), options.reference, source.column_names());
  }

  absl::StatusOr<v1::ListCapabilitiesResponse> ListCapabilities() override {
    return Call<v1::ListCapabilitiesResponse>(&Stub::ListCapabilities,
                                              v1::ListCapabilitiesRequest());
  }

  absl::StatusOr<v1::GetDriftResponse> GetDrift(absl::string_view mapping) override {
    v1::GetDriftRequest request;
    request.set_mapping(std::string(mapping));
    return Call<v1::GetDriftResponse>(&Stub::GetDrift, request);
  }

  absl::StatusOr<v1::AdviseResponse> Advise(const v1::AdviseRequest& request) override {
    return Call<v1::AdviseResponse>(&Stub::Advise, request);
  }

  absl::StatusOr<v1::EstimateBuildResponse> EstimateBuild(const BuildOptions& options, int64_t rows,
                                                          int32_t columns) override {
    v1::EstimateBuildRequest request;
    ToSpec(options, *request.mutable_spec());
    request.set_rows(rows);
    request.set_columns(columns);
    return Call<v1::EstimateBuildResponse>(&Stub::EstimateBuild, request);
  }

  absl::StatusOr<bool> CheckHealth(absl::string_view service, absl::Duration timeout) override {
    return CallHealth(first_, service, absl::Now() + timeout);
  }

 private:
  using Stub = v1::MappingService::StubInterface;

  template <typename Response, typename Request>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  // Adds the names of both sides to an error COLUMN_NAMES_MISMATCH: returns such a status with both
  // lists of names in its message. The server cannot list the names, because the request has only a
  // hash of them. Returns `status` unchanged if it is any other status, or if the version's names
  // cannot be fetched.
  absl::Status WithBothLists(const absl::Status& status, absl::string_view reference,
                             const std::vector<std::string>& came) {
    const std::optional<ErrorDetail> detail = DetailOf(status);
    if (!detail.has_value() || detail->reason != "COLUMN_NAMES_MISMATCH") return status;
    const absl::StatusOr<v1::Version> version = GetVersion(reference);
    if (!version.ok()) return status;
    const std::vector<std::string> expected(version->column_names().begin(),
                                            version->column_names().end());
    // The alias may have moved in the meantime.
    if (expected == came) return status;
    return ColumnsDiffer(reference, expected, came, "");
  }

  // Makes a unary call of the mapping service.
  template <typename Response, typename Request>
  absl::StatusOr<Response> Call(Method<Response, Request> method, const Request& request) {
    return CallWithin<Response>(options_.call_timeout, method, request);
  }

  // Makes a unary call that changes something. However often it is sent, it is made once.
  template <typename Response, typename Request>
  absl::StatusOr<Response> Change(Method<Response, Request> method, Request request) {
    request.set_operation_id(RandomUuid());
    return Call<Response>(method, request);
  }

  template <typename Response, typename Request>
  absl::StatusOr<Response> CallWithin(absl::Duration timeout, Method<Response, Request> method,
                                      const Request& request) {
    const absl::Time deadline = absl::Now() + timeout;
    Response response;
    PHIMAP_RETURN_IF_ERROR(CallWithRetries(options_.retry, deadline, [&] {
      return Attempt(deadline, [&](grpc::ClientContext& context) {
        return (*mappings_.*method)(&context, request, &response);
      });
    }));
    return response;
  }

  // Makes one attempt at a unary call.
  absl::Status Attempt(absl::Time deadline,
                       absl::FunctionRef<grpc::Status(grpc::ClientContext&)> call) {
    grpc::ClientContext context;
    SetDeadline(context, deadline);
    const RevisionMemory::Asked asked = revisions_.AddTo(context);
    const absl::Status status = FromGrpc(call(context));
    revisions_.Note(context, status, asked);
    return status;
  }

  absl::StatusOr<v1::BuildJob> CancelWithin(absl::Duration timeout, absl::string_view mapping,
                                            absl::string_view build_id) {
    v1::CancelBuildRequest request;
    request.set_mapping(std::string(mapping));
    request.set_build_id(std::string(build_id));
    return CallWithin<v1::BuildJob>(timeout, &Stub::CancelBuild, request);
  }

  // Cancels the build on the server and returns the error for the caller. NOT_FOUND is normal
  // before `finish`, because a broken stream leaves no build.
  absl::Status AfterCancel(const BuildOptions& options, const absl::Status& status) {
    absl::StatusOr<v1::BuildJob> job =
        CancelWithin(kCancelTimeout, options.mapping, options.build_id);
    if (job.ok() && job->state() == v1::BuildJob::DONE) {
      return absl::CancelledError(absl::StrCat("cancelled too late: ", job->version().mapping(),
                                               "@", job->version().number(),
                                               " was already published"));
    }
    if (job.ok() || absl::IsNotFound(job.status())) return status;
    return absl::CancelledError(absl::StrCat("the build was cancelled here, but the server could ",
                                             "not be told: ", job.status().message()));
  }

  v1::TransformService::StubInterface& NextTransforms() {
    return *transforms_[next_.fetch_add(1, std::memory_order_relaxed) % transforms_.size()];
  }

  const ConnectOptions options_;
  std::shared_ptr<grpc::Channel> first_;
  std::unique_ptr<v1::MappingService::StubInterface> mappings_;
  std::unique_ptr<v1::EvaluationService::StubInterface> evaluations_;
  // One per channel.
  std::vector<std::unique_ptr<v1::TransformService::StubInterface>> transforms_;
  std::atomic<uint64_t> next_{0};
  RevisionMemory revisions_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(absl::string_view target,
                                                        const ConnectOptions& options) {
  PHIMAP_ASSIGN_OR_RETURN(const ChannelFactory channels, ChannelFactory::Create(target, options));
  if (options.channels < 1 || options.channels > kMaxChannels) {
    return absl::InvalidArgumentError(
        absl::StrCat("channels: expected 1..", kMaxChannels, ", got ", options.channels));
  }
  return std::make_unique<GrpcClient>(channels, options);
}

}  // namespace phimap::client
