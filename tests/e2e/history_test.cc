// Tests that the checker finds impossible histories and accepts possible ones.
#include "tests/e2e/history.h"

#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

TEST(HistoryTest, WhatOneRegisterDoesIsPossible) {
  EXPECT_EQ(FindContradiction(0, {}, {{0, 1, 2}}), "");
  EXPECT_EQ(FindContradiction(0, {{1, 1, 2}}, {{0, 0, 1}, {1, 3, 4}}), "");
  // During a write, reads may return the old or the new value, but not the old value after the new
  // one.
  EXPECT_EQ(FindContradiction(0, {{1, 1, 4}}, {{0, 1, 2}, {1, 2.5, 3}, {1, 5, 6}}), "");
  EXPECT_EQ(FindContradiction(0, {{1, 1, 4}, {2, 1, 4}}, {{2, 1, 2}, {1, 2.5, 3}}), "");
  // A write that was not answered may take effect late, or not at all.
  EXPECT_EQ(FindContradiction(0, {{1, 1}, {2, 2, 3}}, {{2, 4, 5}, {1, 6, 7}}), "");
  EXPECT_EQ(FindContradiction(0, {{1, 1}, {2, 2, 3}}, {{2, 4, 5}}), "");
}

TEST(HistoryTest, AStaleReadIsFound) {
  EXPECT_NE(FindContradiction(0, {{1, 1, 2}}, {{0, 3, 4}}), "");
  EXPECT_NE(FindContradiction(0, {{1, 1, 2}, {2, 3, 4}}, {{1, 5, 6}}), "");
}

TEST(HistoryTest, ALostWriteIsFound) {
  // Value 2 was acknowledged between two reads of value 1.
  EXPECT_THAT(FindContradiction(0, {{1, 1, 2}, {2, 4, 5}}, {{1, 3, 3.5}, {1, 6, 7}}),
              HasSubstr("2 was written while the alias was at 1"));
}

TEST(HistoryTest, AReadThatGoesBackWhileAWriteIsUnderWayIsFound) {
  EXPECT_NE(FindContradiction(0, {{1, 1, 9}}, {{1, 2, 3}, {0, 4, 5}}), "");
}

TEST(HistoryTest, AValueFromNowhereOrFromTheFutureIsFound) {
  EXPECT_NE(FindContradiction(0, {}, {{7, 1, 2}}), "");
  EXPECT_NE(FindContradiction(0, {{1, 3, 4}}, {{1, 1, 2}}), "");
}

TEST(HistoryTest, AWriteThatWasRefusedMustNotHaveBeenMade) {
  const Write refused{.value = 2, .begin = 3, .refused = true};
  EXPECT_EQ(FindContradiction(0, {{1, 1, 2}, refused}, {{1, 5, 6}}), "");
  EXPECT_THAT(FindContradiction(0, {{1, 1, 2}, refused}, {{2, 5, 6}}),
              HasSubstr("said not to have been made"));
}

TEST(HistoryTest, TwoWritesInTwoOrdersAreFound) {
  EXPECT_NE(FindContradiction(0, {{1, 1, 2}, {2, 1, 2}}, {{1, 3, 4}, {2, 5, 6}, {1, 7, 8}}), "");
}

TEST(HistoryTest, PlainReadsMayBeOldForAWhileAndNotLonger) {
  const std::vector<Write> writes = {{1, 1, 2}, {2, 3, 4}};
  EXPECT_EQ(FindStaleRead(0, writes, {{1, 4.9, 5, 0}}, 1), "");
  EXPECT_THAT(FindStaleRead(0, writes, {{1, 5.1, 5.2, 0}}, 1), HasSubstr("after 2 had come"));
  EXPECT_NE(FindStaleRead(0, writes, {{0, 3.1, 3.2, 0}}, 1), "");
}

TEST(HistoryTest, PlainReadsDoNotGoBackOnOneServer) {
  const std::vector<Write> writes = {{1, 1, 2}, {2, 3, 4}};
  EXPECT_THAT(FindStaleRead(0, writes, {{2, 4, 4.1, 0}, {1, 4.2, 4.3, 0}}, 1),
              HasSubstr("server 0 answered 2 and later 1"));
  EXPECT_EQ(FindStaleRead(0, writes, {{2, 4, 4.1, 0}, {1, 4.2, 4.3, 1}}, 1), "");
  EXPECT_EQ(FindStaleRead(0, writes, {{2, 4, 4.25, 0}, {1, 4.2, 4.3, 0}}, 1), "");
}

}  // namespace
}  // namespace phimap::e2e
