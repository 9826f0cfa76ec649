// Tests what callers with a name, patterns of names and limits may do, and what the audit says of
// them.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "google/protobuf/descriptor.h"
#include "inference/inference_service.grpc.pb.h"
#include "proto/chunk/artifact_chunk.h"
#include "proto/methods/method_facts.h"
#include "server/store/sha256.h"
#include "tests/server/api/raw_call.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr char kId[] = "00000000-0000-4000-8000-0000000000";

std::string TokenOf(const std::string& name) { return absl::StrCat(name, "-token-0123456789"); }

class PrincipalsRpcTest : public ServerFixture {
 protected:
  PrincipalsRpcTest() {
    options_.http = "127.0.0.1:0";
    options_.token_file = tokens_.path() + "/tokens";
  }

  // Starts with lines of NAME ROLE and options; the token of each is TokenOf(NAME).
  void StartWith(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
      const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
      absl::StrAppend(&text, words[0], " ", words[1], " ", TokenOf(words[0]), " ",
                      words.size() > 2 ? words[2] : "", "\n");
    }
    std::ofstream(options_.token_file) << text;
    ASSERT_EQ(chmod(options_.token_file.c_str(), 0600), 0);
    Start();
  }

  // The context of a call by the caller `name`.
  grpc::ClientContext* By(const std::string& name) {
    grpc::ClientContext* const context = NewContext();
    context->AddMetadata("authorization", absl::StrCat("Bearer ", TokenOf(name)));
    return context;
  }

  // Calls a method with a request in text form.
  template <typename Request, typename Response>
  grpc::Status AskAs(const std::string& name,
                     grpc::Status (MappingStub::*method)(grpc::ClientContext*, const Request&,
                                                         Response*),
                     const std::string& request, Response* response = nullptr) {
    Response unused;
    return ((*mappings_).*method)(By(name), Parsed<Request>(request),
                                  response == nullptr ? &unused : response);
  }

  grpc::Status BuildAs(const std::string& name, const std::string& mapping,
                       std::optional<std::string> id = std::nullopt,
                       const std::string& expression = "f2(landmarks=5)") {
    BuildStream stream(*mappings_, TokenOf(name));
    stream.Send(Spec(mapping, expression, id.value_or(absl::StrCat(kId, next_id_++ % 90 + 10))));
    stream.Send(UniformExamples(40, 3));
    stream.SendFinish(40);
    stream.HalfClose();
    return stream.Finish();
  }

  grpc::Status TransformAs(const std::string& name, const std::string& reference, int rows = 1) {
    v1::TransformResponse response;
    return transforms_->Transform(By(name), TransformOf(reference, UniformExamples(rows, 3)),
                                  &response);
  }

  grpc::Status TransformStreamAs(const std::string& name, const std::string& reference) {
    const auto stream = transforms_->TransformStream(By(name));
    stream->Write(TransformOf(reference, UniformExamples(1, 3)));
    stream->WritesDone();
    v1::TransformResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  }

  grpc::Status ExportAs(const std::string& name, const std::string& reference,
                        std::string* artifact = nullptr) {
    v1::ExportRequest request;
    request.set_reference(reference);
    const auto stream = mappings_->Export(By(name), request);
    v1::ArtifactChunk chunk;
    while (stream->Read(&chunk)) {
      if (artifact != nullptr) *artifact += chunk.data();
    }
    return stream->Finish();
  }

  grpc::Status ImportAs(const std::string& name, const std::string& mapping,
                        const std::string& artifact, v1::Version* version) {
    const auto stream = mappings_->Import(By(name), version);
    v1::ImportRequest first;
    first.set_name(mapping);
    stream->Write(first);
    v1::ImportRequest chunk;
    FillChunk(0, artifact, *chunk.mutable_chunk());
    stream->Write(chunk);
    v1::ImportRequest digest;
    digest.set_digest(Sha256Hex(artifact));
    stream->Write(digest);
    stream->WritesDone();
    return stream->Finish();
  }

  std::vector<v1::AuditEntry> AuditAs(const std::string& name, const std::string& request = "") {
    v1::ListAuditEntriesResponse response;
    EXPECT_THAT(AskAs(name, &MappingStub::ListAuditEntries, request, &response), IsOk());
    return {response.entries().begin(), response.entries().end()};
  }

  TemporaryFolder tokens_;
};

std::string TextOf(const grpc::Status& status) {
  std::string text = absl::StrCat(status.error_code(), " ", status.error_message());
  for (const auto& [key, value] : FactsOf(status).metadata) {
    absl::StrAppend(&text, " ", key, "=", value);
  }
  return absl::StrCat(text, " ", FactsOf(status).reason, " ", FactsOf(status).field);
}

// A mapping of another team is in no answer, and every error is that of a mapping that does not
// exist, to the last letter.
TEST_F(PrincipalsRpcTest, WhatOneMayNotSeeIsAsIfAbsent) {
  StartWith({"root admin", "fraud admin names=fraud-*", "risk admin names=risk-*"});
  ASSERT_THAT(BuildAs("risk", "risk-cards", absl::StrCat(kId, "01")), IsOk());
  ASSERT_THAT(BuildAs("fraud", "fraud-cards"), IsOk());
  ASSERT_THAT(AskAs("risk", &MappingStub::SetAlias, "reference: 'risk-cards@1' alias: 'prod'"),
              IsOk());
  // Makes one call, once with a mapping that exists and once with one that does not.
  using Ask = std::function<grpc::Status(const std::string& mapping)>;
  const auto unary = [this](auto method, const std::string& request) {
    return [this, method, request](const std::string& mapping) {
      return AskAs("fraud", method, absl::StrReplaceAll(request, {{"NAME", mapping}}));
    };
  };
  const std::map<std::string, Ask> calls = {
      {"GetMapping", unary(&MappingStub::GetMapping, "name: 'NAME'")},
      {"GetVersion", unary(&MappingStub::GetVersion, "reference: 'NAME'")},
      {"GetVersion by number", unary(&MappingStub::GetVersion, "reference: 'NAME@1'")},
      {"GetVersion by alias", unary(&MappingStub::GetVersion, "reference: 'NAME@prod'")},
      {"ListVersions", unary(&MappingStub::ListVersions, "name: 'NAME'")},
      {"KeepVersion", unary(&MappingStub::KeepVersion, "reference: 'NAME@1'")},
      {"DeleteVersion", unary(&MappingStub::DeleteVersion, "reference: 'NAME@1'")},
      {"DeleteMapping", unary(&MappingStub::DeleteMapping, "name: 'NAME'")},
      {"SetAlias", unary(&MappingStub::SetAlias, "reference: 'NAME@1' alias: 'prod'")},
      {"DeleteAlias", unary(&MappingStub::DeleteAlias, "name: 'NAME' alias: 'prod'")},
      {"GetDrift", unary(&MappingStub::GetDrift, "name: 'NAME'")},
      {"GetBuild",
       unary(&MappingStub::GetBuild, absl::StrCat("name: 'NAME' build_id: '", kId, "01'"))},
      {"CancelBuild",
       unary(&MappingStub::CancelBuild, absl::StrCat("name: 'NAME' build_id: '", kId, "01'"))},
      {"Build", [this](const std::string& mapping) { return BuildAs("fraud", mapping); }},
      {"Transform", [this](const std::string& mapping) { return TransformAs("fraud", mapping); }},
      {"TransformStream",
       [this](const std::string& mapping) { return TransformStreamAs("fraud", mapping); }},
      {"Export", [this](const std::string& mapping) { return ExportAs("fraud", mapping); }},
      {"ListAuditEntries", unary(&MappingStub::ListAuditEntries, "name: 'NAME'")},
  };
  for (const auto& [what, ask] : calls) {
    SCOPED_TRACE(what);
    const grpc::Status there = ask("risk-cards");
    const grpc::Status absent = ask("risk-cords");
    EXPECT_FALSE(there.ok());
    EXPECT_EQ(absl::StrReplaceAll(TextOf(there), {{"risk-cards", "risk-cords"}}), TextOf(absent));
  }
  v1::ListMappingsResponse mappings;
  ASSERT_THAT(AskAs("fraud", &MappingStub::ListMappings, "", &mappings), IsOk());
  ASSERT_EQ(mappings.mappings_size(), 1);
  EXPECT_EQ(mappings.mappings(0).name(), "fraud-cards");
  v1::ListBuildsResponse builds;
  ASSERT_THAT(AskAs("fraud", &MappingStub::ListBuilds, "", &builds), IsOk());
  ASSERT_EQ(builds.builds_size(), 1);
  EXPECT_EQ(builds.builds(0).owner(), "fraud");
  for (const v1::AuditEntry& entry : AuditAs("fraud")) EXPECT_EQ(entry.mapping(), "fraud-cards");
  // Nothing was lost, and its owner and the root see it.
  EXPECT_THAT(TransformAs("risk", "risk-cards@prod"), IsOk());
  ASSERT_THAT(AskAs("root", &MappingStub::ListMappings, "", &mappings), IsOk());
  EXPECT_EQ(mappings.mappings_size(), 2);
}

TEST_F(PrincipalsRpcTest, PagesAreFullOfWhatOneMaySee) {
  StartWith({"root admin", "fraud reader names=fraud-*"});
  std::set<std::string> expected;
  for (int i = 0; i < 12; ++i) {
    ASSERT_THAT(BuildAs("root", absl::StrCat(i % 3 == 0 ? "fraud-" : "risk-", "m", i)), IsOk());
    if (i % 3 == 0) expected.insert(absl::StrCat("fraud-m", i));
  }
  std::set<std::string> seen;
  std::string token;
  int pages = 0;
  do {
    v1::ListMappingsResponse page;
    ASSERT_THAT(AskAs("fraud", &MappingStub::ListMappings,
                      absl::StrCat("page_size: 2 page_token: '", token, "'"), &page),
                IsOk());
    EXPECT_EQ(page.mappings_size(), 2);
    for (const v1::Mapping& mapping : page.mappings()) seen.insert(mapping.name());
    token = page.next_page_token();
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(pages, 2);
}

TEST_F(PrincipalsRpcTest, TheInferenceProtocolShowsTheSame) {
  StartWith({"root admin", "fraud reader names=fraud-*"});
  ASSERT_THAT(BuildAs("root", "fraud-cards"), IsOk());
  ASSERT_THAT(BuildAs("root", "risk-cards"), IsOk());
  EXPECT_THAT(TransformAs("root", "risk-cards"), IsOk());
  const auto stub = inference::GRPCInferenceService::NewStub(channel_);
  inference::RepositoryIndexResponse index;
  ASSERT_THAT(stub->RepositoryIndex(By("fraud"), {}, &index), IsOk());
  ASSERT_EQ(index.models_size(), 1);
  EXPECT_EQ(index.models(0).name(), "fraud-cards");
  inference::ModelStatisticsResponse statistics;
  ASSERT_THAT(stub->ModelStatistics(By("fraud"), {}, &statistics), IsOk());
  EXPECT_EQ(statistics.model_stats_size(), 0);
  ASSERT_THAT(stub->ModelStatistics(By("root"), {}, &statistics), IsOk());
  EXPECT_EQ(statistics.model_stats_size(), 1);
  inference::ModelReadyRequest ready;
  inference::ModelReadyResponse answer;
  ready.set_name("risk-cards");
  ASSERT_THAT(stub->ModelReady(By("fraud"), ready, &answer), IsOk());
  EXPECT_FALSE(answer.ready());
  ready.set_name("fraud-cards");
  ASSERT_THAT(stub->ModelReady(By("fraud"), ready, &answer), IsOk());
  EXPECT_TRUE(answer.ready());
  inference::ModelMetadataRequest metadata;
  inference::ModelMetadataResponse described;
  metadata.set_name("risk-cards");
  EXPECT_THAT(stub->ModelMetadata(By("fraud"), metadata, &described),
              IsError(Code::NOT_FOUND, "MAPPING_NOT_FOUND"));
  inference::ModelConfigRequest config;
  inference::ModelConfigResponse configured;
  config.set_name("risk-cards");
  EXPECT_THAT(stub->ModelConfig(By("fraud"), config, &configured),
              IsError(Code::NOT_FOUND, "MAPPING_NOT_FOUND"));
}

TEST_F(PrincipalsRpcTest, ARoleIsThatOfThePattern) {
  StartWith({"root admin", "fraud admin names=shared-*:reader,fraud-*:builder,own"});
  for (const char* name : {"shared-cards", "fraud-cards", "own"}) {
    ASSERT_THAT(BuildAs("root", name), IsOk());
    EXPECT_THAT(TransformAs("fraud", name), IsOk()) << name;
  }
  const auto alias = [this](const std::string& mapping) {
    return AskAs("fraud", &MappingStub::SetAlias,
                 absl::StrCat("reference: '", mapping, "@1' alias: 'prod'"));
  };
  const auto too_low = IsError(Code::PERMISSION_DENIED, "ROLE_TOO_LOW");
  EXPECT_THAT(BuildAs("fraud", "shared-cards"), too_low);
  EXPECT_THAT(BuildAs("fraud", "fraud-cards"), IsOk());
  EXPECT_THAT(BuildAs("fraud", "risk-cards"),
              IsError(Code::PERMISSION_DENIED, "NAME_NOT_ALLOWED", "spec.name",
                      HasSubstr("shared-* (reader), fraud-* (builder), own")));
  EXPECT_THAT(alias("shared-cards"), too_low);
  EXPECT_THAT(alias("fraud-cards"), too_low);
  EXPECT_THAT(alias("own"), IsOk());
}

TEST_F(PrincipalsRpcTest, WithoutExportNoArtifactLeaves) {
  StartWith({"root admin", "shop reader export=no"});
  ASSERT_THAT(BuildAs("root", "cards"), IsOk());
  EXPECT_THAT(ExportAs("shop", "cards"), IsError(Code::PERMISSION_DENIED, "EXPORT_NOT_ALLOWED"));
  EXPECT_THAT(TransformAs("shop", "cards"), IsOk());
  EXPECT_THAT(ExportAs("root", "cards"), IsOk());
}

TEST_F(PrincipalsRpcTest, OnlyItsOwnerAndAnAdminCancelABuild) {
  StartWith({"root admin", "ann builder", "bob builder"});
  build_gate_.Close();
  const auto order = [this](const std::string& id) {
    auto stream = std::make_unique<BuildStream>(*mappings_, TokenOf("ann"));
    stream->Send(Spec("cards", "f2(landmarks=5)", id));
    EXPECT_TRUE(stream->AwaitAccepted().has_value());
    return stream;
  };
  const auto cancel = [this](const std::string& name, const std::string& id) {
    return AskAs(name, &MappingStub::CancelBuild,
                 absl::StrCat("name: 'cards' build_id: '", id, "'"));
  };
  const std::string first = absl::StrCat(kId, "01");
  const auto stream = order(first);
  EXPECT_THAT(cancel("bob", first), IsError(Code::PERMISSION_DENIED, "BUILD_OF_ANOTHER", "build_id",
                                            HasSubstr("ordered by ann")));
  EXPECT_THAT(cancel("ann", first), IsOk());
  const std::string second = absl::StrCat(kId, "02");
  const auto other = order(second);
  EXPECT_THAT(cancel("root", second), IsOk());
  build_gate_.Open();
  std::vector<std::string> audit;
  for (const v1::AuditEntry& entry : AuditAs("root")) {
    audit.push_back(absl::StrCat(entry.principal(), " ", entry.method(), " ", entry.outcome()));
  }
  const std::string build = "phimap.v1.MappingService/Build CANCELLED";
  const std::string cancelled = "phimap.v1.MappingService/CancelBuild ";
  EXPECT_THAT(audit, ::testing::IsSupersetOf(
                         {"root " + cancelled + "OK", "ann " + build, "ann " + cancelled + "OK"}));
}

TEST_F(PrincipalsRpcTest, RatesAndSharesHoldAndSayWhenToComeBack) {
  StartWith({"root admin", "shop reader rows=1", "app reader calls=3",
             "ann builder builds=2 versions=1"});
  ASSERT_THAT(BuildAs("root", "cards"), IsOk());
  EXPECT_THAT(TransformAs("shop", "cards", 10), IsOk());
  const grpc::Status rows = TransformAs("shop", "cards", 10);
  EXPECT_THAT(rows, IsError(Code::RESOURCE_EXHAUSTED, "CALLER_RATE_REACHED", _,
                            HasSubstr("1 rows a second")));
  EXPECT_GT(FactsOf(rows).retry_ms.value_or(0), 0);
  EXPECT_LE(FactsOf(rows).retry_ms.value_or(0), 10'001);
  EXPECT_THAT(TransformStreamAs("shop", "cards"),
              IsError(Code::RESOURCE_EXHAUSTED, "CALLER_RATE_REACHED"));
  int admitted = 0;
  const absl::Time began = absl::Now();
  for (int i = 0; i < 20; ++i) admitted += TransformAs("app", "cards").ok() ? 1 : 0;
  EXPECT_GE(admitted, 3);
  EXPECT_LE(admitted, 3 * (1 + absl::ToDoubleSeconds(absl::Now() - began)));
  EXPECT_THAT(BuildAs("ann", "fraud-cards"), IsOk());
  EXPECT_THAT(BuildAs("ann", "fraud-cards"),
              IsError(Code::RESOURCE_EXHAUSTED, "STORE_SHARE_REACHED", _, HasSubstr("versions=1")));
  // Others are not slowed down.
  for (int i = 0; i < 20; ++i) EXPECT_THAT(TransformAs("root", "cards", 10), IsOk());
  const std::string metrics = Scrape();
  EXPECT_THAT(metrics, HasSubstr("phimap_caller_rows_total{caller=\"root\"} 200"));
  EXPECT_THAT(metrics, HasSubstr("phimap_caller_refused_total{caller=\"shop\"} 2"));
}

// A client whose answer was lost asks again, also when its share is full by what it asked for.
TEST_F(PrincipalsRpcTest, AnImportOfWhatIsThereTakesNoShare) {
  StartWith({"root admin", "ann builder versions=1"});
  ASSERT_THAT(BuildAs("ann", "cards"), IsOk());
  std::string artifact;
  ASSERT_THAT(ExportAs("ann", "cards", &artifact), IsOk());
  v1::Version version;
  EXPECT_THAT(ImportAs("ann", "cards", artifact, &version), IsOk());
  EXPECT_EQ(version.ref().number(), 1);
  EXPECT_THAT(ImportAs("ann", "others", artifact, &version),
              IsError(Code::RESOURCE_EXHAUSTED, "STORE_SHARE_REACHED"));
}

// The rows are not taken, because what they become could not be stored.
TEST_F(PrincipalsRpcTest, ABuildIsRefusedAtOnceWhileTheAuditCannotBeWritten) {
  const std::filesystem::path audit = tokens_.path() + "/audit";
  std::filesystem::create_symlink(tokens_.path() + "/disk", audit);
  options_.audit_log = audit;
  StartWith({"root admin"});
  ASSERT_THAT(BuildAs("root", "cards"), IsOk());
  std::filesystem::remove(audit);
  std::filesystem::create_symlink("/dev/full", audit);
  // This one is made: that it cannot be copied shows only then.
  EXPECT_THAT(AskAs("root", &MappingStub::SetAlias, "reference: 'cards@1' alias: 'prod'"), IsOk());
  BuildStream stream(*mappings_, TokenOf("root"));
  stream.Send(Spec("cards", "f2(landmarks=5)", absl::StrCat(kId, "01")));
  ASSERT_FALSE(stream.AwaitAccepted().has_value());
  EXPECT_THAT(stream.Finish(), IsError(Code::UNAVAILABLE, "AUDIT_LOG_NOT_WRITABLE"));
}

// Otherwise one team could take every place from all others and from who runs the server.
TEST_F(PrincipalsRpcTest, AnAdminOfSomeNamesHasNoPlaceOfTheServersAdministration) {
  options_.max_builds = 4;
  StartWith({"ops admin", "team admin names=team-*"});
  build_gate_.Close();
  std::vector<std::unique_ptr<BuildStream>> streams;
  const auto begins = [&](const std::string& name, const std::string& mapping) {
    streams.push_back(std::make_unique<BuildStream>(*mappings_, TokenOf(name)));
    streams.back()->Send(Spec(mapping, "f2(landmarks=5)", absl::StrCat(kId, streams.size() + 10)));
    return streams.back()->AwaitAccepted().has_value();
  };
  EXPECT_TRUE(begins("team", "team-a"));
  EXPECT_TRUE(begins("team", "team-b"));
  ASSERT_FALSE(begins("team", "team-c"));
  EXPECT_THAT(streams.back()->Finish(),
              IsError(Code::RESOURCE_EXHAUSTED, "BUILD_LIMIT_REACHED", _, HasSubstr("may have 2")));
  EXPECT_TRUE(begins("ops", "others"));
  EXPECT_TRUE(begins("ops", "others"));
  build_gate_.Open();
}

// The version that was to be deleted is what the name meant before, as in the entry of a deletion.
TEST_F(PrincipalsRpcTest, TheEntryOfARefusedDeletionDoesNotLookLikeANewVersion) {
  StartWith({"root admin", "ann admin names=ann-*"});
  ASSERT_THAT(BuildAs("root", "cards"), IsOk());
  EXPECT_THAT(AskAs("ann", &MappingStub::DeleteVersion, "reference: 'cards@1'"),
              IsError(Code::NOT_FOUND, "MAPPING_NOT_FOUND"));
  std::vector<v1::AuditEntry> audit;
  while (audit.size() < 2) audit = AuditAs("root");
  EXPECT_EQ(audit.front().method(), "phimap.v1.MappingService/DeleteVersion");
  EXPECT_EQ(audit.front().outcome(), "NOT_FOUND");
  EXPECT_EQ(audit.front().previous_version(), 1);
  EXPECT_EQ(audit.front().version(), 0);
}

// Sends a request that changes something by each method that can, and finds its entry.
TEST_F(PrincipalsRpcTest, EachMethodThatChangesHasItsEntry) {
  StartWith({"root admin"});
  const std::string service = "phimap.v1.MappingService/";
  std::set<std::string> made;
  const auto check = [&](const std::string& method, const grpc::Status& status) {
    SCOPED_TRACE(method);
    EXPECT_THAT(status, IsOk());
    const std::vector<v1::AuditEntry> entries = AuditAs("root");
    ASSERT_FALSE(entries.empty());
    const auto found =
        std::find_if(entries.begin(), entries.end(),
                     [&](const v1::AuditEntry& entry) { return entry.method() == method; });
    ASSERT_NE(found, entries.end());
    EXPECT_EQ(found->principal(), "root");
    EXPECT_EQ(found->mapping(), "cards");
    EXPECT_TRUE(absl::StartsWith(found->peer(), "ipv4:127.0.0.1:")) << found->peer();
    EXPECT_FALSE(found->request_id().empty());
    EXPECT_THAT(found->ShortDebugString(), Not(HasSubstr(TokenOf("root"))));
    made.insert(method);
  };
  check(service + "Build", BuildAs("root", "cards"));
  // Another artifact, so that the import of the first one adds a version.
  ASSERT_THAT(BuildAs("root", "cards", std::nullopt, "f2(landmarks=6)"), IsOk());
  std::string artifact;
  ASSERT_THAT(ExportAs("root", "cards@1", &artifact), IsOk());
  check(service + "SetAlias",
        AskAs("root", &MappingStub::SetAlias, "reference: 'cards@1' alias: 'prod'"));
  check(service + "DeleteAlias",
        AskAs("root", &MappingStub::DeleteAlias, "name: 'cards' alias: 'prod'"));
  check(service + "KeepVersion", AskAs("root", &MappingStub::KeepVersion, "reference: 'cards@1'"));
  check(service + "DeleteVersion",
        AskAs("root", &MappingStub::DeleteVersion, "reference: 'cards@1'"));
  v1::Version imported;
  check(service + "Import", ImportAs("root", "cards", artifact, &imported));
  build_gate_.Close();
  {
    BuildStream stream(*mappings_, TokenOf("root"));
    stream.Send(Spec("cards", "f2(landmarks=5)", absl::StrCat(kId, "01")));
    ASSERT_TRUE(stream.AwaitAccepted().has_value());
    check(service + "CancelBuild", AskAs("root", &MappingStub::CancelBuild,
                                         absl::StrCat("name: 'cards' build_id: '", kId, "01'")));
  }
  build_gate_.Open();
  {
    const auto stream = evaluations_->Train(By("root"));
    v1::TrainRequest request = Parsed<v1::TrainRequest>(
        absl::StrCat("spec { reference: 'cards' build_id: '", kId, "02' learner: 'ridge()' }"));
    stream->Write(request);
    v1::TrainingExamples& labeled = *request.mutable_examples();
    *labeled.mutable_examples() = UniformExamples(60, 3);
    for (int i = 0; i < 60; ++i) labeled.add_labels(i % 2 == 0 ? "a" : "b");
    stream->Write(request);
    request.mutable_finish()->set_row_count(60);
    stream->Write(request);
    stream->WritesDone();
    v1::TrainResponse response;
    while (stream->Read(&response)) {
    }
    check("phimap.v1.LearningService/Train", stream->Finish());
  }
  check(service + "DeleteMapping", AskAs("root", &MappingStub::DeleteMapping, "name: 'cards'"));
  // The digest of each version that went with it.
  const std::string detail = AuditAs("root").front().detail();
  EXPECT_THAT(detail, HasSubstr("with 3 versions: 2 sha256:"));
  EXPECT_THAT(detail, HasSubstr(absl::StrCat(", 3 sha256:", Sha256Hex(artifact), ", 4 sha256:")));
  for (const MethodFacts& facts : kMethodFacts) {
    if (facts.effect == Effect::kReads || facts.effect == Effect::kReadsBuilds) continue;
    EXPECT_TRUE(made.contains(std::string(facts.method))) << facts.method;
  }
}

TEST_F(PrincipalsRpcTest, RefusedChangesOfKnownCallersAreInTheAudit) {
  StartWith({"root admin", "ann builder names=ann-*", "amy admin names=amy-*"});
  ASSERT_THAT(BuildAs("root", "cards"), IsOk());
  EXPECT_FALSE(AskAs("ann", &MappingStub::DeleteMapping, "name: 'cards'").ok());
  EXPECT_FALSE(AskAs("amy", &MappingStub::SetAlias, "reference: 'cards@1' alias: 'prod'").ok());
  EXPECT_FALSE(BuildAs("ann", "cards").ok());
  EXPECT_FALSE(AskAs("stranger", &MappingStub::DeleteMapping, "name: 'cards'").ok());
  EXPECT_FALSE(TransformAs("ann", "cards").ok());
  std::vector<std::string> refused;
  // They are written a moment later.
  const absl::Time until = absl::Now() + absl::Seconds(30);
  while (refused.size() < 3 && absl::Now() < until) {
    refused.clear();
    for (const v1::AuditEntry& entry : AuditAs("root")) {
      if (entry.outcome() == "OK") continue;
      refused.push_back(absl::StrCat(entry.principal(), " ", entry.method(), " ", entry.mapping(),
                                     " ", entry.outcome(), " ", entry.reason()));
      if (entry.principal() == "amy") {
        EXPECT_EQ(entry.alias(), "prod");
        EXPECT_EQ(entry.version(), 1);
      }
      EXPECT_EQ(entry.build_id().empty(), !absl::EndsWith(entry.method(), "/Build"));
    }
  }
  EXPECT_THAT(refused,
              UnorderedElementsAre(
                  "ann phimap.v1.MappingService/DeleteMapping  PERMISSION_DENIED ROLE_TOO_LOW",
                  "ann phimap.v1.MappingService/Build cards PERMISSION_DENIED NAME_NOT_ALLOWED",
                  "amy phimap.v1.MappingService/SetAlias cards NOT_FOUND MAPPING_NOT_FOUND"));
}

}  // namespace
}  // namespace phimap::testing
