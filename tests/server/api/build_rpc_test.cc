#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "tests/server/api/server_fixture.h"

namespace phimap::testing {
namespace {

class BuildRpcTest : public ServerFixture {
 protected:
  BuildRpcTest() { Start(); }

  v1::BuildJob GetBuild(const v1::BuildSpec& spec) {
    v1::BuildJob job;
    get_status_ = Ask(&MappingStub::GetBuild, NameOf(spec), &job);
    return job;
  }
  v1::BuildJob CancelBuild(const v1::BuildSpec& spec) {
    return Answer(&MappingStub::CancelBuild, NameOf(spec));
  }
  static std::string NameOf(const v1::BuildSpec& spec) {
    return "name: '" + spec.name() + "' build_id: '" + spec.build_id() + "'";
  }

  // Begins a build that the gate stops in the middle of its computation.
  std::unique_ptr<BuildStream> BeginComputing() {
    auto stream = std::make_unique<BuildStream>(*mappings_);
    stream->Send(Spec());
    EXPECT_TRUE(stream->AwaitAccepted().has_value());
    build_gate_.Close();
    stream->Send(UniformExamples(40, 3));
    stream->SendFinish(40);
    build_gate_.AwaitWaiting();  // waits at the block
    build_gate_.Pass();
    build_gate_.AwaitWaiting();  // waits at the first tile
    return stream;
  }

  grpc::Status get_status_;
};

TEST_F(BuildRpcTest, AnswersWithAcceptedProgressAndTheCertifiedVersion) {
  BuildStream stream(*mappings_);
  stream.Send(Spec());
  const auto accepted = stream.AwaitAccepted();
  ASSERT_TRUE(accepted.has_value());
  EXPECT_FALSE(accepted->attached());
  EXPECT_EQ(accepted->build_id(), Spec().build_id());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream.Send(UniformExamples(100, 3, i)));
  stream.SendFinish(300);
  stream.HalfClose();
  ASSERT_THAT(stream.Finish(), IsOk());
  ASSERT_TRUE(stream.version().has_value());
  const v1::Version& version = *stream.version();
  EXPECT_EQ(version.ref().name(), "letter");
  EXPECT_EQ(version.ref().number(), 1);
  EXPECT_EQ(version.ref().digest().size(), 64);
  EXPECT_EQ(version.input_columns(), 3);
  EXPECT_EQ(version.certificate().stream_rows(), 300);
  EXPECT_TRUE(version.certificate().has_rank());
  EXPECT_EQ(GetBuild(Spec()).state(), v1::BuildJob::STATE_DONE);
  EXPECT_EQ(GetBuild(Spec()).version().digest(), version.ref().digest());
}

TEST_F(BuildRpcTest, AClientThatVanishesBeforeFinishLeavesNoTrace) {
  {
    BuildStream stream(*mappings_);
    stream.Send(Spec());
    ASSERT_TRUE(stream.AwaitAccepted().has_value());
    stream.Send(UniformExamples(100, 3));
    stream.Vanish();
    EXPECT_EQ(stream.Finish().error_code(), Code::CANCELLED);
  }
  // It takes a moment until the server learns about the cancellation. Until then, the id is in use.
  do {
    GetBuild(Spec());
  } while (get_status_.ok());
  EXPECT_EQ(get_status_.error_code(), Code::NOT_FOUND);
  ExpectNothingStored();
  EXPECT_TRUE(Build(Spec()).ok());
}

TEST_F(BuildRpcTest, ABuildOutlivesItsClientAfterFinish) {
  std::unique_ptr<BuildStream> stream = BeginComputing();
  stream->Vanish();
  EXPECT_EQ(stream->Finish().error_code(), Code::CANCELLED);
  build_gate_.Open();
  BuildStream again(*mappings_);
  again.Send(Spec());
  ASSERT_TRUE(again.Finish().ok());
  EXPECT_EQ(again.version()->ref().number(), 1);
}

TEST_F(BuildRpcTest, ASecondStreamAttachesAndItsRowsAreIgnored) {
  std::unique_ptr<BuildStream> first = BeginComputing();
  BuildStream second(*mappings_);
  second.Send(Spec());
  const auto accepted = second.AwaitAccepted();
  ASSERT_TRUE(accepted.has_value());
  EXPECT_TRUE(accepted->attached());
  for (int i = 0; i < 20; ++i) second.Send(UniformExamples(1000, 3));
  second.SendFinish(12345);
  second.HalfClose();
  build_gate_.Open();
  ASSERT_TRUE(first->Finish().ok());
  ASSERT_TRUE(second.Finish().ok());
  EXPECT_EQ(first->version()->ref().digest(), second.version()->ref().digest());
  Restart();  // after this, only the store knows the build
  BuildStream third(*mappings_);
  third.Send(Spec());
  ASSERT_TRUE(third.Finish().ok());
  EXPECT_EQ(third.version()->ref().digest(), first->version()->ref().digest());
  EXPECT_EQ(third.version()->certificate().stream_rows(), 40);
}

TEST_F(BuildRpcTest, AnOpenStreamIsAbortedAndAnotherSpecExists) {
  BuildStream open(*mappings_);
  open.Send(Spec());
  ASSERT_TRUE(open.AwaitAccepted().has_value());
  const grpc::Status aborted = Build(Spec());
  EXPECT_EQ(aborted.error_code(), Code::ABORTED);
  EXPECT_TRUE(FactsOf(aborted).retry_ms.has_value());
  EXPECT_EQ(Build(Spec("letter", "f2(landmarks=6)")).error_code(), Code::ALREADY_EXISTS);
  // The same id with another mapping means another build.
  EXPECT_TRUE(Build(Spec("digit")).ok());
}

TEST_F(BuildRpcTest, CancelBuildWhileReceivingEndsTheStream) {
  BuildStream stream(*mappings_);
  stream.Send(Spec());
  ASSERT_TRUE(stream.AwaitAccepted().has_value());
  EXPECT_EQ(CancelBuild(Spec()).state(), v1::BuildJob::STATE_CANCELLED);
  EXPECT_EQ(stream.Finish().error_code(), Code::CANCELLED);
  EXPECT_EQ(CancelBuild(Spec()).state(), v1::BuildJob::STATE_CANCELLED);
  ExpectNothingStored();
}

TEST_F(BuildRpcTest, CancelBuildWhileComputingPublishesNothing) {
  std::unique_ptr<BuildStream> stream = BeginComputing();
  EXPECT_EQ(GetBuild(Spec()).state(), v1::BuildJob::STATE_COMPUTING);
  EXPECT_EQ(CancelBuild(Spec()).state(), v1::BuildJob::STATE_CANCELLED);
  EXPECT_EQ(stream->Finish().error_code(), Code::CANCELLED);
  build_gate_.Open();
  Restart();
  ExpectNothingStored();
  EXPECT_EQ(GetBuild(Spec()).state(), v1::BuildJob::STATE_CANCELLED);
}

TEST_F(BuildRpcTest, ASilentClientIsEndedAfterTheIdleTimeout) {
  Stop();
  std::atomic<int64_t> minutes{0};
  hooks_.build_clock = [&] {
    return std::chrono::steady_clock::time_point(std::chrono::minutes(minutes.load()));
  };
  Start();
  BuildStream silent(*mappings_);
  silent.Send(Spec());
  ASSERT_TRUE(silent.AwaitAccepted().has_value());
  minutes = 5;
  server_->EndIdleBuilds();
  EXPECT_EQ(silent.Finish().error_code(), Code::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Build(Spec()).ok());
  Stop();  // the server uses `minutes` until it stops
}

TEST_F(BuildRpcTest, AClientThatSendsNothingAtAllIsEndedAndOneThatFollowsABuildIsNot) {
  Stop();
  options_.build_idle_seconds = 1;
  Start();
  std::unique_ptr<BuildStream> first = BeginComputing();
  BuildStream follows(*mappings_);
  follows.Send(Spec());
  ASSERT_TRUE(follows.AwaitAccepted().has_value());
  // From here on, both clients are silent. The client that follows a build has been silent for
  // longer, but is not ended.
  BuildStream silent(*mappings_);
  EXPECT_THAT(silent.Finish(), IsError(Code::DEADLINE_EXCEEDED, "STREAM_IDLE"));
  build_gate_.Open();
  EXPECT_TRUE(follows.Finish().ok());
  EXPECT_TRUE(first->Finish().ok());
}

TEST_F(BuildRpcTest, AClientThatHearsOfAnErrorMayUseItsIdAtOnce) {
  v1::Examples bad = UniformExamples(1, 3);
  bad.mutable_dense()->mutable_numbers()->add_values(std::numeric_limits<double>::quiet_NaN());
  bad.mutable_dense()->set_columns(1);
  for (int i = 0; i < 100; ++i) {
    // The specs alternate, so that each build reuses an id that was last used with another spec.
    BuildStream stream(*mappings_);
    stream.Send(Spec("letter", i % 2 == 0 ? "f2(landmarks=5)" : "f2(landmarks=6)"));
    // A build thread finds the error in `bad`, and a gRPC thread the error in an empty message.
    stream.Send(i % 4 < 2 ? bad : v1::Examples());
    ASSERT_EQ(stream.Finish().error_code(), Code::INVALID_ARGUMENT) << i;
  }
  EXPECT_TRUE(Build(Spec()).ok());
}

TEST_F(BuildRpcTest, TheSameStreamSpecAndSeedGiveTheSameArtifact) {
  EXPECT_EQ(MustBuild("a").ref().digest(), MustBuild("b").ref().digest());
}

}  // namespace
}  // namespace phimap::testing
