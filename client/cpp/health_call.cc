#include "client/cpp/health_call.h"

#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <future>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cpp/grpc_status.h"
#include "core/status/status_macros.h"

namespace phimap::client {
namespace {

// These types stand for the messages of the health service. Those messages are not compiled here,
// because in a program that contains a gRPC server, the gRPC library registers them. On the wire, a
// HealthCheckRequest (one string, field 1) equals a StringValue, and a HealthCheckResponse (one
// enum, field 1) equals an Int32Value.
using Request = google::protobuf::StringValue;
using Response = google::protobuf::Int32Value;

constexpr char kMethod[] = "/grpc.health.v1.Health/Check";
constexpr int kServing = 1;

}  // namespace

absl::StatusOr<bool> CallHealth(const std::shared_ptr<grpc::ChannelInterface>& channel,
                                absl::string_view service, absl::Time deadline) {
  Request request;
  request.set_value(std::string(service));
  Response response;
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  std::promise<grpc::Status> done;
  grpc::TemplatedGenericStub<Request, Response>(channel).UnaryCall(
      &context, kMethod, grpc::StubOptions(), &request, &response,
      [&done](grpc::Status status) { done.set_value(std::move(status)); });
  const absl::Status status = FromGrpc(done.get_future().get());
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(absl::StrCat("the server has no service '", service, "'"));
  }
  PHIMAP_RETURN_IF_ERROR(status);
  return response.value() == kServing;
}

}  // namespace phimap::client
