// Tests a Build call whose client goes away while a store thread opens the build. Either event may
// come first. Over a real connection, the time between the two events is too short for a test.
#include "server/mapping/build_call.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/support/gate.h"
#include "tests/server/support/temporary_folder.h"

namespace phimap::testing {
namespace {

// Stands for the connection to a client. The test decides what the client sends; the client reads
// nothing.
class TestStream final : public Stream {
 public:
  // Tasks that were posted to the loop hold the call, and the call holds the loop. Running the
  // stopped loop drops the tasks, which breaks this cycle.
  ~TestStream() override {
    loop_->Stop();
    loop_->Run();
  }

  EventLoop& loop() override { return *loop_; }
  const Peer& peer() const override { return peer_; }
  void SetHandler(std::shared_ptr<StreamHandler>) override {}
  void SendHeaders(absl::Span<const Header>, bool) override {}
  void Send(std::shared_ptr<const OutputBytes>) override {}
  void SendTrailers(absl::Span<const Header>) override {}
  void Reset(ResetCode) override {}
  void EndConnection() override {}
  absl::Time unread_since() const override { return absl::InfiniteFuture(); }
  size_t unsent_bytes() const override { return 0; }
  void Consume(size_t) override {}
  void NoteAdmitted() override {}
  void SetWindow(size_t) override {}

 private:
  // The loop does not run during a test, so posted tasks stay undone, as on a busy loop.
  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>();
  const Peer peer_{.address = "unix:"};
};

std::string SpecMessage() {
  v1::BuildRequest request;
  request.mutable_spec()->set_name("letter");
  request.mutable_spec()->set_build_id("00000000-0000-4000-8000-000000000001");
  request.mutable_spec()->set_spec("f2(landmarks=5)");
  request.mutable_spec()->set_kernel("rbf(gamma=0.5)");
  const std::string message = request.SerializeAsString();
  return std::string{'\0', '\0', '\0', '\0', static_cast<char>(message.size())} + message;
}

class BuildCallTest : public ::testing::Test {
 protected:
  BuildCallTest() {
    call_ = std::make_shared<BuildCall>(
        CallStart{stream_, method_, environment_, absl::InfiniteFuture()}, builds_);
    // The only store thread waits here before it opens the build.
    EXPECT_TRUE(store_pool_.Submit([this] { gate_.Wait(); }).ok());
    call_->Begin();
    call_->OnData(SpecMessage());
  }
  ~BuildCallTest() override { builds_.Drain(BuildManager::Clock::now()); }

  void AwaitStoreThread() {
    Gate done;
    EXPECT_TRUE(store_pool_.Submit([&] { done.Open(); }).ok());
    done.Wait();
  }

  const TemporaryFolder folder_;
  const std::unique_ptr<Store> store_ =
      *SqliteStore::Open({.data_dir = folder_.path()}, PosixFileSystem());
  Metrics metrics_;
  const Logger logger_{LogLevel::kOff};
  const AccessControl access_{/*tokens=*/nullptr, /*certificate_role=*/std::nullopt};
  RequestMemory memory_{int64_t{1} << 20, /*gauge=*/nullptr};
  CallerShares callers_{/*max_calls=*/4};
  TaskPool parsing_{"messages to parse", 1, 4};
  const CallEnvironment environment_{access_,  memory_,          callers_,
                                     parsing_, int64_t{1} << 20, logger_};
  const Method method_{metrics_.AddMethod("service", "Build", "bidi_stream"), Role::kBuilder, {}};
  VersionRegistry registry_{{}, *store_, metrics_.registry(), logger_};
  Gate gate_;
  TaskPool store_pool_{"store calls", 1, 4};
  BuildManager builds_{{}, *store_, registry_, store_pool_, metrics_.build(), logger_};
  TestStream stream_;
  std::shared_ptr<BuildCall> call_;
};

TEST_F(BuildCallTest, ABuildThatIsOpenedAfterItsClientIsGoneIsAbandoned) {
  call_->OnClosed(ResetCode::kCancel);
  gate_.Open();
  AwaitStoreThread();
  EXPECT_THAT(builds_.List(""), ::testing::IsEmpty());
}

TEST_F(BuildCallTest, ABuildWhoseClientGoesBeforeTheLoopHearsOfItIsAbandoned) {
  gate_.Open();
  AwaitStoreThread();
  EXPECT_EQ(builds_.List("").size(), 1);
  call_->OnClosed(ResetCode::kCancel);
  EXPECT_THAT(builds_.List(""), ::testing::IsEmpty());
}

// A task on another thread may hold the call longest, and destroy it. If the call's timer were
// still set then, that thread would remove it from the timer wheel of a running loop.
TEST_F(BuildCallTest, ACallThatHasEndedLeavesNoTimer) {
  EXPECT_LT(stream_.loop().timers().Next(), absl::InfiniteFuture());
  call_->OnClosed(ResetCode::kCancel);
  EXPECT_EQ(stream_.loop().timers().Next(), absl::InfiniteFuture());
  gate_.Open();
}

}  // namespace
}  // namespace phimap::testing
