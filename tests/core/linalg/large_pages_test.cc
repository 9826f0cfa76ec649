#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "core/linalg/matrix.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// Returns the kernel's flags for the memory mapping that contains `address`, from /proc/self/smaps.
// Empty if there are none.
std::string MappingFlags(const void* address) {
  const uint64_t wanted = reinterpret_cast<uint64_t>(address);
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    uint64_t begin = 0;
    uint64_t end = 0;
    char dash = 0;
    std::istringstream range(line);
    if (range >> std::hex >> begin >> dash >> end && dash == '-') {
      inside = begin <= wanted && wanted < end;
    }
    if (inside && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

bool BeginsWithALargePage(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kLargePageBytes == 0;
}

constexpr int64_t kNumbers = static_cast<int64_t>(kLargePageBytes / sizeof(float));

TEST(LargePageArrayTest, ArrayOfALargePageBeginsWithOneAndAsksForIt) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) {
    GTEST_SKIP() << "this kernel offers no large pages";
  }
  for (const int64_t count : {kNumbers, kNumbers + 1, 5 * kNumbers - 1}) {
    const AlignedArray<float> array = LargePageArray<float>(count);
    ASSERT_EQ(array.size(), count);
    EXPECT_TRUE(BeginsWithALargePage(array.data())) << count;
    array.data()[0] = 1;
    array.data()[count - 1] = 2;
    EXPECT_NE(MappingFlags(array.data()).find(" hg "), std::string::npos)
        << count << ": " << MappingFlags(array.data());
  }
}

// One small array may begin at a large page by chance, but not two at the same time.
TEST(LargePageArrayTest, SmallerArraysAreLeftAlone) {
  const AlignedArray<float> a = LargePageArray<float>(kNumbers - 1);
  const AlignedArray<float> b = LargePageArray<float>(kNumbers - 1);
  EXPECT_FALSE(BeginsWithALargePage(a.data()) && BeginsWithALargePage(b.data()));
  EXPECT_EQ(LargePageArray<float>(0).data(), nullptr);
}

TEST(AskForLargePagesTest, RangeWithoutAWholePageIsNoRange) {
  alignas(64) static char bytes[8192];
  bytes[1] = 7;
  AskForLargePages(bytes + 1, 4000);
  AskForLargePages(nullptr, 0);
  EXPECT_EQ(bytes[1], 7);
}

}  // namespace
}  // namespace phimap::testing
