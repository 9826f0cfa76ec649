#include "server/observe/process_memory.h"

#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = 1024 * kMiB;
constexpr MemoryLimits kDefaults = {4 * kGiB, 512 * kMiB, 4 * kGiB, 4096};
constexpr std::array<bool, kMemoryParts> kNoneGiven = {};

TEST(ProcessMemoryTest, TheWorstCaseIsTheFormulaOfThePage) {
  // 64 MiB + 1.25·512 MiB + 256 MiB + 512 MiB + 512·0.5 MiB
  EXPECT_EQ(WorstCaseBytes({512 * kMiB, 256 * kMiB, 512 * kMiB, 512}), 1728 * kMiB);
}

TEST(ProcessMemoryTest, LimitsThatFitStay) {
  EXPECT_EQ(FitInto(64 * kGiB, kDefaults, kNoneGiven), kDefaults);
}

TEST(ProcessMemoryTest, DefaultsFitIntoNineTenthsAndUseMostOfIt) {
  for (const int64_t bytes : {512 * kMiB, kGiB, 2 * kGiB, 4 * kGiB, 8 * kGiB, 11 * kGiB}) {
    const MemoryLimits fitted = FitInto(bytes, kDefaults, kNoneGiven);
    const double share = static_cast<double>(WorstCaseBytes(fitted)) / static_cast<double>(bytes);
    EXPECT_LE(share, 0.9) << bytes;
    EXPECT_GE(share, 0.89) << bytes;
    for (int i = 0; i < kMemoryParts; ++i) {
      EXPECT_GT(fitted[i], 0);
      EXPECT_LE(fitted[i], kDefaults[i]);
    }
  }
}

TEST(ProcessMemoryTest, WhatIsGivenStaysAndTheRestGivesWay) {
  MemoryLimits limits = kDefaults;
  limits[static_cast<int>(MemoryPart::kLive)] = kGiB;
  const MemoryLimits fitted = FitInto(2 * kGiB, limits, {true, false, false, false});
  EXPECT_EQ(fitted[static_cast<int>(MemoryPart::kLive)], kGiB);
  EXPECT_LE(WorstCaseBytes(fitted), 0.9 * 2 * kGiB);
  EXPECT_GE(WorstCaseBytes(fitted), 0.89 * 2 * kGiB);
}

TEST(ProcessMemoryTest, WithTooLittleMemoryThePartsKeepAMinimum) {
  EXPECT_THAT(FitInto(32 * kMiB, kDefaults, kNoneGiven),
              ElementsAre(16 * kMiB, 16 * kMiB, 16 * kMiB, 16));
  EXPECT_GT(WorstCaseBytes(FitInto(32 * kMiB, kDefaults, kNoneGiven)), 32 * kMiB);
  // If all are given, nothing is changed.
  EXPECT_EQ(FitInto(kGiB, kDefaults, {true, true, true, true}), kDefaults);
}

}  // namespace
}  // namespace phimap::testing
