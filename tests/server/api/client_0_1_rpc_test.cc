// Sends the bytes that a client of API 0.1 sends, encoded with the protos of 0.1: what they can
// still mean is done. refusals_test.cc has those that are refused.
#include <string>

#include "tests/server/api/raw_call.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// BuildRequest { spec { mapping: "letter" build_id: "…01" spec { … } kernel: "rbf(gamma=0.5)"
// seed: 7 } }, whose inner spec is { text: "f2(landmarks=5)" }.
const std::string kTextSpec =
    "\nS\n\x06letter\x12$00000000-0000-4000-8000-000000000001\x1a\x11\n\x0f"
    "f2(landmarks=5)\"\x0erbf(gamma=0.5)0\x07";
// BuildRequest { finish { row_count: 40 } }.
const std::string kFinish = "\x1a\x02\x08(";

class Client01RpcTest : public ServerFixture {
 protected:
  Client01RpcTest() { Start(); }

  RawAnswer CallMappings(const std::string& method, const std::vector<std::string>& messages) {
    return CallRaw(channel_, "/phimap.v1.MappingService/" + method, messages);
  }
  RawAnswer BuildBy(const std::string& spec) {
    v1::BuildRequest rows;
    *rows.mutable_examples() = UniformExamples(40, 3);
    return CallMappings("Build", {spec, rows.SerializeAsString(), kFinish});
  }
};

TEST_F(Client01RpcTest, ATextBuildTransformAndExportWorkAndTheBuildIdAttaches) {
  const RawAnswer built = BuildBy(kTextSpec);
  ASSERT_TRUE(built.status.ok()) << built.status.error_message();
  v1::BuildResponse last;
  ASSERT_TRUE(last.ParseFromString(built.messages.back()));
  EXPECT_EQ(last.version().ref().name(), "letter");

  // TransformRequest and TransformStreamRequest { reference: "letter@1" examples { dense { rows: 1
  // columns: 3 numbers { values: [1, 2, 3] } } } }.
  const std::string transform(
      "\n\x08letter@1\x1a\"\n "
      "\x08\x01\x10\x03*\x1a\n\x18\0\0\0\0\0\0\xf0?\0\0\0\0\0\0\0@\0\0\0\0\0\0"
      "\x08@",
      46);
  const RawAnswer one = CallRaw(channel_, "/phimap.v1.TransformService/Transform", {transform});
  ASSERT_TRUE(one.status.ok()) << one.status.error_message();
  const RawAnswer stream =
      CallRaw(channel_, "/phimap.v1.TransformService/TransformStream", {transform});
  ASSERT_TRUE(stream.status.ok()) << stream.status.error_message();
  EXPECT_EQ(one.messages, stream.messages);
  const RawAnswer exported = CallMappings("Export", {"\n\x08letter@1"});
  EXPECT_TRUE(exported.status.ok()) << exported.status.error_message();

  v1::BuildRequest again;
  *again.mutable_spec() = Spec();
  again.mutable_spec()->set_seed(7);
  for (const std::string& spec : {kTextSpec, again.SerializeAsString()}) {
    const RawAnswer attached = BuildBy(spec);
    ASSERT_TRUE(attached.status.ok()) << attached.status.error_message();
    v1::BuildResponse first;
    ASSERT_TRUE(first.ParseFromString(attached.messages.front()));
    EXPECT_TRUE(first.accepted().attached());
  }
}

}  // namespace
}  // namespace phimap::testing
