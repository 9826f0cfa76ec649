// Tests calls that begin only after the server has reached the revision that they state.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/status/error.h"
#include "core/thread/mutex.h"
#include "server/rpc/revisions.h"
#include "tests/server/rpc/call_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kReflect[] = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

// Knows revision "1". Callers of Find wait until the test calls Answer.
class ToldRevisions final : public Revisions {
 public:
  std::string Known() const override { return "1"; }
  std::string KnownWithOwnChanges() const override { return "1"; }
  absl::StatusOr<bool> Knows(absl::string_view revision) const override {
    if (revision == "bad") {
      return MakeError(StatusCode::kInvalidArgument, "REVISION_INVALID", "", "bad");
    }
    return revision == "1";
  }
  void Find(absl::string_view, std::function<void(absl::Status)> done) override {
    MutexLock lock(&mutex_);
    askers_.push_back(std::move(done));
  }

  int askers() {
    MutexLock lock(&mutex_);
    return static_cast<int>(askers_.size());
  }
  void Answer(const absl::Status& status) {
    std::vector<std::function<void(absl::Status)>> askers;
    {
      MutexLock lock(&mutex_);
      askers.swap(askers_);
    }
    for (const auto& done : askers) done(status);
  }

 private:
  Mutex mutex_;
  std::vector<std::function<void(absl::Status)>> askers_ ABSL_GUARDED_BY(mutex_);
};

class RevisionTest : public CallTest {
 protected:
  RevisionTest() { dispatcher_.SetRevisions(revisions_); }

  static RawHttp2Client::Headers Wants(const std::string& revision) {
    return {{"phimap-min-revision", revision}};
  }

  ToldRevisions revisions_;
};

TEST_F(RevisionTest, ACallBeginsAtOnceWhenItsRevisionIsKnownOrItNamesNone) {
  RawHttp2Client::Answer& plain = Answer(kCheck, Named("a"));
  EXPECT_EQ(CodeOf(plain), 0);
  EXPECT_EQ(plain.headers.count("phimap-revision"), 0);
  // The answer states the revision that the server knows, which may be later than the one that the
  // call requires.
  RawHttp2Client::Answer& told = Answer(kCheck, Named("a"), Wants("1"));
  EXPECT_EQ(CodeOf(told), 0);
  EXPECT_EQ(told.headers["phimap-revision"], "1");
  EXPECT_EQ(revisions_.askers(), 0);
}

TEST_F(RevisionTest, ACallThatMustWaitBeginsWhenItsRevisionIsFound) {
  const int32_t stream = client_->Call(kCheck, Wants("2"));
  client_->Send(stream, Named("a"), /*end=*/true);
  ASSERT_TRUE(RunUntil([&] { return revisions_.askers() == 1; }));
  EXPECT_EQ(log_.messages, 0);
  revisions_.Answer(absl::OkStatus());
  ASSERT_TRUE(client_->AwaitEnd(stream));
  EXPECT_EQ(CodeOf(client_->answer(stream)), 0);
  EXPECT_EQ(log_.messages, 1);
}

TEST_F(RevisionTest, WhatAStreamSendsMeanwhileIsKept) {
  const int32_t stream = client_->Call(kReflect, Wants("2"));
  client_->Send(stream, ToHost("one"), /*end=*/false);
  ASSERT_TRUE(RunUntil([&] { return revisions_.askers() == 1; }));
  client_->Send(stream, ToHost("two"), /*end=*/true);
  EXPECT_EQ(log_.messages, 0);
  revisions_.Answer(absl::OkStatus());
  ASSERT_TRUE(client_->AwaitEnd(stream));
  EXPECT_EQ(CodeOf(client_->answer(stream)), 0);
  EXPECT_EQ(log_.messages, 2);
}

TEST_F(RevisionTest, WhatIsNotFoundIsTheCallsError) {
  const int32_t stream = client_->Call(kReflect, Wants("2"));
  client_->Send(stream, ToHost("one"), /*end=*/true);
  ASSERT_TRUE(RunUntil([&] { return revisions_.askers() == 1; }));
  revisions_.Answer(MakeError(StatusCode::kUnavailable, "REVISION_NOT_REACHED", "", "later"));
  ASSERT_TRUE(client_->AwaitEnd(stream));
  EXPECT_EQ(CodeOf(client_->answer(stream)), kUnavailable);
  EXPECT_EQ(ReasonOf(client_->answer(stream)), "REVISION_NOT_REACHED");
  EXPECT_EQ(log_.messages, 0);
}

TEST_F(RevisionTest, NobodyWaitsForLongerThanASecond) {
  const int32_t stream = client_->Call(kCheck, Wants("2"));
  client_->Send(stream, Named("a"), /*end=*/true);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(client_->AwaitEnd(stream));
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(CodeOf(client_->answer(stream)), kUnavailable);
  EXPECT_EQ(ReasonOf(client_->answer(stream)), "REVISION_NOT_REACHED");
  EXPECT_GE(waited.count(), 0.9);
  revisions_.Answer(absl::OkStatus());  // an answer that is too late has no effect
  EXPECT_EQ(log_.messages, 0);
}

TEST_F(RevisionTest, WhatIsNoRevisionIsRefused) {
  RawHttp2Client::Answer& answer = Answer(kCheck, Named("a"), Wants("bad"));
  EXPECT_EQ(CodeOf(answer), kInvalidArgument);
  EXPECT_EQ(ReasonOf(answer), "REVISION_INVALID");
}

TEST_F(RevisionTest, AClientMayGoWhileItWaits) {
  const int32_t stream = client_->Call(kCheck, Wants("2"));
  client_->Send(stream, Named("a"), /*end=*/false);
  ASSERT_TRUE(RunUntil([&] { return revisions_.askers() == 1; }));
  client_.reset();
  server_.reset();  // the fixture's destructor checks that the call has ended
  revisions_.Answer(absl::OkStatus());
}

}  // namespace
}  // namespace phimap::testing
