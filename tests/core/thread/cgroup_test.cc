#include "core/thread/cgroup.h"

#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(CgroupTest, FindsTheProcessInBothHierarchies) {
  const std::string mixed =
      "12:memory:/docker/m\n4:cpu,cpuacct:/docker/c\n1:name=systemd:/s\n0::/docker/u\n";
  EXPECT_THAT(ParseProcSelfCgroup(mixed, "cpu").v2, Optional(std::string("/docker/u")));
  EXPECT_THAT(ParseProcSelfCgroup(mixed, "cpu").v1, Optional(std::string("/docker/c")));
  EXPECT_THAT(ParseProcSelfCgroup(mixed, "memory").v1, Optional(std::string("/docker/m")));
  EXPECT_EQ(ParseProcSelfCgroup(mixed, "pids").v1, std::nullopt);
  const CgroupPaths only_v2 = ParseProcSelfCgroup("0::/\n", "cpu");
  EXPECT_THAT(only_v2.v2, Optional(std::string("/")));
  EXPECT_EQ(only_v2.v1, std::nullopt);
  // The controller "cpuset" is not the controller "cpu".
  EXPECT_EQ(ParseProcSelfCgroup("3:cpuset:/x\n", "cpu").v1, std::nullopt);
  EXPECT_EQ(ParseProcSelfCgroup("garbage", "cpu").v2, std::nullopt);
}

TEST(CgroupTest, LimitsOfAllAncestorsCount) {
  EXPECT_THAT(WithAncestors("/a/b"), ElementsAre("/a/b", "/a", ""));
  EXPECT_THAT(WithAncestors("/"), ElementsAre(""));
  EXPECT_THAT(WithAncestors(""), ElementsAre(""));
}

TEST(CgroupTest, TheLeastNumberIsTheLimit) {
  EXPECT_THAT(LeastLimit({"2147483648\n", "max\n", "1073741824\n"}), Optional(1073741824));
  EXPECT_EQ(LeastLimit({}), std::nullopt);
  EXPECT_EQ(LeastLimit({"max\n", "", "-1\n", "0", "many"}), std::nullopt);
  // What cgroup v1 writes when there is no limit.
  EXPECT_EQ(LeastLimit({"9223372036854771712\n"}), std::nullopt);
}

}  // namespace
}  // namespace phimap::testing
