// Checks that long work stops where its checkpoint says so.
#ifndef PHIMAP_TESTS_SUPPORT_CHECKPOINTS_H_
#define PHIMAP_TESTS_SUPPORT_CHECKPOINTS_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "core/linalg/work.h"
#include "gtest/gtest.h"

namespace phimap::testing {

// Runs `work(checkpoint)`, which returns a status. Its checkpoint fails at call number `stop`. The
// work must end with that error and make no further call, and the shares that it reports must lie
// in [0, 1] and never fall.
template <typename Work>
void ExpectStopsAt(size_t stop, const Work& work) {
  size_t calls = 0;
  double last = 0;
  const absl::Status status = work([&](double share) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1);
    last = share;
    return ++calls == stop ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(status, absl::CancelledError("enough"));
  EXPECT_EQ(calls, stop);
}

// Runs `work` to its end, and then stops it at each of its checkpoints. Returns the shares that it
// reported.
template <typename Work>
std::vector<double> ExpectStopsEverywhere(const Work& work) {
  std::vector<double> shares;
  const absl::Status whole = work([&](double share) {
    shares.push_back(share);
    return absl::OkStatus();
  });
  EXPECT_TRUE(whole.ok()) << whole;
  for (size_t stop = 1; stop <= shares.size(); ++stop) ExpectStopsAt(stop, work);
  return shares;
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_CHECKPOINTS_H_
