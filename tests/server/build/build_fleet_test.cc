// Builds on two servers that share one store. A server renews its claims on builds only when a test
// says so. A server whose lease has length zero stands for a server that was stopped.
#include "core/status/error.h"
#include "server/store/build_claims.h"
#include "server/store/files/file_blobs.h"
#include "server/store/sqlite/sqlite_database.h"
#include "server/store/store.h"
#include "tests/server/build/build_manager_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

const BuildId kId = {"letter", kUuid};

// One of the two servers.
class FleetServer {
 public:
  FleetServer(const std::string& folder, const std::string& server_id,
              std::shared_ptr<SqlDatabase> database, absl::Duration lease,
              absl::Duration renew_every) {
    auto blobs = std::make_shared<FileBlobs>(folder, PosixFileSystem());
    EXPECT_TRUE(blobs->CreateDirectories().ok());
    store_ = std::make_unique<Store>(database, blobs, std::make_shared<StoreClock>(),
                                     std::make_unique<BuildClaims>(database, server_id));
    registry_ = std::make_unique<VersionRegistry>(VersionRegistry::Options(), *store_,
                                                  metrics_.registry(), logger_);
    BuildManager::Options options{.quantum = WorkQuantum::Clock::duration::zero()};
    options.yield = [this] { gate_.Wait(); };
    options.lease = lease;
    options.renew_every = renew_every;
    builds_ = std::make_unique<BuildManager>(options, *store_, *registry_, store_pool_,
                                             metrics_.build(), logger_);
  }
  ~FleetServer() {
    builds_->Drain(BuildManager::Clock::now());
    gate_.Open();
    builds_.reset();
  }

  BuildManager& builds() { return *builds_; }
  Store& store() { return *store_; }
  Gate& gate() { return gate_; }
  std::string log() const { return log_.text(); }

 private:
  Gate gate_{/*open=*/true};
  Metrics metrics_;
  LogLines log_;
  Logger logger_{LogLevel::kInfo, [this](absl::string_view line) { log_.Write(line); }};
  std::unique_ptr<Store> store_;
  std::unique_ptr<VersionRegistry> registry_;
  TaskPool store_pool_{"store calls", 1, 64};
  std::unique_ptr<BuildManager> builds_;
};

class BuildFleetTest : public BuildManagerFixture {
 protected:
  std::unique_ptr<FleetServer> Server(const std::string& id, absl::Duration lease = absl::Hours(1),
                                      absl::Duration renew_every = absl::Hours(1)) {
    return std::make_unique<FleetServer>(shared_.path(), id, database_, lease, renew_every);
  }
  static absl::StatusOr<BuildManager::Attachment> BeginAt(FleetServer& server,
                                                          const BuildSpec& spec = Spec()) {
    return Await<absl::StatusOr<BuildManager::Attachment>>(
        [&](auto done) { server.builds().Begin(kId, spec, done); });
  }
  static void AddAndFinish(FleetServer& server, const std::shared_ptr<BuildJob>& job) {
    const Matrix<float> block = UniformFloatRows({.rows = 40, .cols = 3});
    EXPECT_TRUE(Await<absl::Status>([&](auto done) {
                  server.builds().Add(job, {.rows = WireRows(block)}, done);
                }).ok());
    EXPECT_TRUE(server.builds().Finish(job, 40).ok());
  }
  // Begins a build, and returns while it computes and waits at the server's gate. Other servers can
  // see the build in this state.
  static std::shared_ptr<BuildJob> ComputeAt(FleetServer& server) {
    const absl::StatusOr<BuildManager::Attachment> begun = BeginAt(server);
    EXPECT_TRUE(begun.ok() && !begun->attached) << begun.status();
    server.gate().Close();
    AddAndFinishBehindGate(server, begun->job);
    return begun->job;
  }
  static void AddAndFinishBehindGate(FleetServer& server, const std::shared_ptr<BuildJob>& job) {
    server.gate().Open();
    const Matrix<float> block = UniformFloatRows({.rows = 40, .cols = 3});
    EXPECT_TRUE(Await<absl::Status>([&](auto done) {
                  server.builds().Add(job, {.rows = WireRows(block)}, done);
                }).ok());
    server.gate().Close();
    EXPECT_TRUE(server.builds().Finish(job, 40).ok());
    server.gate().AwaitWaiting();
    server.builds().RenewClaims();
  }

  // As ComputeAt. The build is followed as long as the result lives.
  static std::shared_ptr<StateWatch> FollowAt(FleetServer& server) {
    const std::shared_ptr<BuildJob> job = ComputeAt(server);
    auto client = std::make_shared<StateWatch>(job);
    job->Subscribe(client);
    server.builds().RenewClaims();
    return client;
  }

  TemporaryFolder shared_;
  const std::shared_ptr<SqlDatabase> database_ =
      *SqliteDatabase::Open(shared_.path() + "/phimap.sqlite", absl::Seconds(60));
};

TEST_F(BuildFleetTest, WhileItReceivesElsewhereItIsRefused) {
  const auto a = Server("a");
  const auto b = Server("b");
  ASSERT_TRUE(BeginAt(*a).ok());
  const absl::Status refused = BeginAt(*b).status();
  EXPECT_THAT(refused, IsError(Code::kAborted, "STREAM_OPEN"));
  EXPECT_GT(DetailOf(refused)->retry_delay_ms, 0);
}

TEST_F(BuildFleetTest, WhatComputesElsewhereIsFollowedToItsVersion) {
  const auto a = Server("a");
  const auto b = Server("b");
  const std::shared_ptr<BuildJob> job = ComputeAt(*a);
  const BuildManager::Attachment begun = BeginAt(*b).value();
  EXPECT_TRUE(begun.attached);
  EXPECT_EQ(begun.job->Snapshot().state, BuildState::kComputing);
  EXPECT_EQ(begun.job->Snapshot().rows_received, 40);
  a->gate().Open();
  EXPECT_EQ(AwaitState(job, BuildState::kDone).version->record.number, 1);
  b->builds().RenewClaims();
  ASSERT_EQ(begun.job->Snapshot().state, BuildState::kDone) << begun.job->Snapshot().error;
  EXPECT_EQ(begun.job->Snapshot().version->record.number, 1);
  EXPECT_EQ(b->store().ListVersions("letter", std::nullopt, 10)->size(), 1u);
}

TEST_F(BuildFleetTest, AnotherSpecIsRefusedEverywhere) {
  const auto a = Server("a");
  const auto b = Server("b");
  ComputeAt(*a);
  EXPECT_EQ(ReasonOf(BeginAt(*b, Spec(6)).status()), "BUILD_SPEC_MISMATCH");
}

TEST_F(BuildFleetTest, AServerThatWasStoppedIsReplacedAndPublishesNothing) {
  const auto a = Server("a", absl::ZeroDuration());
  const auto b = Server("b");
  const std::shared_ptr<BuildJob> old = ComputeAt(*a);
  const BuildManager::Attachment begun = BeginAt(*b).value();
  EXPECT_FALSE(begun.attached);
  // Server `a` does not know yet that it was replaced, and continues its build.
  a->gate().Open();
  EXPECT_EQ(ReasonOf(AwaitState(old, BuildState::kDone).error), "BUILD_TAKEN_OVER");
  EXPECT_TRUE(absl::IsNotFound(a->store().GetMapping("letter").status()));
  AddAndFinish(*b, begun.job);
  EXPECT_EQ(AwaitState(begun.job, BuildState::kDone).version->record.number, 1);
}

TEST_F(BuildFleetTest, AServerThatWasReplacedEndsItsBuildWhenItLearnsOfIt) {
  const auto a = Server("a", absl::ZeroDuration());
  const auto b = Server("b");
  const std::shared_ptr<BuildJob> old = ComputeAt(*a);
  ASSERT_FALSE(BeginAt(*b)->attached);
  a->builds().RenewClaims();
  EXPECT_THAT(old->Snapshot().error, IsError(Code::kAborted, "BUILD_TAKEN_OVER"));
  // Server `a` now reports the state of the build that server `b` has begun.
  EXPECT_EQ(a->builds().Get(kId)->state, BuildState::kReceiving);
}

TEST_F(BuildFleetTest, ABuildThatBrokeFreesItsIdElsewhere) {
  const auto a = Server("a");
  const auto b = Server("b");
  const std::shared_ptr<BuildJob> broken = BeginAt(*a)->job;
  a->builds().Abandon(broken, absl::CancelledError("the client left"));
  a->builds().RenewClaims();
  // The claim may still be held at this point, because another thread of `a` releases it. Drain
  // waits for that thread.
  a->builds().Drain(BuildManager::Clock::now());
  EXPECT_FALSE(BeginAt(*b)->attached);
}

// A client asks again and again for the id of a build whose server has died.
TEST_F(BuildFleetTest, OnlyABuildThatBeginsCountsForTheRateOfItsCaller) {
  RateLimits limits;
  limits.of[static_cast<size_t>(Rated::kBuilds)] = 1;
  auto ann = std::make_shared<Principal>();
  ann->spent = std::make_shared<CallerRates>(limits);
  const auto begin = [&](FleetServer& server, const BuildId& id) {
    BuildOrder order(Spec());
    order.principal = ann;
    return Await<absl::StatusOr<BuildManager::Attachment>>(
        [&](auto done) { server.builds().Begin(id, order, done); });
  };
  const auto a = Server("a", absl::ZeroDuration());
  const auto b = Server("b");
  const auto c = Server("c");
  ASSERT_TRUE(BeginAt(*b).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(begin(*c, kId).status(), IsError(Code::kAborted, "STREAM_OPEN"));
  }
  BuildId second = kId;
  second.build_id.back() = '9';
  EXPECT_TRUE(begin(*c, second).ok());
  // The second that begins is one too many, and leaves its id to others.
  BuildId third = kId;
  third.build_id.back() = '8';
  EXPECT_THAT(begin(*a, third).status(), IsError(Code::kResourceExhausted, "CALLER_RATE_REACHED"));
  a->builds().RenewClaims();
  EXPECT_FALSE(b->builds().Get(third).ok());
}

TEST_F(BuildFleetTest, IsCancelledFromAnotherServer) {
  const auto a = Server("a", absl::Hours(1), absl::Milliseconds(20));
  const auto b = Server("b");
  const std::shared_ptr<BuildJob> job = ComputeAt(*a);
  const BuildSnapshot cancelled = b->builds().Cancel(kId).value();
  EXPECT_EQ(cancelled.state, BuildState::kCancelled);
  EXPECT_EQ(job->Snapshot().state, BuildState::kCancelled);
}

TEST_F(BuildFleetTest, ABuildOfADeadServerIsCancelledWithoutIt) {
  const auto a = Server("a", absl::ZeroDuration());
  const auto b = Server("b");
  ComputeAt(*a);
  EXPECT_EQ(b->builds().Cancel(kId)->state, BuildState::kCancelled);
  EXPECT_EQ(b->builds().Get(kId)->state, BuildState::kCancelled);
  EXPECT_THAT(b->log(), HasSubstr("INFO build_cancel_asked mapping=letter"));
  EXPECT_THAT(b->log(), HasSubstr("WARNING build_ended mapping=letter"));
}

TEST_F(BuildFleetTest, IsShownAndListedByEveryServer) {
  const auto a = Server("a");
  const auto b = Server("b");
  EXPECT_EQ(ReasonOf(b->builds().Get(kId).status()), "BUILD_NOT_FOUND");
  ComputeAt(*a);
  EXPECT_EQ(b->builds().Get(kId)->state, BuildState::kComputing);
  for (FleetServer* server : {a.get(), b.get()}) {
    EXPECT_EQ(server->builds().ListAll("")->size(), 1u);
    EXPECT_EQ(server->builds().ListAll("letter")->size(), 1u);
    EXPECT_EQ(server->builds().ListAll("other")->size(), 0u);
  }
}

TEST_F(BuildFleetTest, WhatADeadServerBuiltForNobodyIsRecorded) {
  const auto a = Server("a", absl::ZeroDuration());
  const auto b = Server("b", absl::ZeroDuration());
  ComputeAt(*a);
  b->builds().EndBuildsOfTheDead();
  const BuildSnapshot ended = *b->builds().Get(kId);
  EXPECT_THAT(ended.error, IsError(Code::kAborted, "BUILD_INTERRUPTED"));
  EXPECT_EQ(ended.rows_received, 40);
}

TEST_F(BuildFleetTest, WhatADeadServerBuiltForAClientIsLeftToBeStreamedAgain) {
  const auto a = Server("a", absl::ZeroDuration());
  const auto b = Server("b", absl::ZeroDuration());
  const auto client = FollowAt(*a);
  b->builds().EndBuildsOfTheDead();
  EXPECT_TRUE(b->builds().Get(kId)->error.ok());
  EXPECT_FALSE(BeginAt(*b)->attached);
}

// Its client died with it.
TEST_F(BuildFleetTest, WhatNobodyStreamsAgainForTenMinutesIsRecorded) {
  const auto a = Server("a", absl::ZeroDuration());
  const auto b = Server("b", absl::ZeroDuration());
  const auto client = FollowAt(*a);
  const auto ended_ago = [&](absl::Duration time) {
    ASSERT_TRUE(database_
                    ->Write(
                        [&](SqlSession& session) {
                          return session
                              .Run("UPDATE claims SET lease_end_us = lease_end_us - $1",
                                   {absl::ToInt64Microseconds(time)})
                              .status();
                        },
                        [](SqlSession&) { return false; }, "")
                    .ok());
    b->builds().EndBuildsOfTheDead();
  };
  ended_ago(absl::Minutes(9));
  EXPECT_TRUE(b->builds().Get(kId)->error.ok());
  EXPECT_THAT(b->log(), Not(HasSubstr("build_ended")));
  ended_ago(absl::Minutes(2));
  EXPECT_THAT(b->builds().Get(kId)->error,
              IsError(Code::kAborted, "BUILD_INTERRUPTED", "", HasSubstr("within 10m")));
  EXPECT_THAT(b->log(), HasSubstr("BUILD_INTERRUPTED"));
}

TEST_F(BuildFleetTest, AVersionThatAnotherServerDeletedIsNoBuildAnyMore) {
  const auto a = Server("a");
  const auto b = Server("b");
  const std::shared_ptr<BuildJob> job = BeginAt(*a)->job;
  AddAndFinish(*a, job);
  ASSERT_EQ(AwaitState(job, BuildState::kDone).version->record.number, 1);
  EXPECT_EQ(a->builds().Get(kId)->state, BuildState::kDone);
  ASSERT_TRUE(b->store().DeleteVersion("letter", 1).ok());
  EXPECT_EQ(ReasonOf(a->builds().Get(kId).status()), "BUILD_NOT_FOUND");
  EXPECT_FALSE(BeginAt(*a)->attached);
}

}  // namespace
}  // namespace phimap::testing
