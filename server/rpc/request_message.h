// Requests from their bytes, so that what is not the message of its RPC is refused like any other
// bad input.
//
// gRPC parses requests by itself and tells a handler nothing when that fails: a unary call ends
// with UNIMPLEMENTED and no message, uncounted, and a stream looks as if the client had ended it,
// so that it could end with OK after losing requests. Hence streams read bytes and parse them here,
// as gRPC does and at the same cost; and a call of one request gets a handler that goes elsewhere
// when gRPC could not parse. Both use classes that gRPC generates code for and calls internal;
// should it take them away, this does not compile.
#ifndef PHIMAP_SERVER_RPC_REQUEST_MESSAGE_H_
#define PHIMAP_SERVER_RPC_REQUEST_MESSAGE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/method_handler.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/refused_call.h"

namespace phimap {

// INVALID_ARGUMENT: what came does not parse as a message of `type`.
absl::Status MalformedRequest(absl::string_view type);

// Parses a message of a stream. `bytes` are gone afterwards; `message` is of no use after an error.
template <typename Message>
absl::Status ParseRequest(grpc::ByteBuffer& bytes, Message& message) {
  const grpc::Status parsed = grpc::SerializationTraits<Message>::Deserialize(&bytes, &message);
  bytes.Clear();
  return parsed.ok() ? absl::OkStatus() : MalformedRequest(Message::descriptor()->full_name());
}

// Calls of one request: `answer` has those whose request gRPC could parse, `refuse` the others.
template <typename Handler>
class RequestHandler final : public grpc::internal::MethodHandler {
 public:
  RequestHandler(Handler answer, Handler refuse)
      : answer_(std::move(answer)), refuse_(std::move(refuse)) {}

  void* Deserialize(grpc_call* call, grpc_byte_buffer* bytes, grpc::Status* status,
                    void** handler_data) final {
    void* const request = answer_.Deserialize(call, bytes, status, handler_data);
    *status = grpc::Status::OK;  // an error here would be gRPC's to tell
    return request;
  }
  void RunHandler(const HandlerParameter& parameter) final {
    (parameter.request == nullptr ? refuse_ : answer_).RunHandler(parameter);
  }

 private:
  Handler answer_;
  Handler refuse_;
};

// The handler of a unary RPC, for grpc::Service::MarkMethodCallback, which takes it over. `service`
// has the method `answer`; it, `method` and `logger` outlive the handler.
template <typename Service, typename Request, typename Response>
grpc::internal::MethodHandler* NewRequestHandler(
    Service& service,
    grpc::ServerUnaryReactor* (Service::*answer)(grpc::CallbackServerContext*, const Request*,
                                                 Response*),
    const RpcMethod& method, const Logger& logger) {
  using Handler = grpc::internal::CallbackUnaryHandler<Request, Response>;
  using Context = grpc::CallbackServerContext;
  return new RequestHandler<Handler>(
      Handler([&service, answer](Context* context, const Request* request, Response* response) {
        return (service.*answer)(context, request, response);
      }),
      Handler([&method, &logger](Context* context, const Request*, Response*) {
        return new RefusedCall<grpc::ServerUnaryReactor>(
            *context, method, logger, MalformedRequest(Request::descriptor()->full_name()));
      }));
}

// The same for an RPC of one request and a stream of answers.
template <typename Service, typename Request, typename Response>
grpc::internal::MethodHandler* NewRequestHandler(
    Service& service,
    grpc::ServerWriteReactor<Response>* (Service::*answer)(grpc::CallbackServerContext*,
                                                           const Request*),
    const RpcMethod& method, const Logger& logger) {
  using Handler = grpc::internal::CallbackServerStreamingHandler<Request, Response>;
  using Context = grpc::CallbackServerContext;
  return new RequestHandler<Handler>(
      Handler([&service, answer](Context* context, const Request* request) {
        return (service.*answer)(context, request);
      }),
      Handler([&method, &logger](Context* context, const Request*) {
        return new RefusedCall<grpc::ServerWriteReactor<Response>>(
            *context, method, logger, MalformedRequest(Request::descriptor()->full_name()));
      }));
}

// The handlers of RPCs whose requests are a stream: `open` returns the call, which parses them.
template <typename Service, typename Response>
grpc::internal::MethodHandler* NewStreamHandler(
    Service& service, grpc::ServerBidiReactor<grpc::ByteBuffer, Response>* (Service::*open)(
                          grpc::CallbackServerContext*)) {
  return new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, Response>(
      [&service, open](grpc::CallbackServerContext* context) { return (service.*open)(context); });
}
template <typename Service, typename Response>
grpc::internal::MethodHandler* NewStreamHandler(
    Service& service,
    grpc::ServerReadReactor<grpc::ByteBuffer>* (Service::*open)(grpc::CallbackServerContext*,
                                                                Response*)) {
  return new grpc::internal::CallbackClientStreamingHandler<grpc::ByteBuffer, Response>(
      [&service, open](grpc::CallbackServerContext* context, Response* response) {
        return (service.*open)(context, response);
      });
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_REQUEST_MESSAGE_H_
