// Sends bytes that cannot be parsed to every RPC. The error must name the type of the expected
// message, and must be counted. Without phimapd's own check, gRPC would answer without a reason,
// and would treat a stream as if the client had ended it.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/api/raw_call.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// A tag of wire type 7, which does not exist.
constexpr char kGarbage[] = "\x07";

class MalformedRequestTest : public ServerFixture {
 protected:
  MalformedRequestTest() {
    options_.http = "127.0.0.1:0";
    Start();
  }

  static void ExpectMalformed(const grpc::Status& status, const std::string& type) {
    EXPECT_EQ(status.error_code(), Code::INVALID_ARGUMENT) << status.error_message();
    const ErrorFacts facts = FactsOf(status);
    EXPECT_EQ(facts.reason, "REQUEST_MALFORMED");
    EXPECT_THAT(status.error_message(), HasSubstr(type));
  }
  static void ExpectNoMessage(const grpc::Status& status, const std::string& type) {
    EXPECT_THAT(status, IsError(Code::UNIMPLEMENTED, "MESSAGE_COUNT_WRONG", _,
                                HasSubstr("expected one message " + type + ", got none")));
  }
  // The line in a scrape that reports a call of `method` that ended with INVALID_ARGUMENT.
  static std::string Refused(const google::protobuf::MethodDescriptor& method) {
    const char* const type = method.client_streaming()
                                 ? method.server_streaming() ? "bidi_stream" : "client_stream"
                             : method.server_streaming() ? "server_stream"
                                                         : "unary";
    return absl::StrCat("grpc_server_handled_total{grpc_code=\"InvalidArgument\",grpc_method=\"",
                        method.name(), "\",grpc_service=\"", method.service()->full_name(),
                        "\",grpc_type=\"", type, "\"} 1\n");
  }
};

TEST_F(MalformedRequestTest, EveryMethodNamesTheMessageItExpectedAndCountsTheCall) {
  const auto methods = ListMethods(channel_);
  EXPECT_GE(methods.size(), 19u);
  std::vector<std::string> counted;
  for (const google::protobuf::MethodDescriptor* method : methods) {
    SCOPED_TRACE(method->full_name());
    const std::string path = absl::StrCat("/", method->service()->full_name(), "/", method->name());
    const grpc::Status garbled = CallRaw(channel_, path, {kGarbage}).status;
    const std::string& type = method->input_type()->full_name();
    ExpectMalformed(garbled, type);
    if (!method->client_streaming()) {
      ExpectNoMessage(CallRaw(channel_, path, {}).status, type);
    }
    counted.push_back(Refused(*method));
  }
  const std::string metrics = Scrape();
  for (const std::string& series : counted) EXPECT_THAT(metrics, HasSubstr(series));
}

TEST_F(MalformedRequestTest, AStreamAnswersWhatCameBeforeAndEndsWithTheError) {
  MustBuild();
  v1::TransformRequest first = TransformOf("letter", UniformExamples(2, 3));
  v1::TransformRequest next;
  *next.mutable_examples() = UniformExamples(1, 3);
  const std::string good = next.SerializeAsString();
  const std::string path = "/phimap.v1.TransformService/TransformStream";
  for (const size_t before : {0, 1, 2, 5}) {
    SCOPED_TRACE(before);
    std::vector<std::string> messages(before + 3, good);
    messages[0] = first.SerializeAsString();
    messages[before] = kGarbage;
    const RawAnswer answer = CallRaw(channel_, path, messages);
    ExpectMalformed(answer.status, "phimap.v1.TransformRequest");
    EXPECT_EQ(FactsOf(answer.status).metadata["request"], absl::StrCat(before));
    EXPECT_EQ(answer.messages.size(), before);
  }
}

}  // namespace
}  // namespace phimap::testing
