// A call of any method by its name, with bytes for messages.
#ifndef PHIMAP_TESTS_SERVER_RPC_RAW_CALL_H_
#define PHIMAP_TESTS_SERVER_RPC_RAW_CALL_H_

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

// Sends `messages`, ends the stream, and reads what comes. Works for methods of every kind.
RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::vector<std::string>& messages,
                  const std::map<std::string, std::string>& metadata = {});

// grpc.health.v1.Health/Check of a service: SERVING is 1, NOT_SERVING 2; −code if the call fails.
int HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service);

// Full names of all services that the server says it has, by server reflection.
std::vector<std::string> ListServices(const std::shared_ptr<grpc::Channel>& channel,
                                      const std::map<std::string, std::string>& metadata = {});

// All RPCs that the server has, as itself tells, without those that gRPC brings.
std::vector<const google::protobuf::MethodDescriptor*> ListMethods(
    const std::shared_ptr<grpc::Channel>& channel,
    const std::map<std::string, std::string>& metadata = {});

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_RPC_RAW_CALL_H_
