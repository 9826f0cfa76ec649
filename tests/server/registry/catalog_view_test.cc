#include "server/registry/catalog_view.h"

#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/server/registry/memory_store.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class CatalogViewTest : public ::testing::Test {
 protected:
  CatalogViewTest() {
    store_.Put("letters", 1, "one");
    store_.Put("letters", 3, "three");
    store_.PutAlias("letters", "prod", 1);
    store_.PutAlias("letters", "canary", 3);
    store_.Put("spam", 1, "spam");
  }
  int64_t Find(const std::string& reference) const {
    return view_.Find(*ParseReference(reference));
  }
  void CatchUp() {
    told_.clear();
    const absl::Status caught_up = view_.CatchUp(changes_);
    ASSERT_TRUE(caught_up.ok()) << caught_up;
  }
  // Describes how the versions of a mapping changed, in the form "letters: 1,3 -> 1".
  static std::string TextOf(const MappingNames& before, const MappingNames& now) {
    EXPECT_EQ(before.mapping, now.mapping);
    return absl::StrCat(now.mapping, ": ", absl::StrJoin(before.versions, ","), " -> ",
                        absl::StrJoin(now.versions, ","));
  }

  MemoryStore store_;
  std::vector<std::string> told_;
  const std::function<absl::StatusOr<NameChanges>(const Revision&)> changes_ =
      [this](const Revision& since) { return store_.ChangesSince(since); };
  CatalogView view_{[this](const MappingNames& before, const MappingNames& now) {
    told_.push_back(TextOf(before, now));
  }};
};

TEST_F(CatalogViewTest, KnowsNothingBeforeItCatchesUpAndEverythingAfterwards) {
  EXPECT_EQ(Find("letters"), 0);
  EXPECT_EQ(Find("letters@1"), 0);
  CatchUp();
  EXPECT_EQ(Find("letters"), 3);
  EXPECT_EQ(Find("letters@1"), 1);
  EXPECT_EQ(Find("letters@2"), 0);
  EXPECT_EQ(Find("letters@4"), 0);
  EXPECT_EQ(Find("letters@prod"), 1);
  EXPECT_EQ(Find("letters@canary"), 3);
  EXPECT_EQ(Find("letters@other"), 0);
  EXPECT_EQ(Find("spam"), 1);
  EXPECT_EQ(Find("digits"), 0);
  EXPECT_THAT(told_, UnorderedElementsAre("letters:  -> 1,3", "spam:  -> 1"));
  EXPECT_THAT(view_.AliasesOf("letters", 3), ElementsAre("canary"));
  EXPECT_THAT(view_.AliasesOf("spam", 1), IsEmpty());
  EXPECT_THAT(view_.AliasesOf("digits", 1), IsEmpty());
}

TEST_F(CatalogViewTest, TellsOfThoseThatChangedAlone) {
  CatchUp();
  CatchUp();
  EXPECT_THAT(told_, IsEmpty());
  store_.Remove("letters", 3);
  store_.RemoveAlias("letters", "canary");
  EXPECT_EQ(Find("letters"), 3);  // the view does not know about the change yet
  CatchUp();
  EXPECT_EQ(Find("letters"), 1);
  EXPECT_EQ(Find("letters@3"), 0);
  EXPECT_EQ(Find("letters@canary"), 0);
  EXPECT_THAT(told_, ElementsAre("letters: 1,3 -> 1"));
}

TEST_F(CatalogViewTest, WhenTheStoreIsAwayNamesMeanWhatTheyMeant) {
  CatchUp();
  const Revision before = view_.revision();
  store_.PutAlias("letters", "prod", 3);
  store_.FailChanges(true);
  EXPECT_TRUE(absl::IsUnavailable(view_.CatchUp(changes_)));
  EXPECT_EQ(Find("letters@prod"), 1);
  EXPECT_EQ(view_.revision(), before);
  store_.FailChanges(false);
  CatchUp();
  EXPECT_EQ(Find("letters@prod"), 3);
}

TEST_F(CatalogViewTest, WhatAnotherHistoryDoesNotHaveIsGone) {
  CatchUp();
  store_.Remove("spam", 1);
  store_.Put("digits", 1, "digits");
  store_.ChangeHistory("other");
  CatchUp();
  EXPECT_EQ(Find("spam"), 0);
  EXPECT_EQ(Find("digits"), 1);
  EXPECT_EQ(Find("letters@prod"), 1);
  EXPECT_EQ(view_.revision(), store_.ChangesSince(Revision())->revision);
  EXPECT_EQ(view_.breaks(), 1);
  EXPECT_THAT(told_, UnorderedElementsAre("digits:  -> 1", "letters: 1,3 -> 1,3", "spam: 1 -> "));
}

// An answer that takes long, for example over a connection that hangs, blocks nobody. If the view
// knows a newer revision when the answer arrives, the answer changes nothing.
TEST_F(CatalogViewTest, AnAnswerThatComesLateTakesNothingBack) {
  CatchUp();
  std::promise<void> asked;
  std::promise<void> answer;
  std::thread late([&] {
    const absl::Status caught_up = view_.CatchUp([&](const Revision& since) {
      absl::StatusOr<NameChanges> changes = store_.ChangesSince(since);
      asked.set_value();
      answer.get_future().wait();
      return changes;
    });
    EXPECT_TRUE(caught_up.ok()) << caught_up;
  });
  store_.PutAlias("letters", "other", 1);
  asked.get_future().wait();
  store_.PutAlias("letters", "prod", 3);
  CatchUp();
  EXPECT_EQ(Find("letters@prod"), 3);
  const Revision known = view_.revision();
  answer.set_value();
  late.join();
  EXPECT_EQ(Find("letters@prod"), 3);
  EXPECT_EQ(view_.revision(), known);
}

TEST_F(CatalogViewTest, AnAnswerOfAnotherHistoryThatComesLateIsAskedForAgain) {
  CatchUp();
  int asked = 0;
  const absl::Status caught_up = view_.CatchUp([&](const Revision& since) {
    absl::StatusOr<NameChanges> changes = store_.ChangesSince(since);
    if (++asked == 1) {
      store_.Remove("spam", 1);
      store_.ChangeHistory("other");
      EXPECT_TRUE(view_.CatchUp(changes_).ok());
    }
    return changes;
  });
  EXPECT_TRUE(caught_up.ok()) << caught_up;
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(Find("spam"), 0);
  EXPECT_EQ(view_.revision(), store_.ChangesSince(Revision())->revision);
  EXPECT_EQ(view_.breaks(), 1);
}

// Four threads call CatchUp while an alias moves from version to version. After CatchUp, each
// thread must see every move that was made before its call. No thread may ever see the alias move
// back.
TEST_F(CatalogViewTest, NeverGoesBackWhoeverCatchesUp) {
  constexpr int64_t kMoves = 500;
  for (int64_t i = 4; i <= kMoves; ++i) store_.Put("letters", i, "x");
  CatchUp();
  std::atomic<int64_t> moved{1};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      int64_t seen = 0;
      while (seen < kMoves) {
        const int64_t at_least = moved;
        EXPECT_TRUE(view_.CatchUp(changes_).ok());
        const int64_t now = view_.Find(*ParseReference("letters@prod"));
        EXPECT_GE(now, std::max(at_least, seen));
        seen = now;
      }
    });
  }
  for (int64_t i = 3; i <= kMoves; ++i) {
    store_.PutAlias("letters", "prod", i);
    moved = i;
  }
  for (std::thread& thread : threads) thread.join();
}

// Answers tell the revision of the names that they used, so a change that is visible before its
// revision would be told with an earlier one, and another server that knows only that revision
// would take the change back.
TEST_F(CatalogViewTest, NoNameIsAheadOfItsRevision) {
  constexpr int kMappings = 1500;
  const auto is_new = [](const CatalogView& view, int i) {
    return view.Find({.mapping = absl::StrCat("m", i)}) == 2;
  };
  for (int i = 0; i < kMappings; ++i) store_.Put(absl::StrCat("m", i), 1, "one");
  Revision latest;
  const CatalogView* view = nullptr;
  int told = 0;
  CatalogView followed([&](const MappingNames&, const MappingNames& now) {
    if (now.mapping[0] != 'm' || now.versions.size() < 2) return;
    ++told;
    EXPECT_EQ(view->revision(), latest);
    for (const int i : {0, kMappings / 2, kMappings - 1}) EXPECT_TRUE(is_new(*view, i));
  });
  view = &followed;
  ASSERT_TRUE(followed.CatchUp(changes_).ok());
  for (int i = 0; i < kMappings; ++i) store_.Put(absl::StrCat("m", i), 2, "two");
  latest = store_.ChangesSince(Revision())->revision;
  std::atomic<bool> over{false};
  std::thread reader([&] {
    while (!over) {
      for (const int i : {0, kMappings / 2, kMappings - 1}) {
        EXPECT_TRUE(!is_new(followed, i) || followed.revision() == latest);
      }
    }
  });
  EXPECT_TRUE(followed.CatchUp(changes_).ok());
  over = true;
  reader.join();
  EXPECT_EQ(told, kMappings);
}

TEST_F(CatalogViewTest, RemembersTheRevisionsThatItPassed) {
  CatchUp();
  for (int64_t i = 4; i < 10; ++i) {
    store_.Put("letters", i, "x");
    if (i % 2 == 0) CatchUp();
  }
  CatchUp();
  const NameChanges all = *store_.ChangesSince(Revision());
  EXPECT_GT(all.passed.size(), 10);
  for (const Revision& revision : all.passed) {
    EXPECT_EQ(view_.IdOfPassed(revision.number), revision.id);
  }
  EXPECT_EQ(view_.IdOfPassed(all.revision.number + 1), "");
  EXPECT_EQ(view_.breaks(), 0);
  store_.ChangeHistory("other");
  CatchUp();
  EXPECT_EQ(view_.breaks(), 1);
  EXPECT_NE(view_.IdOfPassed(3), all.passed[3].id);
}

// Makes the view show one mapping, "letters", whose versions 1, 2, … have the digests in `digests`.
void Show(CatalogView& view, const std::vector<std::string>& digests, int64_t revision = 1) {
  MappingNames names{.mapping = "letters", .digests = digests};
  for (size_t i = 1; i <= digests.size(); ++i) names.versions.push_back(static_cast<int64_t>(i));
  const absl::Status shown =
      view.CatchUp([&](const Revision& since) -> absl::StatusOr<NameChanges> {
        return NameChanges{
            .revision = {"id", revision}, .whole = since.id.empty(), .mappings = {names}};
      });
  ASSERT_TRUE(shown.ok()) << shown;
}

TEST(CatalogViewDigestTest, ADigestMeansItsVersionAndSoDoesABeginningThatNoOtherHas) {
  CatalogView view(nullptr);
  const std::string rest(56, '0');
  Show(view, {"aaaaaaa1" + rest, "bbbbbbbb" + rest, "aaaaaaa2" + rest});
  const auto find = [&](const std::string& digest) {
    return view.Find(*ParseReference("letters@sha256:" + digest));
  };
  EXPECT_EQ(find("aaaaaaa1" + rest), 1);
  EXPECT_EQ(find("bbbbbbbb" + rest), 2);
  EXPECT_EQ(find("aaaaaaa2" + rest), 3);
  EXPECT_EQ(find("aaaaaaa1"), 1);
  EXPECT_EQ(find("aaaaaaa2"), 3);
  EXPECT_EQ(find("bbbbbbb"), 2);
  EXPECT_EQ(find("aaaaaaa"), 0);  // two digests begin like this, so only the store can decide
  EXPECT_EQ(find("ccccccc"), 0);
  EXPECT_EQ(find("0000000"), 0);
  EXPECT_EQ(view.Find(*ParseReference("spam@sha256:aaaaaaa1")), 0);
}

TEST(CatalogViewDigestTest, OfTheSameDigestTheNewestVersionIsMeantAndItMovesWithTheNames) {
  CatalogView view(nullptr);
  const std::string one(64, '1');
  const std::string two(64, '2');
  const Reference reference = *ParseReference("letters@sha256:1111111");
  Show(view, {one, two, one, two});
  EXPECT_EQ(view.Find(reference), 3);
  Show(view, {one, two}, /*revision=*/2);
  EXPECT_EQ(view.Find(reference), 1);
  Show(view, {two, two}, /*revision=*/3);
  EXPECT_EQ(view.Find(reference), 0);
  Show(view, {}, /*revision=*/4);
  EXPECT_EQ(view.Find(reference), 0);
}

}  // namespace
}  // namespace phimap::testing
