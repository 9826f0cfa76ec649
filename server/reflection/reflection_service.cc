#include "server/reflection/reflection_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status/error.h"
#include "google/protobuf/descriptor.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/calls/stream_call.h"
#include "server/reflection/served_schema.h"

namespace phimap {
namespace {

using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

// Tools keep a stream open for as long as a person reads the answer.
constexpr absl::Duration kIdleLimit = absl::Minutes(5);

void SetError(const absl::Status& status, ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(static_cast<int>(status.code()));
  response.mutable_error_response()->set_error_message(std::string(status.message()));
}

void SetFiles(const absl::StatusOr<ServedSchema::Files>& files,
              ServerReflectionResponse& response) {
  if (!files.ok()) return SetError(files.status(), response);
  for (const std::string& file : *files) {
    response.mutable_file_descriptor_response()->add_file_descriptor_proto(file);
  }
}

void SetExtensions(const ServedSchema& schema, const std::string& type,
                   ServerReflectionResponse& response) {
  const absl::StatusOr<std::vector<int>> numbers = schema.ExtensionsOf(type);
  if (!numbers.ok()) return SetError(numbers.status(), response);
  auto& answer = *response.mutable_all_extension_numbers_response();
  answer.set_base_type_name(type);
  answer.mutable_extension_number()->Assign(numbers->begin(), numbers->end());
}

void SetServices(const ServedSchema& schema, ServerReflectionResponse& response) {
  auto& answer = *response.mutable_list_services_response();
  for (const std::string& name : schema.services()) answer.add_service()->set_name(name);
}

void Answer(const ServedSchema& schema, const ServerReflectionRequest& request,
            ServerReflectionResponse& response) {
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      return SetFiles(schema.FileNamed(request.file_by_filename()), response);
    case ServerReflectionRequest::kFileContainingSymbol:
      return SetFiles(schema.FileWithSymbol(request.file_containing_symbol()), response);
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& wanted = request.file_containing_extension();
      return SetFiles(schema.FileWithExtension(wanted.containing_type(), wanted.extension_number()),
                      response);
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      return SetExtensions(schema, request.all_extension_numbers_of_type(), response);
    case ServerReflectionRequest::kListServices:
      return SetServices(schema, response);
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      return SetError(MakeError(absl::StatusCode::kInvalidArgument, "REQUEST_MISSING",
                                "message_request", "expected one of its fields, got none"),
                      response);
  }
}

// Serves both v1 and v1alpha, whose messages are equal on the wire.
class ReflectionCall final : public TypedStreamCall<ServerReflectionRequest> {
 public:
  ReflectionCall(const CallStart& start, std::shared_ptr<const ServedSchema> schema)
      : TypedStreamCall(start), schema_(std::move(schema)) {}

 private:
  void Start() override {
    SetIdleLimit(kIdleLimit);
    ReadNext();
  }
  void OnRequest() override {
    ServerReflectionResponse response;
    response.set_valid_host(request().host());
    Answer(*schema_, request(), response);
    *response.mutable_original_request() = std::move(request());
    Write(response);
  }
  void OnWritten() override { ReadNext(); }
  void OnRequestsEnd() override { Finish(absl::OkStatus()); }

  const std::shared_ptr<const ServedSchema> schema_;
};

}  // namespace

void AddReflectionService(Dispatcher& dispatcher) {
  namespace v1 = grpc::reflection::v1;
  namespace v1alpha = grpc::reflection::v1alpha;
  const auto& service =
      *v1::ServerReflectionRequest::descriptor()->file()->FindServiceByName("ServerReflection");
  const auto& alpha = *v1alpha::ServerReflectionRequest::descriptor()->file()->FindServiceByName(
      "ServerReflection");
  std::vector<std::string> names = dispatcher.services();
  names.push_back(service.full_name());
  names.push_back(alpha.full_name());
  const Method::Open open = [schema = std::make_shared<const ServedSchema>(names)](
                                const CallStart& start) -> std::shared_ptr<Call> {
    return std::make_shared<ReflectionCall>(start, schema);
  };
  dispatcher.Add(service, {{"ServerReflectionInfo", open}});
  dispatcher.Add(alpha, {{"ServerReflectionInfo", open}});
}

}  // namespace phimap
