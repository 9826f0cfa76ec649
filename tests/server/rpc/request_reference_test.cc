#include "server/rpc/request_reference.h"

#include <optional>
#include <string>

#include "grpc/health/v1/health.pb.h"
#include "gtest/gtest.h"
#include "inference/inference_service.pb.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"
#include "phimap/v1/predict_service.pb.h"
#include "phimap/v1/transform_service.pb.h"

namespace phimap::testing {
namespace {

TEST(RequestReferenceTest, IsInTheFieldWhereTheRequestHasIt) {
  v1::TransformRequest transform;
  EXPECT_EQ(ReferenceIn(transform), "");
  transform.set_reference("letters@2");
  EXPECT_EQ(ReferenceIn(transform), "letters@2");
  v1::BuildRequest build;
  EXPECT_EQ(ReferenceIn(build), "");
  build.mutable_spec()->set_name("letters");
  EXPECT_EQ(ReferenceIn(build), "letters");
  build.mutable_examples();
  EXPECT_EQ(ReferenceIn(build), "");
  v1::TrainRequest train;
  train.mutable_spec()->set_reference("letters@prod");
  EXPECT_EQ(ReferenceIn(train), "letters@prod");
  train.mutable_spec()->clear_reference();
  train.mutable_spec()->mutable_build()->set_name("digits");
  EXPECT_EQ(ReferenceIn(train), "digits");
  v1::EvaluateRequest evaluate;
  evaluate.mutable_spec()->set_reference("letters");
  EXPECT_EQ(ReferenceIn(evaluate), "letters");
  v1::GetMappingRequest get;
  get.set_name("letters");
  EXPECT_EQ(ReferenceIn(get), "letters");
  v1::ImportRequest import;
  import.mutable_chunk();
  EXPECT_EQ(ReferenceIn(import), "");
  import.set_name("letters");
  EXPECT_EQ(ReferenceIn(import), "letters");
  inference::ModelInferRequest infer;
  infer.set_model_name("letters");
  EXPECT_EQ(ReferenceIn(infer), "letters");
  infer.set_model_version("3");
  EXPECT_EQ(ReferenceIn(infer), "letters@3");
  inference::ModelReadyRequest ready;
  ready.set_name("letters");
  ready.set_version("prod");
  EXPECT_EQ(ReferenceIn(ready), "letters@prod");
  EXPECT_EQ(ReferenceIn(v1::ListMappingsRequest()), "");
  grpc::health::v1::HealthCheckRequest check;
  check.set_service("phimap.v1.MappingService");
  EXPECT_EQ(ReferenceIn(check), "");
}

TEST(RequestReferenceTest, TheLogHasItsPartsIfItIsOne) {
  const std::string longest(63, 'a');
  const struct {
    std::string reference;
    std::string mapping;
    std::optional<int64_t> version;
    const char* alias;
    const char* digest;
  } cases[] = {
      {"letters", "letters", std::nullopt, "", ""},
      {"letters@7", "letters", 7, "", ""},
      {"letters@prod", "letters", std::nullopt, "prod", ""},
      {"letters@sha256:8c0e12f", "letters", std::nullopt, "", "8c0e12f"},
      {"letters@", "letters", std::nullopt, "", ""},
      {"letters@0", "letters", std::nullopt, "", ""},
      {"letters@John Smith", "letters", std::nullopt, "", ""},
      {"letters@99999999999999999999", "letters", std::nullopt, "", ""},
      {"letters@sha256:John", "letters", std::nullopt, "", ""},
      {"", "", std::nullopt, "", ""},
      {"@7", "", std::nullopt, "", ""},
      {"Letters", "", std::nullopt, "", ""},
      {"John Smith@7", "", std::nullopt, "", ""},
      {longest, longest, std::nullopt, "", ""},
      {longest + "a", "", std::nullopt, "", ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.reference);
    const LoggedReference parts = ReferenceForLog(c.reference);
    EXPECT_EQ(parts.mapping, c.mapping);
    EXPECT_EQ(parts.version, c.version);
    EXPECT_EQ(parts.alias, c.alias);
    EXPECT_EQ(parts.digest, c.digest);
  }
}

}  // namespace
}  // namespace phimap::testing
