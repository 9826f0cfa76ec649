// Calls any method by its name, with serialized messages.
#ifndef PHIMAP_TESTS_SERVER_API_RAW_CALL_H_
#define PHIMAP_TESTS_SERVER_API_RAW_CALL_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/status.h"

namespace phimap::testing {

struct RawAnswer {
  grpc::Status status;
  std::vector<std::string> messages;
};

// Sends `messages`, ends the request stream, and reads all answers. Works for unary and streaming
// methods.
RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::vector<std::string>& messages,
                  const std::multimap<std::string, std::string>& metadata = {});

// The status that grpc.health.v1.Health/Check reports for a service: 1 is SERVING, and 2
// NOT_SERVING. Returns −code if the call fails.
int HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service);

// Full names of all services that the server lists by reflection.
std::vector<std::string> ListServices(const std::shared_ptr<grpc::Channel>& channel,
                                      const std::multimap<std::string, std::string>& metadata = {});

// All RPCs that the server lists by reflection, without those of gRPC itself.
std::vector<const google::protobuf::MethodDescriptor*> ListMethods(
    const std::shared_ptr<grpc::Channel>& channel,
    const std::multimap<std::string, std::string>& metadata = {});

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_API_RAW_CALL_H_
