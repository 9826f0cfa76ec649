#include "server/registry/catalog_view.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/registry/memory_store.h"

namespace phimap::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

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
    const absl::Status caught_up = view_.CatchUp();
    ASSERT_TRUE(caught_up.ok()) << caught_up;
  }
  // "letters: 1,3 -> 1"
  static std::string TextOf(const MappingNames& before, const MappingNames& now) {
    EXPECT_EQ(before.mapping, now.mapping);
    return absl::StrCat(now.mapping, ": ", absl::StrJoin(before.versions, ","), " -> ",
                        absl::StrJoin(now.versions, ","));
  }

  MemoryStore store_;
  std::vector<std::string> told_;
  CatalogView view_{store_, [this](const MappingNames& before, const MappingNames& now) {
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
  EXPECT_EQ(Find("letters"), 3);  // not told yet
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
  EXPECT_TRUE(absl::IsUnavailable(view_.CatchUp()));
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
  store_.ChangeEpoch("other");
  CatchUp();
  EXPECT_EQ(Find("spam"), 0);
  EXPECT_EQ(Find("digits"), 1);
  EXPECT_EQ(Find("letters@prod"), 1);
  EXPECT_EQ(view_.revision().epoch, "other");
  EXPECT_THAT(told_, UnorderedElementsAre("digits:  -> 1", "letters: 1,3 -> 1,3", "spam: 1 -> "));
}

// Four threads catch up while an alias moves on and on: after CatchUp it is never seen where it was
// before, and nobody ever sees it go back.
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
        EXPECT_TRUE(view_.CatchUp().ok());
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

}  // namespace
}  // namespace phimap::testing
