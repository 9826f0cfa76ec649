// Tests that a server that starts answers calls at once, but is not ready until it has loaded the
// versions that aliases point to.
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/server/api/raw_call.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr int kServing = 1;
constexpr int kNotServing = 2;

class WarmStartTest : public ServerFixture {
 protected:
  WarmStartTest() {
    options_.http = "127.0.0.1:0";
    hooks_.before_load = [this] { load_gate_.Wait(); };
  }
  ~WarmStartTest() override { load_gate_.Open(); }

  // Sets the alias `prod` of `mapping` to `version`, and returns the digest of that version.
  std::string SetAlias(const std::string& mapping, int64_t version) {
    return Answer(&MappingStub::SetAlias,
                  absl::StrFormat("reference: '%s@%d' alias: 'prod'", mapping, version))
        .digest();
  }
  // Starts a server whose store has two versions of "letter". The alias letter@prod points to
  // version 1.
  void StartWithAlias() {
    Start();
    MustBuild();
    MustBuild();
    SetAlias("letter", 1);
    Restart();
  }
  grpc::Status TransformBy(const std::string& reference) {
    return Transform(TransformOf(reference, UniformExamples(2, 3)));
  }
  void AwaitServing() {
    while (HealthOf(channel_, "") != kServing) std::this_thread::yield();
  }
  void ExpectHealth(int health) {
    for (const char* service : {"", "phimap.v1.MappingService", "phimap.v1.TransformService",
                                "phimap.v1.LearningService", "inference.GRPCInferenceService"}) {
      EXPECT_EQ(HealthOf(channel_, service), health) << service;
    }
    EXPECT_THAT(HttpGet("/readyz"),
                StartsWith(health == kServing ? "HTTP/1.1 200" : "HTTP/1.1 503"));
    EXPECT_THAT(HttpGet("/livez"), StartsWith("HTTP/1.1 200"));
  }

  // The loader waits at this gate before it reads an artifact.
  Gate load_gate_{/*open=*/true};
};

TEST_F(WarmStartTest, ReadinessWaitsForTheVersionsThatAliasesNameAndCallsDoNot) {
  Start();
  MustBuild();
  MustBuild("digit");
  SetAlias("letter", 1);
  Stop();
  load_gate_.Close();
  Start();
  load_gate_.AwaitWaiting();
  ExpectHealth(kNotServing);
  EXPECT_THAT(HttpGet("/readyz"),
              HasSubstr("1 version that aliases point to has not been loaded yet"));
  EXPECT_THAT(Scrape(), HasSubstr("phimap_alias_versions{state=\"loading\"} 1"));
  // The server accepts a call, and answers it once its version is loaded.
  grpc::Status answer(grpc::StatusCode::UNKNOWN, "");
  std::thread caller([&] { answer = TransformBy("letter@prod"); });
  v1::ListMappingsResponse mappings = Answer(&MappingStub::ListMappings);
  EXPECT_EQ(mappings.mappings_size(), 2);
  load_gate_.Open();
  caller.join();
  EXPECT_TRUE(answer.ok()) << answer.error_message();
  AwaitServing();
  ExpectHealth(kServing);
  const std::string metrics = Scrape();
  EXPECT_THAT(metrics, HasSubstr("phimap_alias_versions{state=\"warm\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("phimap_alias_versions{state=\"loading\"} 0"));
  EXPECT_THAT(metrics, HasSubstr("phimap_version_loads_total 1"));
}

TEST_F(WarmStartTest, NoLaterMoveOfAnAliasTakesReadinessAway) {
  StartWithAlias();
  AwaitServing();
  load_gate_.Close();
  grpc::Status moved;
  std::thread mover(
      [&] { moved = Ask(&MappingStub::SetAlias, "reference: 'letter@2' alias: 'prod'"); });
  load_gate_.AwaitWaiting();
  ExpectHealth(kServing);
  EXPECT_TRUE(TransformBy("letter@prod").ok());  // version 1 answers
  load_gate_.Open();
  mover.join();
  EXPECT_TRUE(moved.ok()) << moved.error_message();
  ExpectHealth(kServing);
}

TEST_F(WarmStartTest, AVersionThatCannotBeLoadedIsPassedOver) {
  Start();
  MustBuild();
  MustBuild("digit", "f2(landmarks=7)");
  const std::string damaged = SetAlias("letter", 1);
  SetAlias("digit", 1);
  Stop();
  int changed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    if (entry.path().string().find(damaged.substr(2)) == std::string::npos) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200);
    file.put('\x55').put('\xaa');
    ++changed;
  }
  ASSERT_EQ(changed, 1);
  Start();
  AwaitServing();
  ExpectHealth(kServing);
  const std::string metrics = Scrape();
  EXPECT_THAT(metrics, HasSubstr("phimap_alias_versions{state=\"warm\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("phimap_alias_versions{state=\"failed\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("phimap_version_load_errors_total 1"));
  EXPECT_THAT(LoggedErrors(), HasSubstr("version_load_failed mapping=letter version=1"));
  EXPECT_TRUE(TransformBy("digit@prod").ok());
  EXPECT_EQ(TransformBy("letter@prod").error_code(), grpc::StatusCode::DATA_LOSS);
}

TEST_F(WarmStartTest, WithoutAliasesItIsReadyAtOnceAndLoadsNothing) {
  Start();
  MustBuild();
  Stop();
  load_gate_.Close();
  Start();
  ExpectHealth(kServing);
  EXPECT_THAT(Scrape(), HasSubstr("phimap_live_versions 0"));
}

TEST_F(WarmStartTest, WithZeroSecondsItIsReadyAtOnceAndLoadsAllTheSame) {
  options_.warm_seconds = 0;
  StartWithAlias();
  Stop();
  load_gate_.Close();
  Start();
  ExpectHealth(kServing);
  load_gate_.AwaitWaiting();
  load_gate_.Open();
  while (Scrape().find("phimap_alias_versions{state=\"warm\"} 1") == std::string::npos) {
    std::this_thread::yield();
  }
}

TEST_F(WarmStartTest, ItIsReadyWhenTheTimeIsOver) {
  options_.warm_seconds = 1;
  StartWithAlias();
  Stop();
  load_gate_.Close();
  Start();
  AwaitServing();
  ExpectHealth(kServing);
  EXPECT_THAT(Scrape(), HasSubstr("phimap_alias_versions{state=\"loading\"} 1"));
  load_gate_.Open();
}

TEST_F(WarmStartTest, ItShutsDownWhileItLoads) {
  options_.lame_duck_seconds = 0;
  StartWithAlias();
  SetAlias("letter", 2);
  Stop();
  load_gate_.Close();
  Start();
  load_gate_.AwaitWaiting();
  ExpectHealth(kNotServing);
  server_->Shutdown(absl::Seconds(20));
  EXPECT_THAT(HttpGet("/readyz"), Not(HasSubstr("have not been loaded yet")));
  load_gate_.Open();
  Stop();
}

}  // namespace
}  // namespace phimap::testing
