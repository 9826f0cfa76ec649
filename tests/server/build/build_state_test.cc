#include "gtest/gtest.h"
#include "server/build/build_job.h"

namespace phimap::testing {
namespace {

using S = BuildState;
using E = BuildEvent;

TEST(BuildStateTest, OnlyTheDrawnPathIsLegal) {
  constexpr std::optional<S> kNo = std::nullopt;
  // Each row lists the state after each event: finish, start, computed, published, abandon, fail,
  // cancel. kNo means that the event is not allowed.
  const struct {
    S state;
    std::optional<S> next[7];
  } table[] = {
      {S::kReceiving, {S::kQueued, kNo, kNo, kNo, S::kFailed, kNo, S::kCancelled}},
      {S::kQueued, {kNo, S::kComputing, kNo, kNo, kNo, S::kFailed, S::kCancelled}},
      {S::kComputing, {kNo, kNo, S::kPublishing, kNo, kNo, S::kFailed, S::kCancelled}},
      {S::kPublishing, {kNo, kNo, kNo, S::kDone, kNo, S::kFailed, kNo}},
      {S::kDone, {kNo, kNo, kNo, kNo, kNo, kNo, kNo}},
      {S::kFailed, {kNo, kNo, kNo, kNo, kNo, kNo, kNo}},
      {S::kCancelled, {kNo, kNo, kNo, kNo, kNo, kNo, kNo}},
  };
  for (const auto& row : table) {
    for (int event = 0; event < 7; ++event) {
      EXPECT_EQ(NextState(row.state, static_cast<E>(event)), row.next[event])
          << static_cast<int>(row.state) << " " << event;
    }
  }
}

TEST(BuildStateTest, ThreeStatesAreFinal) {
  for (S state : {S::kReceiving, S::kQueued, S::kComputing, S::kPublishing}) {
    EXPECT_FALSE(IsFinished(state));
  }
  for (S state : {S::kDone, S::kFailed, S::kCancelled}) EXPECT_TRUE(IsFinished(state));
}

}  // namespace
}  // namespace phimap::testing
