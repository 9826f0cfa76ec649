// Tests aliases and deletion over gRPC.
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = grpc::StatusCode;

class NamesRpcTest : public ServerFixture {
 protected:
  NamesRpcTest() {
    options_.http = "127.0.0.1:0";
    Start();
  }

  grpc::Status SetAlias(int64_t version, const std::string& etag = "", v1::Alias* alias = nullptr,
                        const std::string& name = "prod") {
    v1::SetAliasRequest request;
    request.set_mapping("letter");
    request.set_alias(name);
    request.set_version(version);
    request.set_etag(etag);
    v1::Alias unused;
    grpc::ClientContext context;
    return mappings_->SetAlias(&context, request, alias == nullptr ? &unused : alias);
  }
  grpc::Status DeleteAlias(const std::string& etag = "", const std::string& name = "prod") {
    v1::DeleteAliasRequest request;
    request.set_mapping("letter");
    request.set_alias(name);
    request.set_etag(etag);
    v1::DeleteAliasResponse response;
    grpc::ClientContext context;
    return mappings_->DeleteAlias(&context, request, &response);
  }
  grpc::Status DeleteVersion(int64_t version, const std::string& mapping = "letter",
                             bool give_up_rollback = false) {
    v1::DeleteVersionRequest request;
    request.set_mapping(mapping);
    request.set_version(version);
    request.set_give_up_rollback(give_up_rollback);
    v1::DeleteVersionResponse response;
    grpc::ClientContext context;
    return mappings_->DeleteVersion(&context, request, &response);
  }
  grpc::Status DeleteMapping(const std::string& mapping = "letter") {
    v1::DeleteMappingRequest request;
    request.set_mapping(mapping);
    v1::DeleteMappingResponse response;
    grpc::ClientContext context;
    return mappings_->DeleteMapping(&context, request, &response);
  }
  // The aliases that GetMapping shows, such as "prod=2".
  std::vector<std::string> Aliases() {
    v1::GetMappingRequest request;
    request.set_mapping("letter");
    v1::Mapping mapping;
    grpc::ClientContext context;
    EXPECT_TRUE(mappings_->GetMapping(&context, request, &mapping).ok());
    std::vector<std::string> texts;
    for (const v1::Alias& alias : mapping.aliases()) {
      texts.push_back(absl::StrCat(alias.name(), "=", alias.version()));
    }
    return texts;
  }
  // The number of the version that answers a Transform of `reference`; 0 if the call fails.
  int64_t AnswersAs(const std::string& reference, const std::string& expected_digest = "") {
    v1::TransformRequest request;
    request.set_reference(reference);
    request.set_expected_digest(expected_digest);
    *request.mutable_examples() = UniformExamples(1, 3);
    v1::TransformResponse response;
    const grpc::Status status = Transform(request, &response);
    v1::GetVersionRequest get;
    get.set_reference(reference);
    v1::Version version;
    grpc::ClientContext context;
    const grpc::Status got = mappings_->GetVersion(&context, get, &version);
    if (!status.ok()) {
      EXPECT_EQ(status.error_code(), Code::NOT_FOUND) << status.error_message();
      EXPECT_EQ(got.error_code(), Code::NOT_FOUND) << got.error_message();
      return 0;
    }
    EXPECT_TRUE(got.ok()) << got.error_message();
    EXPECT_EQ(version.ref().SerializeAsString(), response.version().SerializeAsString());
    EXPECT_EQ(response.features().columns(), version.output_columns());
    return response.version().number();
  }
  // The value of a metric without labels.
  std::string Metric(const std::string& name) {
    const std::string text = Scrape();
    const size_t at = text.find("\n" + name + " ");
    if (at == std::string::npos) return "";
    const size_t begin = at + name.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
};

TEST_F(NamesRpcTest, AnAliasIsAReferenceEverywhereAndMoves) {
  std::vector<std::string> digests = {""};
  for (int d = 5; d <= 7; ++d) {
    digests.push_back(MustBuild("letter", absl::StrCat("f1(landmarks=", d, ")")).ref().digest());
  }
  EXPECT_EQ(AnswersAs("letter@prod"), 0);
  v1::Alias alias;
  ASSERT_TRUE(SetAlias(1, "", &alias).ok());
  EXPECT_EQ(alias.name(), "prod");
  EXPECT_EQ(alias.version(), 1);
  EXPECT_EQ(alias.digest(), digests[1]);
  EXPECT_EQ(alias.previous_version(), 0);
  EXPECT_NE(alias.etag(), "");
  EXPECT_GT(alias.move_time().seconds(), 0);
  EXPECT_EQ(AnswersAs("letter@prod"), 1);
  ASSERT_TRUE(SetAlias(3, alias.etag(), &alias).ok());
  EXPECT_EQ(alias.digest(), digests[3]);
  EXPECT_EQ(alias.previous_version(), 1);
  EXPECT_EQ(AnswersAs("letter@prod"), 3);
  ASSERT_TRUE(SetAlias(2, "", nullptr, "canary").ok());
  EXPECT_THAT(Aliases(), ElementsAre("canary=2", "prod=3"));
  v1::ListMappingsResponse mappings;
  grpc::ClientContext context;
  ASSERT_TRUE(mappings_->ListMappings(&context, {}, &mappings).ok());
  ASSERT_EQ(mappings.mappings(0).aliases_size(), 2);
  EXPECT_EQ(mappings.mappings(0).aliases(0).digest(), digests[2]);
  EXPECT_EQ(mappings.mappings(0).aliases(1).digest(), digests[3]);
  EXPECT_EQ(mappings.mappings(0).aliases(1).etag(), alias.etag());
  Restart();
  EXPECT_EQ(AnswersAs("letter@prod"), 3);
  ASSERT_TRUE(DeleteAlias().ok());
  EXPECT_EQ(AnswersAs("letter@prod"), 0);
  EXPECT_EQ(DeleteAlias().error_code(), Code::NOT_FOUND);
  EXPECT_THAT(Aliases(), ElementsAre("canary=2"));
}

TEST_F(NamesRpcTest, AnotherEtagIsAbortedAndCarriesTheCurrentOne) {
  MustBuild();
  MustBuild();
  v1::Alias alias;
  ASSERT_TRUE(SetAlias(1, "none", &alias).ok());
  for (const char* etag : {"none", "0123456789abcdef"}) {
    for (const grpc::Status& status : {SetAlias(2, etag), DeleteAlias(etag)}) {
      EXPECT_EQ(status.error_code(), Code::ABORTED);
      EXPECT_EQ(FactsOf(status).reason, "ETAG_MISMATCH");
      EXPECT_EQ(FactsOf(status).field, "etag");
      EXPECT_EQ(FactsOf(status).metadata["etag"], alias.etag());
      EXPECT_EQ(FactsOf(status).metadata["version"], "1");
    }
  }
  EXPECT_EQ(FactsOf(SetAlias(2, "*", nullptr, "new")).metadata["etag"], "none");
  EXPECT_THAT(Aliases(), ElementsAre("prod=1"));
  EXPECT_TRUE(SetAlias(2, "*").ok());
  EXPECT_EQ(AnswersAs("letter@prod"), 2);
}

TEST_F(NamesRpcTest, MalformedAndUnknownNamesAreNamed) {
  MustBuild();
  const auto expect = [](const grpc::Status& status, Code code, const char* field) {
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_EQ(FactsOf(status).field, field) << status.error_message();
  };
  for (const char* name : {"", "Prod", "7", "a b", "-a", "pröd"}) {
    expect(SetAlias(1, "", nullptr, name), Code::INVALID_ARGUMENT, "alias");
    expect(DeleteAlias("", name), Code::INVALID_ARGUMENT, "alias");
  }
  for (const int64_t version : {int64_t{0}, int64_t{-1}}) {
    expect(SetAlias(version), Code::INVALID_ARGUMENT, "version");
    expect(DeleteVersion(version), Code::INVALID_ARGUMENT, "version");
  }
  for (const char* mapping : {"", "Letter", "letter@1", "letter-"}) {
    expect(DeleteVersion(1, mapping), Code::INVALID_ARGUMENT, "mapping");
    expect(DeleteMapping(mapping), Code::INVALID_ARGUMENT, "mapping");
  }
  EXPECT_EQ(SetAlias(2).error_code(), Code::NOT_FOUND);
  EXPECT_EQ(DeleteVersion(2).error_code(), Code::NOT_FOUND);
  EXPECT_EQ(DeleteVersion(1, "digit").error_code(), Code::NOT_FOUND);
  EXPECT_EQ(DeleteMapping("digit").error_code(), Code::NOT_FOUND);
  EXPECT_THAT(Aliases(), IsEmpty());
}

TEST_F(NamesRpcTest, TheVersionIsLoadedBeforeTheAliasMoves) {
  MustBuild();
  MustBuild("letter", "f2(landmarks=6)");
  EXPECT_EQ(Metric("phimap_version_loads_total"), "0");
  ASSERT_TRUE(SetAlias(1).ok());
  EXPECT_EQ(Metric("phimap_version_loads_total"), "1");
  EXPECT_EQ(AnswersAs("letter@prod"), 1);
  ASSERT_TRUE(SetAlias(2).ok());
  EXPECT_EQ(Metric("phimap_version_loads_total"), "2");
  EXPECT_EQ(AnswersAs("letter@prod"), 2);
  EXPECT_EQ(Metric("phimap_version_loads_total"), "2");
}

TEST_F(NamesRpcTest, AVersionThatCannotBeLoadedDoesNotGetTheAlias) {
  MustBuild();
  const v1::Version bad = MustBuild("letter", "f2(landmarks=6)");
  ASSERT_TRUE(SetAlias(1).ok());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    if (absl::StartsWith(entry.path().filename().string(), bad.ref().digest())) {
      std::filesystem::resize_file(entry.path(), 100);
    }
  }
  EXPECT_EQ(SetAlias(2).error_code(), Code::DATA_LOSS);
  EXPECT_EQ(AnswersAs("letter@prod"), 1);
}

TEST_F(NamesRpcTest, WhoExpectsADigestGetsItOrIsRefused) {
  const std::string first = MustBuild().ref().digest();
  const std::string second = MustBuild("letter", "f2(landmarks=6)").ref().digest();
  ASSERT_TRUE(SetAlias(1).ok());
  EXPECT_EQ(AnswersAs("letter@prod", first), 1);
  ASSERT_TRUE(SetAlias(2).ok());
  EXPECT_EQ(AnswersAs("letter@prod", second), 2);
  v1::TransformRequest request;
  request.set_reference("letter@prod");
  request.set_expected_digest(first);
  *request.mutable_examples() = UniformExamples(1, 3);
  v1::TransformResponse response;
  const grpc::Status refused = Transform(request, &response);
  EXPECT_EQ(refused.error_code(), Code::FAILED_PRECONDITION);
  EXPECT_EQ(FactsOf(refused).metadata["actual"], second);
}

TEST_F(NamesRpcTest, AStreamKeepsItsVersionWhenItsAliasMovesAndWhenThatVersionIsDeleted) {
  MustBuild("letter", "f1(landmarks=5)");
  MustBuild("letter", "f1(landmarks=6)");
  ASSERT_TRUE(SetAlias(1).ok());
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  v1::TransformStreamRequest request;
  request.set_reference("letter@prod");
  *request.mutable_examples() = UniformExamples(1, 3);
  v1::TransformStreamResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.version().number(), 1);
  const std::string features = response.features().float32_le();
  ASSERT_TRUE(SetAlias(2).ok());
  EXPECT_EQ(FactsOf(DeleteVersion(1)).reason, "VERSION_ROLLBACK_TARGET");
  ASSERT_TRUE(DeleteVersion(1, "letter", /*give_up_rollback=*/true).ok());
  EXPECT_EQ(AnswersAs("letter@1"), 0);
  EXPECT_EQ(AnswersAs("letter@prod"), 2);
  request.clear_reference();
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.features().float32_le(), features);
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(NamesRpcTest, WhatAnAliasPointsAtIsNotDeletedAndTheMessageSaysWhich) {
  MustBuild();
  ASSERT_TRUE(SetAlias(1).ok());
  const grpc::Status version = DeleteVersion(1);
  EXPECT_EQ(version.error_code(), Code::FAILED_PRECONDITION);
  EXPECT_EQ(FactsOf(version).reason, "VERSION_IN_USE");
  EXPECT_THAT(version.error_message(), HasSubstr("prod"));
  EXPECT_EQ(DeleteMapping().error_code(), Code::FAILED_PRECONDITION);
  EXPECT_EQ(AnswersAs("letter@prod"), 1);
  ASSERT_TRUE(DeleteAlias().ok());
  EXPECT_TRUE(DeleteMapping().ok());
  EXPECT_EQ(AnswersAs("letter"), 0);
}

TEST_F(NamesRpcTest, TheBareNameMeansTheNewestVersionThatIsLeft) {
  for (int d = 5; d <= 7; ++d) MustBuild("letter", absl::StrCat("f1(landmarks=", d, ")"));
  EXPECT_EQ(AnswersAs("letter"), 3);
  ASSERT_TRUE(DeleteVersion(3).ok());
  EXPECT_EQ(AnswersAs("letter"), 2);
  EXPECT_EQ(MustBuild().ref().number(), 4);
  EXPECT_EQ(AnswersAs("letter"), 4);
}

TEST_F(NamesRpcTest, ABuildWhoseVersionWasDeletedIsForgottenAndItsIdMayBeUsedAgain) {
  const v1::BuildSpec spec = Spec();
  std::optional<v1::Version> version;
  ASSERT_TRUE(Build(spec, 40, &version).ok());
  MustBuild();
  v1::BuildJob job;
  v1::GetBuildRequest request;
  request.set_mapping("letter");
  request.set_build_id(spec.build_id());
  grpc::ClientContext before;
  ASSERT_TRUE(mappings_->GetBuild(&before, request, &job).ok());
  ASSERT_TRUE(DeleteVersion(1).ok());
  grpc::ClientContext after;
  EXPECT_EQ(mappings_->GetBuild(&after, request, &job).error_code(), Code::NOT_FOUND);
  ASSERT_TRUE(Build(spec, 40, &version).ok());
  EXPECT_EQ(version->ref().number(), 3);
}

TEST_F(NamesRpcTest, ADeletedMappingIsGoneAndItsNameGoesOnCounting) {
  MustBuild();
  MustBuild("letter", "f2(landmarks=6)");
  MustBuild("digit", "f2(landmarks=7)");
  EXPECT_EQ(AnswersAs("letter"), 2);
  ASSERT_TRUE(DeleteMapping().ok());
  EXPECT_EQ(AnswersAs("letter"), 0);
  EXPECT_EQ(AnswersAs("letter@1"), 0);
  EXPECT_EQ(AnswersAs("digit"), 1);
  EXPECT_EQ(DeleteMapping().error_code(), Code::NOT_FOUND);
  EXPECT_EQ(MustBuild().ref().number(), 3);
  EXPECT_EQ(AnswersAs("letter"), 3);
}

}  // namespace
}  // namespace phimap::testing
