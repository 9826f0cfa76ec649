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
#include "absl/memory/memory.h"
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
#include "core/status/words.h"
#include "phimap/v1/learning_service.grpc.pb.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "phimap/v1/predict_service.grpc.pb.h"
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

absl::Status NeverMoved(absl::string_view name, const v1::Alias& alias) {
  return absl::FailedPreconditionError(
      absl::StrCat(name, "@", alias.name(), " has pointed at version ", alias.version(),
                   " since it was made; there is no previous version"));
}

absl::Status GoneBefore(absl::string_view name, const v1::Alias& alias) {
  return absl::FailedPreconditionError(
      absl::StrCat(name, "@", alias.name(), " cannot go back to version ", alias.previous_version(),
                   ": it was deleted since the alias moved to version ", alias.version(),
                   ". The alias is unchanged; set it to an existing version"));
}

using Stub = v1::MappingService::StubInterface;

template <typename Response, typename Request>
using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

}  // namespace

// The channels and what the calls share. Thread-safe.
class Client::Connection {
 public:
  Connection(const ChannelFactory& channels, const ConnectOptions& connect_options)
      : options(connect_options) {
    for (int i = 0; i < options.channels; ++i) {
      const std::shared_ptr<grpc::Channel> channel = channels.Make();
      if (i == 0) first = channel;
      transforms.push_back(v1::TransformService::NewStub(channel));
      predicts.push_back(v1::PredictService::NewStub(channel));
    }
    mappings = v1::MappingService::NewStub(first);
    learning = v1::LearningService::NewStub(first);
  }

  // Adds the names of both sides to an error COLUMN_NAMES_MISMATCH: returns such a status with both
  // lists of names in its message. The server cannot list the names, because the request has only a
  // hash of them. Returns `status` unchanged if it is any other status, or if the version's names
  // cannot be fetched.
  absl::Status WithBothLists(const absl::Status& status, absl::string_view reference,
                             const std::vector<std::string>& came) {
    const std::optional<ErrorDetail> detail = DetailOf(status);
    if (!detail.has_value() || detail->reason != reason::kColumnNamesMismatch) return status;
    const absl::StatusOr<v1::Version> version = GetVersion(reference);
    if (!version.ok()) return status;
    const std::vector<std::string> expected(version->column_names().begin(),
                                            version->column_names().end());
    // The alias may have moved in the meantime.
    if (expected == came) return status;
    return ColumnsDiffer(reference, expected, came, "");
  }

  absl::StatusOr<v1::Version> GetVersion(absl::string_view reference) {
    v1::GetVersionRequest request;
    request.set_reference(std::string(reference));
    return Call<v1::Version>(&Stub::GetVersion, request);
  }

  // Makes a unary call of the mapping service. One that changes something gets an id, so that
  // however often it is sent, the change is made once.
  template <typename Response, typename Request>
  absl::StatusOr<Response> Call(Method<Response, Request> method, Request request) {
    if constexpr (requires { request.set_operation_id(std::string()); }) {
      request.set_operation_id(RandomUuid());
    }
    return CallWithin<Response>(options.call_timeout, method, request);
  }

  // Returns the items of all pages of a list. `items` is the field of the answer that has them.
  template <typename Item, typename Response, typename Request>
  absl::StatusOr<std::vector<Item>> Pages(
      Method<Response, Request> method, Request request,
      google::protobuf::RepeatedPtrField<Item>* (Response::*items)()) {
    std::vector<Item> all;
    request.set_page_size(kPageSize);
    do {
      PHIMAP_ASSIGN_OR_RETURN(Response page, Call<Response>(method, request));
      for (Item& item : *(page.*items)()) all.push_back(std::move(item));
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return all;
  }

  template <typename Response, typename Request>
  absl::StatusOr<Response> CallWithin(absl::Duration timeout, Method<Response, Request> method,
                                      const Request& request) {
    const absl::Time deadline = absl::Now() + timeout;
    Response response;
    PHIMAP_RETURN_IF_ERROR(CallWithRetries(options.retry, deadline, [&] {
      return Attempt(deadline, [&](grpc::ClientContext& context) {
        return (*mappings.*method)(&context, request, &response);
      });
    }));
    return response;
  }

  // Makes one attempt at a unary call.
  absl::Status Attempt(absl::Time deadline,
                       absl::FunctionRef<grpc::Status(grpc::ClientContext&)> call) {
    grpc::ClientContext context;
    SetDeadline(context, deadline);
    const RevisionMemory::Asked asked = revisions.AddTo(context);
    const absl::Status status = FromGrpc(call(context));
    revisions.Note(context, status, asked);
    return status;
  }

  absl::StatusOr<v1::BuildJob> CancelBuild(absl::Duration timeout, absl::string_view name,
                                           absl::string_view build_id) {
    v1::CancelBuildRequest request;
    request.set_name(std::string(name));
    request.set_build_id(std::string(build_id));
    return CallWithin<v1::BuildJob>(timeout, &Stub::CancelBuild, request);
  }

  // Cancels the build on the server and returns the error for the caller. NOT_FOUND is normal
  // before `finish`, because a broken stream leaves no build.
  absl::Status AfterCancel(absl::string_view name, absl::string_view build_id,
                           const absl::Status& status) {
    absl::StatusOr<v1::BuildJob> job = CancelBuild(kCancelTimeout, name, build_id);
    if (job.ok() && job->state() == v1::BuildJob::STATE_DONE) {
      return absl::CancelledError(absl::StrCat("cancelled too late: ", ReferenceTo(job->version()),
                                               " was already published"));
    }
    if (job.ok() || absl::IsNotFound(job.status())) return status;
    return absl::CancelledError(absl::StrCat("the build was cancelled here, but the server could ",
                                             "not be told: ", job.status().message()));
  }

  v1::TransformService::StubInterface& NextTransforms() { return *transforms[NextChannel()]; }
  v1::PredictService::StubInterface& NextPredicts() { return *predicts[NextChannel()]; }

  const ConnectOptions options;
  std::shared_ptr<grpc::Channel> first;
  std::unique_ptr<v1::MappingService::StubInterface> mappings;
  std::unique_ptr<v1::LearningService::StubInterface> learning;
  // One per channel.
  std::vector<std::unique_ptr<v1::TransformService::StubInterface>> transforms;
  std::vector<std::unique_ptr<v1::PredictService::StubInterface>> predicts;
  RevisionMemory revisions;

 private:
  size_t NextChannel() { return next_.fetch_add(1, std::memory_order_relaxed) % transforms.size(); }

  std::atomic<uint64_t> next_{0};
};

Client::Client(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Client::~Client() = default;

absl::StatusOr<v1::Version> Client::Build(const BuildOptions& options, RowSource& source,
                                          const BuildObserver& observer, CancelToken* cancel) {
  CancelToken never;
  BuildOptions with_id = options;
  if (with_id.build_id.empty()) with_id.build_id = RandomUuid();
  absl::StatusOr<v1::Version> version =
      CallBuild(*connection_->mappings, connection_->revisions, connection_->options.retry, with_id,
                source, observer, cancel ? *cancel : never);
  if (version.ok() || cancel == nullptr || !cancel->cancelled()) return version;
  return connection_->AfterCancel(with_id.name, with_id.build_id, version.status());
}

absl::StatusOr<v1::Version> Client::Train(const TrainOptions& options, LabeledRowSource& source,
                                          const BuildObserver& observer, CancelToken* cancel) {
  CancelToken never;
  TrainOptions with_id = options;
  if (with_id.build_id.empty()) with_id.build_id = RandomUuid();
  absl::StatusOr<v1::Version> version =
      CallTrain(*connection_->learning, connection_->revisions, connection_->options.retry, with_id,
                source, observer, cancel ? *cancel : never);
  if (version.ok() || cancel == nullptr || !cancel->cancelled()) return version;
  const std::string name = with_id.build.has_value()
                               ? with_id.build->name
                               : with_id.reference.substr(0, with_id.reference.find('@'));
  return connection_->AfterCancel(name, with_id.build_id, version.status());
}

absl::StatusOr<v1::Version> Client::Tune(const TrainOptions& options, LabeledRowSource& source,
                                         const BuildObserver& observer, CancelToken* cancel) {
  TrainOptions tuned = options;
  if (!tuned.build.has_value()) {
    return absl::InvalidArgumentError("Tune needs the name of a mapping, in `build`");
  }
  if (!tuned.build->tuning.has_value()) tuned.build->tuning.emplace();
  return Train(tuned, source, observer, cancel);
}

absl::StatusOr<PredictResult> Client::Predict(absl::string_view reference, ExampleBlock rows,
                                              const PredictOptions& options) {
  if (rows.empty()) return absl::InvalidArgumentError("there are no rows to predict");
  const int32_t row_count = rows.rows();
  v1::PredictRequest request;
  request.set_reference(std::string(reference));
  request.set_expected_digest(options.expected_digest);
  request.set_column_names_hash(ColumnNamesHash(options.column_names));
  ToRequest(options.wanted, request);
  ToExamples(std::move(rows), *request.mutable_examples());
  v1::PredictResponse response;
  const absl::Time deadline = absl::Now() + options.timeout;
  const absl::Status predicted = CallWithRetries(connection_->options.retry, deadline, [&] {
    return connection_->Attempt(deadline, [&](grpc::ClientContext& context) {
      return connection_->NextPredicts().Predict(&context, request, &response);
    });
  });
  PHIMAP_RETURN_IF_ERROR(connection_->WithBothLists(predicted, reference, options.column_names));
  PredictResult result{.version = std::move(*response.mutable_version())};
  const std::vector<std::string> classes(response.class_names().begin(),
                                         response.class_names().end());
  PHIMAP_ASSIGN_OR_RETURN(result.predictions,
                          FromPrediction(std::move(response), classes, row_count));
  return result;
}

absl::StatusOr<PredictStreamResult> Client::PredictStream(absl::string_view reference,
                                                          RowSource& source,
                                                          const PredictionSink& sink,
                                                          const PredictStreamOptions& options,
                                                          CancelToken* cancel) {
  if (options.window < 1 || options.rows_per_request < 0) {
    return absl::InvalidArgumentError("window must be >= 1 and rows_per_request >= 0");
  }
  CancelToken never;
  absl::StatusOr<PredictStreamResult> result = CallPredictStream(
      connection_->NextPredicts(), connection_->revisions, connection_->options.retry,
      std::string(reference), source, sink, options, cancel ? *cancel : never);
  if (result.ok()) return result;
  return connection_->WithBothLists(result.status(), reference, source.column_names());
}

absl::StatusOr<TransformResult> Client::Transform(absl::string_view reference, ExampleBlock rows,
                                                  const TransformOptions& options) {
  if (rows.empty()) return absl::InvalidArgumentError("there are no rows to transform");
  const int32_t row_count = rows.rows();
  v1::TransformRequest request;
  request.set_reference(std::string(reference));
  request.set_expected_digest(options.expected_digest);
  request.set_column_names_hash(ColumnNamesHash(options.column_names));
  request.set_residual(options.residual);
  ToExamples(std::move(rows), *request.mutable_examples());
  v1::TransformResponse response;
  const absl::Time deadline = absl::Now() + options.timeout;
  const absl::Status mapped = CallWithRetries(connection_->options.retry, deadline, [&] {
    return connection_->Attempt(deadline, [&](grpc::ClientContext& context) {
      return connection_->NextTransforms().Transform(&context, request, &response);
    });
  });
  PHIMAP_RETURN_IF_ERROR(connection_->WithBothLists(mapped, reference, options.column_names));
  TransformResult result{.version = std::move(*response.mutable_version())};
  PHIMAP_ASSIGN_OR_RETURN(result.features,
                          FromAnswer(std::move(*response.mutable_features()), row_count));
  if (!options.residual) return result;
  if (response.residuals_size() != row_count || response.residual_allowances_size() != row_count) {
    return absl::InternalError(
        absl::StrCat("the server sent ", response.residuals_size(), " residuals and ",
                     CountOf(response.residual_allowances_size(), "allowance"), " for ",
                     CountOf(row_count, "row")));
  }
  result.residuals.assign(response.residuals().begin(), response.residuals().end());
  result.residual_allowances.assign(response.residual_allowances().begin(),
                                    response.residual_allowances().end());
  return result;
}

absl::StatusOr<TransformStreamResult> Client::TransformStream(absl::string_view reference,
                                                              RowSource& source,
                                                              const FeatureSink& sink,
                                                              const TransformStreamOptions& options,
                                                              CancelToken* cancel) {
  if (options.window < 1 || options.rows_per_request < 0) {
    return absl::InvalidArgumentError("window must be >= 1 and rows_per_request >= 0");
  }
  CancelToken never;
  absl::StatusOr<TransformStreamResult> result = CallTransformStream(
      connection_->NextTransforms(), connection_->revisions, connection_->options.retry,
      std::string(reference), source, sink, options, cancel ? *cancel : never);
  if (result.ok()) return result;
  return connection_->WithBothLists(result.status(), reference, source.column_names());
}

absl::StatusOr<std::vector<v1::Mapping>> Client::ListMappings() {
  return connection_->Pages<v1::Mapping>(&Stub::ListMappings, v1::ListMappingsRequest(),
                                         &v1::ListMappingsResponse::mutable_mappings);
}

absl::StatusOr<v1::Mapping> Client::GetMapping(absl::string_view name) {
  v1::GetMappingRequest request;
  request.set_name(std::string(name));
  return connection_->Call<v1::Mapping>(&Stub::GetMapping, request);
}

absl::StatusOr<std::vector<v1::Version>> Client::ListVersions(absl::string_view name) {
  v1::ListVersionsRequest request;
  request.set_name(std::string(name));
  return connection_->Pages<v1::Version>(&Stub::ListVersions, request,
                                         &v1::ListVersionsResponse::mutable_versions);
}

absl::StatusOr<v1::Version> Client::GetVersion(absl::string_view reference, bool wait) {
  if (wait) return connection_->GetVersion(reference);
  v1::GetVersionRequest request;
  request.set_reference(std::string(reference));
  v1::Version version;
  const absl::Status once = connection_->Attempt(
      absl::Now() + connection_->options.call_timeout, [&](grpc::ClientContext& context) {
        return connection_->mappings->GetVersion(&context, request, &version);
      });
  if (once.ok()) return version;
  const std::optional<ErrorDetail> detail = DetailOf(once);
  if (detail.has_value() && detail->reason == reason::kDatabaseUnavailable) return once;
  return connection_->GetVersion(reference);
}

absl::StatusOr<v1::BuildJob> Client::GetBuild(absl::string_view name, absl::string_view build_id) {
  v1::GetBuildRequest request;
  request.set_name(std::string(name));
  request.set_build_id(std::string(build_id));
  return connection_->Call<v1::BuildJob>(&Stub::GetBuild, request);
}

absl::StatusOr<v1::BuildJob> Client::CancelBuild(absl::string_view name,
                                                 absl::string_view build_id) {
  return connection_->CancelBuild(connection_->options.call_timeout, name, build_id);
}

absl::StatusOr<std::vector<v1::BuildJob>> Client::ListBuilds(absl::string_view name) {
  v1::ListBuildsRequest request;
  request.set_name(std::string(name));
  return connection_->Pages<v1::BuildJob>(&Stub::ListBuilds, request,
                                          &v1::ListBuildsResponse::mutable_builds);
}

absl::StatusOr<v1::Alias> Client::SetAlias(absl::string_view reference, absl::string_view alias,
                                           absl::string_view etag) {
  v1::SetAliasRequest request;
  request.set_reference(std::string(reference));
  request.set_alias(std::string(alias));
  request.set_etag(std::string(etag));
  return connection_->Call<v1::Alias>(&Stub::SetAlias, request);
}

absl::StatusOr<v1::Alias> Client::RollBackAlias(absl::string_view name, absl::string_view alias) {
  PHIMAP_ASSIGN_OR_RETURN(const v1::Mapping found, GetMapping(name));
  for (const v1::Alias& current : found.aliases()) {
    if (current.name() != alias) continue;
    if (current.previous_version() == 0) return NeverMoved(name, current);
    absl::StatusOr<v1::Alias> back =
        SetAlias(absl::StrCat(name, "@", current.previous_version()), alias, current.etag());
    if (absl::IsNotFound(back.status())) return GoneBefore(name, current);
    return back;
  }
  return absl::NotFoundError(absl::StrCat("mapping \"", name, "\" has no alias \"", alias, "\""));
}

absl::Status Client::DeleteAlias(absl::string_view name, absl::string_view alias,
                                 absl::string_view etag) {
  v1::DeleteAliasRequest request;
  request.set_name(std::string(name));
  request.set_alias(std::string(alias));
  request.set_etag(std::string(etag));
  return connection_->Call<v1::DeleteAliasResponse>(&Stub::DeleteAlias, request).status();
}

absl::Status Client::DeleteVersion(absl::string_view reference, bool give_up_rollback) {
  v1::DeleteVersionRequest request;
  request.set_reference(std::string(reference));
  request.set_give_up_rollback(give_up_rollback);
  return connection_->Call<v1::DeleteVersionResponse>(&Stub::DeleteVersion, request).status();
}

absl::StatusOr<v1::Version> Client::KeepVersion(absl::string_view reference, absl::Duration ttl) {
  v1::KeepVersionRequest request;
  request.set_reference(std::string(reference));
  if (ttl != absl::InfiniteDuration()) ToProto(ttl, *request.mutable_ttl());
  return connection_->Call<v1::Version>(&Stub::KeepVersion, request);
}

absl::Status Client::DeleteMapping(absl::string_view name, bool only_if_empty) {
  v1::DeleteMappingRequest request;
  request.set_only_if_empty(only_if_empty);
  request.set_name(std::string(name));
  return connection_->Call<v1::DeleteMappingResponse>(&Stub::DeleteMapping, request).status();
}

absl::StatusOr<ExportResult> Client::Export(absl::string_view reference, const ArtifactSink& sink,
                                            CancelToken* cancel) {
  CancelToken never;
  bool begun = false;
  const ArtifactSink first_noted = [&](absl::string_view bytes) {
    begun = true;
    return sink(bytes);
  };
  absl::StatusOr<ExportResult> result = absl::UnknownError("");
  CallWithRetries(connection_->options.retry, absl::InfiniteFuture(), [&] {
    result = CallExport(*connection_->mappings, connection_->revisions, std::string(reference),
                        first_noted, cancel ? *cancel : never);
    // The sink's bytes cannot be taken back, so an export that has begun is not retried.
    return begun ? absl::OkStatus() : result.status();
  }).IgnoreError();
  return result;
}

absl::StatusOr<v1::Version> Client::Import(absl::string_view name, const ArtifactSource& source,
                                           CancelToken* cancel) {
  CancelToken never;
  return CallImport(*connection_->mappings, connection_->revisions, std::string(name), source,
                    cancel ? *cancel : never);
}

absl::StatusOr<v1::Evaluation> Client::Evaluate(const EvaluateOptions& options,
                                                LabeledRowSource& source,
                                                const EvaluateObserver& observer,
                                                CancelToken* cancel) {
  CancelToken never;
  absl::StatusOr<v1::Evaluation> evaluation =
      CallEvaluate(*connection_->learning, connection_->revisions, options, source, observer,
                   cancel ? *cancel : never);
  if (evaluation.ok()) return evaluation;
  return connection_->WithBothLists(evaluation.status(), options.reference, source.column_names());
}

absl::StatusOr<v1::ListCapabilitiesResponse> Client::ListCapabilities() {
  return connection_->Call<v1::ListCapabilitiesResponse>(&Stub::ListCapabilities,
                                                         v1::ListCapabilitiesRequest());
}

absl::StatusOr<v1::GetDriftResponse> Client::GetDrift(absl::string_view name) {
  v1::GetDriftRequest request;
  request.set_name(std::string(name));
  return connection_->Call<v1::GetDriftResponse>(&Stub::GetDrift, request);
}

absl::StatusOr<v1::ListAuditEntriesResponse> Client::ListAuditEntries(
    const v1::ListAuditEntriesRequest& request) {
  return connection_->Call<v1::ListAuditEntriesResponse>(&Stub::ListAuditEntries, request);
}

absl::StatusOr<v1::AdviseResponse> Client::Advise(const v1::AdviseRequest& request) {
  return connection_->Call<v1::AdviseResponse>(&Stub::Advise, request);
}

absl::StatusOr<v1::EstimateBuildResponse> Client::EstimateBuild(const BuildOptions& options,
                                                                int64_t rows, int32_t columns) {
  v1::EstimateBuildRequest request;
  ToSpec(options, *request.mutable_spec());
  request.set_rows(rows);
  request.set_columns(columns);
  return connection_->Call<v1::EstimateBuildResponse>(&Stub::EstimateBuild, request);
}

absl::StatusOr<bool> Client::CheckHealth(absl::string_view service, absl::Duration timeout) {
  return CallHealth(connection_->first, service, absl::Now() + timeout);
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(absl::string_view target,
                                                        const ConnectOptions& options) {
  PHIMAP_ASSIGN_OR_RETURN(const ChannelFactory channels, ChannelFactory::Create(target, options));
  if (options.channels < 1 || options.channels > kMaxChannels) {
    return absl::InvalidArgumentError(
        absl::StrCat("channels: expected 1..", kMaxChannels, ", got ", options.channels));
  }
  return absl::WrapUnique(new Client(std::make_unique<Connection>(channels, options)));
}

}  // namespace phimap::client
