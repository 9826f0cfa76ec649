// Tests aliases and deletion over gRPC.
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class NamesRpcTest : public ServerFixture {
 protected:
  NamesRpcTest() {
    options_.http = "127.0.0.1:0";
    Start();
  }

  grpc::Status SetAlias(int64_t version, const std::string& etag = "", v1::Alias* alias = nullptr,
                        const std::string& name = "prod") {
    return Ask(
        &MappingStub::SetAlias,
        absl::StrFormat("reference: 'letter@%d' alias: '%s' etag: '%s'", version, name, etag),
        alias);
  }
  grpc::Status DeleteAlias(const std::string& etag = "") {
    return Ask(&MappingStub::DeleteAlias, "name: 'letter' alias: 'prod' etag: '" + etag + "'");
  }
  grpc::Status DeleteVersion(int64_t version, bool give_up_rollback = false) {
    return Ask(&MappingStub::DeleteVersion,
               absl::StrFormat("reference: 'letter@%d' give_up_rollback: %s", version,
                               give_up_rollback ? "true" : "false"));
  }
  grpc::Status DeleteMapping() { return Ask(&MappingStub::DeleteMapping, "name: 'letter'"); }
  // The aliases that GetMapping shows, such as "prod=2".
  std::vector<std::string> Aliases() {
    const v1::Mapping mapping = Answer(&MappingStub::GetMapping, "name: 'letter'");
    std::vector<std::string> texts;
    for (const v1::Alias& alias : mapping.aliases()) {
      texts.push_back(absl::StrCat(alias.name(), "=", alias.version()));
    }
    return texts;
  }
  // The number of the version that answers a Transform of `reference`; 0 if the call fails.
  int64_t AnswersAs(const std::string& reference, const std::string& expected_digest = "") {
    v1::TransformRequest request = TransformOf(reference, UniformExamples(1, 3));
    request.set_expected_digest(expected_digest);
    v1::TransformResponse response;
    const grpc::Status status = Transform(request, &response);
    v1::Version version;
    const grpc::Status got =
        Ask(&MappingStub::GetVersion, "reference: '" + reference + "'", &version);
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
  v1::ListMappingsResponse mappings = Answer(&MappingStub::ListMappings);
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
      EXPECT_THAT(status, IsError(Code::ABORTED, "ETAG_MISMATCH", "etag"));
      EXPECT_EQ(FactsOf(status).metadata["etag"], alias.etag());
      EXPECT_EQ(FactsOf(status).metadata["version"], "1");
    }
  }
  EXPECT_EQ(FactsOf(SetAlias(2, "*", nullptr, "new")).metadata["etag"], "none");
  EXPECT_THAT(Aliases(), ElementsAre("prod=1"));
  EXPECT_TRUE(SetAlias(2, "*").ok());
  EXPECT_EQ(AnswersAs("letter@prod"), 2);
}

TEST_F(NamesRpcTest, AVersionIsChangedByItsNumberOrDigestOnly) {
  const std::string digest = MustBuild().ref().digest();
  ASSERT_TRUE(SetAlias(1).ok());
  const std::string next = "alias: 'next' reference: 'letter@sha256:" + digest.substr(0, 7) + "'";
  EXPECT_EQ(Answer(&MappingStub::SetAlias, next).version(), 1);
  const std::string other = MustBuild("letter", "f2(landmarks=6)").ref().digest();
  MustBuild("letter", "f2(landmarks=6)");  // version 3 has the digest of version 2
  const std::string remove = "reference: 'letter@sha256:" + other +
                             "' operation_id: '00000000-0000-4000-8000-0000000000aa'";
  // Only the newest version of the digest is deleted, even if the request is sent again.
  for (int i = 0; i < 2; ++i) {
    Answer(&MappingStub::DeleteVersion, remove);
    EXPECT_EQ(AnswersAs("letter@3"), 0);
    EXPECT_EQ(AnswersAs("letter@2"), 2);
  }
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
  v1::TransformRequest request = TransformOf("letter@prod", UniformExamples(1, 3));
  request.set_expected_digest(first);
  const grpc::Status refused = Transform(request);
  EXPECT_EQ(refused.error_code(), Code::FAILED_PRECONDITION);
  EXPECT_EQ(FactsOf(refused).metadata["actual"], second);
}

TEST_F(NamesRpcTest, AStreamKeepsItsVersionWhenItsAliasMovesAndWhenThatVersionIsDeleted) {
  MustBuild("letter", "f1(landmarks=5)");
  MustBuild("letter", "f1(landmarks=6)");
  ASSERT_TRUE(SetAlias(1).ok());
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  v1::TransformRequest request = TransformOf("letter@prod", UniformExamples(1, 3));
  v1::TransformResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.version().number(), 1);
  const std::string features = response.features().float32_le();
  ASSERT_TRUE(SetAlias(2).ok());
  EXPECT_EQ(FactsOf(DeleteVersion(1)).reason, "VERSION_ROLLBACK_TARGET");
  ASSERT_TRUE(DeleteVersion(1, /*give_up_rollback=*/true).ok());
  EXPECT_EQ(AnswersAs("letter@1"), 0);
  EXPECT_EQ(AnswersAs("letter@prod"), 2);
  request.clear_reference();
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.features().float32_le(), features);
  ExpectEnds(*stream);
}

TEST_F(NamesRpcTest, WhatAnAliasPointsAtIsNotDeletedAndTheMessageSaysWhich) {
  MustBuild();
  ASSERT_TRUE(SetAlias(1).ok());
  EXPECT_THAT(DeleteVersion(1),
              IsError(Code::FAILED_PRECONDITION, "VERSION_IN_USE", _, HasSubstr("prod")));
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
  const std::string build = "name: 'letter' build_id: '" + spec.build_id() + "'";
  Answer(&MappingStub::GetBuild, build);
  ASSERT_TRUE(DeleteVersion(1).ok());
  EXPECT_EQ(Ask(&MappingStub::GetBuild, build).error_code(), Code::NOT_FOUND);
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
