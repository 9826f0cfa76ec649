#include "server/registry/revision_finder.h"

#include <future>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "tests/server/registry/registry_fixture.h"
#include "tests/support/matchers.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

class RevisionFinderTest : public RegistryFixture {
 protected:
  RevisionFinderTest() {
    store_.Put("a", 1, SmallArtifact());
    Start();
    finder_ = std::make_unique<RevisionFinder>(*registry_, store_, pool_);
  }
  ~RevisionFinderTest() override { finder_.reset(); }

  absl::Status Find(const std::string& revision) {
    std::promise<absl::Status> found;
    finder_->Find(revision, [&](const absl::Status& status) { found.set_value(status); });
    return found.get_future().get();
  }
  // The revision of the store. The registry may still be at an earlier one.
  std::string Stored() { return RevisionText(store_.ChangesSince(Revision())->revision); }

  TaskPool pool_{"store calls", 2, 100};
  std::unique_ptr<RevisionFinder> finder_;
};

TEST_F(RevisionFinderTest, WhatIsWrittenIsReadBack) {
  const auto revision = ParseRevision("0af3-00000002:17").value();
  EXPECT_EQ(revision.id, "0af3-00000002");
  EXPECT_EQ(revision.number, 17);
  EXPECT_EQ(RevisionText(revision), "0af3-00000002:17");
  for (const char* text :
       {"", ":", ":1", "a:", "a", "a:-1", "a:1x", "a b:1", "a\n:1", "a:99999999999999999999"}) {
    EXPECT_EQ(ReasonOf(ParseRevision(text).status()), "REVISION_INVALID") << text;
  }
  EXPECT_FALSE(ParseRevision(std::string(1000, 'a') + ":1").ok());
}

TEST_F(RevisionFinderTest, AskingMakesItKnown) {
  EXPECT_EQ(finder_->Known(), Stored());
  EXPECT_TRUE(*finder_->Knows(Stored()));
  store_.Put("a", 2, SmallArtifact());
  EXPECT_FALSE(*finder_->Knows(Stored()));
  EXPECT_TRUE(Find(Stored()).ok());
  EXPECT_TRUE(*finder_->Knows(Stored()));
  EXPECT_EQ(finder_->Known(), Stored());
}

// A revision is told only after its commit. So a store that does not have it has lost it.
TEST_F(RevisionFinderTest, WhatTheStoreDoesNotHaveIsOfAnotherHistory) {
  const Revision now = store_.ChangesSince(Revision())->revision;
  const std::string old = Stored();
  const absl::Status later = Find(RevisionText({now.id, now.number + 1}));
  EXPECT_TRUE(absl::IsFailedPrecondition(later)) << later;
  EXPECT_EQ(ReasonOf(later), "REVISION_HISTORY_MISMATCH");
  EXPECT_EQ(ReasonOf(Find(absl::StrCat("other:", now.number))), "REVISION_HISTORY_MISMATCH");
  store_.ChangeHistory("other");
  // The registry has not learned about the new history yet, so it still knows the old revision.
  EXPECT_TRUE(*finder_->Knows(old));
  EXPECT_TRUE(Find(Stored()).ok());
  const absl::Status over = Find(old);
  EXPECT_TRUE(absl::IsFailedPrecondition(over)) << over;
  EXPECT_EQ(ReasonOf(over), "REVISION_HISTORY_MISMATCH");
  EXPECT_EQ(DetailOf(over)->metadata["expected"], Stored());
  EXPECT_EQ(DetailOf(over)->metadata["actual"], old);
}

// The history went on without changes that a client saw, and has passed their numbers since.
TEST_F(RevisionFinderTest, ARevisionThatWasReplacedIsToldFromOneThatWasPassed) {
  const std::string passed = Stored();
  for (int64_t i = 2; i < 5; ++i) store_.Put("a", i, SmallArtifact());
  EXPECT_TRUE(Find(Stored()).ok());
  EXPECT_TRUE(*finder_->Knows(passed));
  const int64_t number = ParseRevision(Stored())->number;
  EXPECT_EQ(ReasonOf(Find(absl::StrCat("other:", number - 1))), "REVISION_HISTORY_MISMATCH");
}

// The registry remembers some thousand revisions; the store is asked about older ones.
TEST_F(RevisionFinderTest, AboutARevisionThatTheRegistryHasForgottenTheStoreIsAsked) {
  constexpr int kMoreThanAreRemembered = 5000;
  const std::string oldest = Stored();
  for (int i = 0; i < kMoreThanAreRemembered; ++i) store_.PutAlias("a", "prod", 1);
  EXPECT_TRUE(Find(Stored()).ok());
  EXPECT_FALSE(*finder_->Knows(oldest));
  EXPECT_TRUE(Find(oldest).ok());
  const int64_t number = ParseRevision(oldest)->number;
  EXPECT_EQ(ReasonOf(Find(absl::StrCat("other:", number))), "REVISION_HISTORY_MISMATCH");
  store_.FailChanges(true);
  EXPECT_TRUE(absl::IsUnavailable(Find(oldest)));
}

TEST_F(RevisionFinderTest, WhenTheStoreIsAwayThatIsTheAnswerAndNoRevisionIsTold) {
  store_.Put("a", 2, SmallArtifact());
  const std::string wanted = Stored();
  store_.FailChanges(true);
  EXPECT_TRUE(absl::IsUnavailable(Find(wanted)));
  // The change that cannot be read now may have been made by this server, so no revision is certain
  // to include all of its own changes.
  EXPECT_EQ(finder_->KnownWithOwnChanges(), "");
  EXPECT_NE(finder_->Known(), "");
  store_.FailChanges(false);
  EXPECT_TRUE(Find(wanted).ok());
  EXPECT_EQ(finder_->KnownWithOwnChanges(), wanted);
  EXPECT_EQ(finder_->Known(), wanted);
}

TEST_F(RevisionFinderTest, ManyWhoAskAreAllAnswered) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 50;
  RunTogether(kThreads, [&](int i) {
    for (int round = 0; round < kRounds; ++round) {
      store_.Put(absl::StrCat("m", i), round + 1, "x");
      const std::string wanted = Stored();
      EXPECT_TRUE(*finder_->Knows(wanted) || Find(wanted).ok());
      EXPECT_TRUE(*finder_->Knows(wanted));
    }
  });
}

}  // namespace
}  // namespace phimap::testing
