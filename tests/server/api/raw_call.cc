#include "tests/server/api/raw_call.h"

#include <utility>

#include "absl/strings/match.h"
#include "core/status/check.h"
#include "google/protobuf/message.h"
#include "grpcpp/generic/generic_stub.h"

namespace phimap::testing {
namespace {

// Waits for the only pending operation, and returns whether it succeeded.
bool Next(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  PHIMAP_CHECK(queue.Next(&tag, &ok));
  return ok;
}

}  // namespace

RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::vector<std::string>& messages,
                  const std::multimap<std::string, std::string>& metadata) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  bool open = Next(queue);
  for (const std::string& message : messages) {
    if (!open) break;
    const grpc::Slice slice(message);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    open = Next(queue);
  }
  if (open) {
    call->WritesDone(nullptr);
    Next(queue);
  }
  RawAnswer answer;
  while (true) {
    grpc::ByteBuffer buffer;
    call->Read(&buffer, nullptr);
    if (!Next(queue)) break;
    grpc::Slice bytes;
    PHIMAP_CHECK(buffer.DumpToSingleSlice(&bytes).ok());
    answer.messages.emplace_back(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  }
  call->Finish(&answer.status, nullptr);
  Next(queue);
  return answer;
}

int HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  // The request is a HealthCheckRequest with `service` in field 1, and the answer a
  // HealthCheckResponse with the status in field 1. Both are handled as bytes, because gRPC does
  // not publish these messages.
  const std::string request =
      service.empty() ? "" : "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
  const RawAnswer answer = CallRaw(channel, "/grpc.health.v1.Health/Check", {request});
  if (!answer.status.ok()) return -static_cast<int>(answer.status.error_code());
  return answer.messages.size() == 1 && answer.messages[0].size() == 2 ? answer.messages[0][1] : 0;
}

std::vector<std::string> ListServices(const std::shared_ptr<grpc::Channel>& channel,
                                      const std::multimap<std::string, std::string>& metadata) {
  // The request is a ServerReflectionRequest with list_services = "*" in field 7. It is written as
  // bytes, because gRPC does not publish the headers of these messages.
  const RawAnswer answer =
      CallRaw(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              {"\x3a\x01*"}, metadata);
  PHIMAP_CHECK(answer.status.ok() && answer.messages.size() == 1);
  const google::protobuf::Descriptor* const type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
          "grpc.reflection.v1alpha.ServerReflectionResponse");
  PHIMAP_CHECK(type != nullptr);
  const std::unique_ptr<google::protobuf::Message> response(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  PHIMAP_CHECK(response->ParseFromString(answer.messages[0]));
  const google::protobuf::Message& list = response->GetReflection()->GetMessage(
      *response, type->FindFieldByName("list_services_response"));
  const google::protobuf::FieldDescriptor* const field =
      list.GetDescriptor()->FindFieldByName("service");
  std::vector<std::string> names;
  for (int i = 0; i < list.GetReflection()->FieldSize(list, field); ++i) {
    const google::protobuf::Message& service =
        list.GetReflection()->GetRepeatedMessage(list, field, i);
    names.push_back(service.GetReflection()->GetString(
        service, service.GetDescriptor()->FindFieldByName("name")));
  }
  return names;
}

std::vector<const google::protobuf::MethodDescriptor*> ListMethods(
    const std::shared_ptr<grpc::Channel>& channel,
    const std::multimap<std::string, std::string>& metadata) {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const std::string& name : ListServices(channel, metadata)) {
    if (absl::StartsWith(name, "grpc.")) continue;
    const google::protobuf::ServiceDescriptor* const service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    PHIMAP_CHECK(service != nullptr);
    for (int i = 0; i < service->method_count(); ++i) methods.push_back(service->method(i));
  }
  return methods;
}

}  // namespace phimap::testing
