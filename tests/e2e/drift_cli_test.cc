// Tests `phimap drift` on the command line.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

class DriftCliTest : public CliFixture {
 protected:
  void Build(const std::string& name, int rows) {
    std::string csv = "a,b\n";
    for (int i = 0; i < rows; ++i) absl::StrAppend(&csv, i % 37, ",", i * i % 101, "\n");
    const ProcessResult built = Phimap(
        {"build", name, "--input=" + File(csv), "--spec=f1(landmarks=2)", "--kernel=linear()"});
    EXPECT_EQ(built.exit_code, 0) << built.err;
  }
  std::string Out(std::vector<std::string> words) {
    const ProcessResult result = Phimap(std::move(words));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
};

TEST_F(DriftCliTest, EachAliasIsShownAndOneMayBeNamed) {
  Build("m", 2000);
  EXPECT_EQ(Out({"drift", "m"}), "");
  Out({"alias", "set", "m@prod", "1"});
  Out({"alias", "set", "m@canary", "1"});
  const std::string all = Out({"drift", "m"});
  EXPECT_THAT(all, HasSubstr("m@canary (version 1): no rows tested yet\n"));
  EXPECT_THAT(all, HasSubstr("m@prod (version 1): no rows tested yet\n"));
  EXPECT_THAT(Out({"drift", "m@prod"}), Not(HasSubstr("canary")));
  const std::string json = Out({"drift", "m@prod", "--json"});
  EXPECT_THAT(json, HasSubstr("\"alias\": \"prod\""));
  EXPECT_THAT(json, HasSubstr("\"promised_rows\": \"25920000\""));
  EXPECT_THAT(json, HasSubstr("\"evidence\": 0"));
  EXPECT_THAT(json, Not(HasSubstr("canary")));
}

TEST_F(DriftCliTest, WhatIsNotTestedSaysWhy) {
  Build("m", 20);
  Out({"alias", "set", "m@prod", "1"});
  EXPECT_THAT(Out({"drift", "m"}), HasSubstr("drift is not tested: the version has no drift "
                                             "reference"));
}

TEST_F(DriftCliTest, UnknownNamesAreNotFound) {
  Build("m", 20);
  EXPECT_EQ(Phimap({"drift", "unknown"}).exit_code, 3);
  const ProcessResult alias = Phimap({"drift", "m@prod"});
  EXPECT_EQ(alias.exit_code, 3);
  EXPECT_THAT(alias.err, HasSubstr("m has no alias prod"));
  for (const char* incomplete : {"m@", "@prod", ""}) {
    const ProcessResult refused = Phimap({"drift", incomplete});
    EXPECT_EQ(refused.exit_code, 2) << incomplete;
    EXPECT_THAT(refused.err, HasSubstr("letters@prod"));
  }
}

}  // namespace
}  // namespace phimap::e2e
