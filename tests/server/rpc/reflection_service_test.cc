
#include <set>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/rpc/standard_services.h"
#include "tests/server/support/dispatcher_server.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// The messages of v1alpha have the same wire format as those of v1.
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

constexpr char kHealth[] = "grpc.health.v1.Health";
constexpr char kHealthFile[] = "grpc/health/v1/health.proto";

class ReflectionServiceTest : public ::testing::TestWithParam<const char*> {
 protected:
  ReflectionServiceTest() {
    AddHealthService(status_, server_.dispatcher);
    AddReflectionService(server_.dispatcher);
    server_.Start();
  }

  ServerReflectionResponse Ask(const ServerReflectionRequest& request) {
    const std::string path =
        std::string("/grpc.reflection.") + GetParam() + ".ServerReflection/ServerReflectionInfo";
    const int32_t stream = server_.Begin(path, request, /*end=*/true);
    ServerReflectionResponse response;
    EXPECT_TRUE(server_.Next(stream, response));
    EXPECT_EQ(server_.CodeOf(stream), 0);
    EXPECT_EQ(response.original_request().SerializeAsString(), request.SerializeAsString());
    return response;
  }
  static std::vector<std::string> FilesOf(const ServerReflectionResponse& response) {
    std::vector<std::string> names;
    for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      names.push_back(file.name());
    }
    return names;
  }

  HealthStatus status_{{}};
  DispatcherServer server_;
};

TEST_P(ReflectionServiceTest, ListsTheServicesItselfIncluded) {
  ServerReflectionRequest request;
  request.set_host("host");
  request.set_list_services("*");
  const ServerReflectionResponse response = Ask(request);
  EXPECT_EQ(response.valid_host(), "host");
  std::set<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.insert(service.name());
  }
  EXPECT_THAT(names, ElementsAre(kHealth, "grpc.reflection.v1.ServerReflection",
                                 "grpc.reflection.v1alpha.ServerReflection"));
}

TEST_P(ReflectionServiceTest, FindsTheFileOfHealthByNameAndByWhateverIsInIt) {
  ServerReflectionRequest request;
  request.set_file_by_filename(kHealthFile);
  EXPECT_THAT(FilesOf(Ask(request)), ElementsAre(kHealthFile));
  for (const char* symbol :
       {kHealth, "grpc.health.v1.Health.Watch", "grpc.health.v1.HealthCheckRequest",
        "grpc.health.v1.HealthCheckRequest.service",
        "grpc.health.v1.HealthCheckResponse.ServingStatus"}) {
    SCOPED_TRACE(symbol);
    request.set_file_containing_symbol(symbol);
    EXPECT_THAT(FilesOf(Ask(request)), ElementsAre(kHealthFile));
  }
}

TEST_P(ReflectionServiceTest, WhatThereIsNotIsNotFoundAndTheStreamGoesOn) {
  ServerReflectionRequest request;
  request.set_file_by_filename("no.proto");
  EXPECT_EQ(Ask(request).error_response().error_code(), 5);
  request.set_file_containing_symbol("no.Symbol");
  EXPECT_EQ(Ask(request).error_response().error_code(), 5);
  // This file is linked into every server, but none of the listed services uses it.
  request.set_file_containing_symbol("google.protobuf.FieldDescriptorProto");
  EXPECT_EQ(Ask(request).error_response().error_code(), 5);
  request.set_all_extension_numbers_of_type("no.Message");
  EXPECT_EQ(Ask(request).error_response().error_code(), 5);
  request.mutable_file_containing_extension()->set_containing_type(
      "grpc.health.v1.HealthCheckRequest");
  request.mutable_file_containing_extension()->set_extension_number(1);
  EXPECT_EQ(Ask(request).error_response().error_code(), 5);
}

TEST_P(ReflectionServiceTest, MessageWithoutExtensionsHasNone) {
  ServerReflectionRequest request;
  request.set_all_extension_numbers_of_type("grpc.health.v1.HealthCheckRequest");
  const ServerReflectionResponse response = Ask(request);
  EXPECT_EQ(response.all_extension_numbers_response().base_type_name(),
            "grpc.health.v1.HealthCheckRequest");
  EXPECT_EQ(response.all_extension_numbers_response().extension_number_size(), 0);
}

TEST_P(ReflectionServiceTest, RequestForNothingIsAnError) {
  EXPECT_EQ(Ask(ServerReflectionRequest()).error_response().error_code(), 3);
}

INSTANTIATE_TEST_SUITE_P(Versions, ReflectionServiceTest, ::testing::Values("v1", "v1alpha"));

}  // namespace
}  // namespace phimap::testing
