// Tests what callers may do on a server that requires tokens.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/descriptor.h"
#include "server/admission/role.h"
#include "tests/server/api/raw_call.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr Role kRoles[] = {Role::kReader, Role::kBuilder, Role::kAdmin};

std::string TokenOf(Role role) { return absl::StrCat(RoleName(role), "-token-0123456789"); }

std::multimap<std::string, std::string> Bearer(const std::string& token) {
  return {{"authorization", absl::StrCat("Bearer ", token)}};
}

class AccessRpcTest : public ServerFixture {
 protected:
  AccessRpcTest() {
    options_.http = "127.0.0.1:0";
    options_.token_file = tokens_.path() + "/tokens";
    std::string text;
    for (const Role role : kRoles) absl::StrAppend(&text, RoleName(role), " ", TokenOf(role), "\n");
    WriteTokens(text);
    Start();
  }

  void WriteTokens(const std::string& text) {
    const std::string fresh = options_.token_file + ".new";
    std::ofstream(fresh) << text;
    ASSERT_EQ(chmod(fresh.c_str(), 0600), 0);
    std::filesystem::rename(fresh, options_.token_file);
  }

  TemporaryFolder tokens_;
};

TEST_F(AccessRpcTest, EveryMethodOfEveryServiceAsksForItsRole) {
  const auto methods = ListMethods(channel_, Bearer(TokenOf(Role::kReader)));
  EXPECT_GE(methods.size(), 19u);
  for (const google::protobuf::MethodDescriptor* method : methods) {
    const std::string name = absl::StrCat(method->service()->full_name(), "/", method->name());
    SCOPED_TRACE(name);
    const std::optional<Role> needed = RoleForMethod(name);
    ASSERT_TRUE(needed.has_value());
    // Sends one empty message. Every method can parse it, but none accepts it as a valid request.
    const auto call = [&](const std::multimap<std::string, std::string>& metadata) {
      return CallRaw(channel_, absl::StrCat("/", name), {""}, metadata).status;
    };
    EXPECT_THAT(call({}), IsError(Code::UNAUTHENTICATED, "TOKEN_MISSING"));
    const grpc::Status garbled = CallRaw(channel_, absl::StrCat("/", name), {"\x07"}).status;
    EXPECT_EQ(FactsOf(garbled).reason, "TOKEN_MISSING") << garbled.error_message();
    EXPECT_THAT(call(Bearer("a-token-of-another-server")),
                IsError(Code::UNAUTHENTICATED, "TOKEN_UNKNOWN"));
    for (const Role role : kRoles) {
      SCOPED_TRACE(RoleName(role));
      const grpc::Status status = call(Bearer(TokenOf(role)));
      if (role < *needed) {
        EXPECT_THAT(status, IsError(Code::PERMISSION_DENIED, "ROLE_TOO_LOW"));
      } else {
        EXPECT_NE(status.error_code(), Code::PERMISSION_DENIED) << status.error_message();
        EXPECT_NE(status.error_code(), Code::UNAUTHENTICATED) << status.error_message();
      }
    }
  }
  EXPECT_THAT(Scrape(),
              HasSubstr("grpc_server_handled_total{grpc_code=\"Unauthenticated\","
                        "grpc_method=\"Transform\",grpc_service=\"phimap.v1.TransformService\","
                        "grpc_type=\"unary\"} 3"));
}

TEST_F(AccessRpcTest, HealthIsOpenToAllAndReflectionTakesAReader) {
  EXPECT_TRUE(CallRaw(channel_, "/grpc.health.v1.Health/Check", {""}).status.ok());
  EXPECT_THAT(ListServices(channel_, Bearer(TokenOf(Role::kReader))),
              Contains("phimap.v1.TransformService"));
  for (const char* version : {"v1", "v1alpha"}) {
    const std::string path =
        absl::StrCat("/grpc.reflection.", version, ".ServerReflection/ServerReflectionInfo");
    const RawAnswer stranger = CallRaw(channel_, path, {"\x3a\x01*"});
    EXPECT_EQ(stranger.status.error_code(), Code::UNAUTHENTICATED);
    EXPECT_THAT(stranger.messages, IsEmpty());
  }
}

TEST_F(AccessRpcTest, ABuilderBuildsAndAReaderTransforms) {
  grpc::ClientContext refused;
  v1::BuildRequest spec;
  *spec.mutable_spec() = Spec();
  refused.AddMetadata("authorization", absl::StrCat("Bearer ", TokenOf(Role::kReader)));
  {
    const auto stream = mappings_->Build(&refused);
    stream->Write(spec);
    EXPECT_EQ(stream->Finish().error_code(), Code::PERMISSION_DENIED);
  }
  v1::BuildRequest rows;
  *rows.mutable_examples() = UniformExamples(40, 3);
  v1::BuildRequest finish;
  finish.mutable_finish()->set_row_count(40);
  const RawAnswer built =
      CallRaw(channel_, "/phimap.v1.MappingService/Build",
              {spec.SerializeAsString(), rows.SerializeAsString(), finish.SerializeAsString()},
              Bearer(TokenOf(Role::kBuilder)));
  EXPECT_TRUE(built.status.ok()) << built.status.error_message();
  v1::TransformRequest request = TransformOf("letter", UniformExamples(1, 3));
  const RawAnswer mapped = CallRaw(channel_, "/phimap.v1.TransformService/Transform",
                                   {request.SerializeAsString()}, Bearer(TokenOf(Role::kReader)));
  EXPECT_TRUE(mapped.status.ok()) << mapped.status.error_message();
}

// Builds whose rows never come occupy their places.
TEST_F(AccessRpcTest, OneBuilderLeavesBuildsToOthersAndToAdministrators) {
  v1::BuildRequest first;
  *first.mutable_spec() = Spec();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<v1::BuildRequest, v1::BuildResponse>>> open;
  const auto begin = [&](Role role) {
    first.mutable_spec()->set_build_id(
        absl::StrFormat("00000000-0000-4000-8000-%012d", contexts.size()));
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    contexts.back()->AddMetadata("authorization", absl::StrCat("Bearer ", TokenOf(role)));
    auto stream = mappings_->Build(contexts.back().get());
    EXPECT_TRUE(stream->Write(first));
    // The first response says that the build has begun.
    v1::BuildResponse begun;
    if (!stream->Read(&begun)) return stream->Finish();
    open.push_back(std::move(stream));
    return grpc::Status::OK;
  };
  for (int i = 0; i < options_.max_builds / 2; ++i) {
    EXPECT_TRUE(begin(Role::kBuilder).ok()) << i;
  }
  EXPECT_THAT(begin(Role::kBuilder),
              IsError(Code::RESOURCE_EXHAUSTED, _, _, HasSubstr("may have 8, and 2 are left")));
  for (int i = 0; i < options_.max_builds / 2; ++i) EXPECT_TRUE(begin(Role::kAdmin).ok()) << i;
  EXPECT_EQ(begin(Role::kAdmin).error_code(), Code::RESOURCE_EXHAUSTED);
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& stream : open) stream->Finish();
}

TEST_F(AccessRpcTest, ATokenThatIsTakenOutOfTheFileIsNotKnownAnyLonger) {
  const auto list = [&](const std::string& token) {
    return CallRaw(channel_, "/phimap.v1.MappingService/ListMappings", {""}, Bearer(token))
        .status.error_code();
  };
  EXPECT_EQ(list(TokenOf(Role::kReader)), Code::OK);
  WriteTokens("reader another-token-0123456789\n");
  while (list("another-token-0123456789") != Code::OK) std::this_thread::yield();
  EXPECT_EQ(list(TokenOf(Role::kReader)), Code::UNAUTHENTICATED);
}

}  // namespace
}  // namespace phimap::testing
