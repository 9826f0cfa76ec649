// Tests `phimap capabilities` against a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

class CliCapabilitiesTest : public CliFixture {};

TEST_F(CliCapabilitiesTest, ListsNamesOfAllKindsAndParametersOfOne) {
  const ProcessResult all = Phimap({"capabilities"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_THAT(all.out, AllOf(HasSubstr("families\n"), HasSubstr("\nkernels\n"),
                             HasSubstr("\npolicies\n"), HasSubstr("\nlearners\n"),
                             HasSubstr("\n  rpcholesky "), Not(HasSubstr("pool_rows"))));
  const ProcessResult families = Phimap({"capabilities", "families"});
  ASSERT_EQ(families.exit_code, 0) << families.err;
  EXPECT_THAT(families.out, AllOf(HasSubstr("\nfourier  "), HasSubstr(" pool_rows "),
                                  HasSubstr(" required "), Not(HasSubstr("perceptron"))));
  const ProcessResult one = Phimap({"capabilities", "learners", "perceptron"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(HasSubstr("perceptron  "), HasSubstr(" epochs "),
                             Not(HasSubstr("linear_svm"))));
}

TEST_F(CliCapabilitiesTest, JsonHoldsWhatWasAskedFor) {
  const std::string json = Phimap({"capabilities", "policies", "uniform", "--json"}).out;
  EXPECT_THAT(json, AllOf(HasSubstr("\"name\": \"uniform\""), Not(HasSubstr("rpcholesky")),
                          HasSubstr("\"families\": []")));
  EXPECT_THAT(Phimap({"capabilities", "--json"}).out,
              AllOf(HasSubstr("\"learners\""), HasSubstr("\"name\": \"f2\"")));
}

TEST_F(CliCapabilitiesTest, AnUnknownNameIsAnErrorThatListsTheOthers) {
  const ProcessResult unknown = Phimap({"capabilities", "families", "fuorier"});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("no 'fuorier' among the server's families"),
                                 HasSubstr("f2, "), HasSubstr("fourier")));
  EXPECT_EQ(Phimap({"capabilities", "family"}).exit_code, 2);
}

}  // namespace
}  // namespace phimap::e2e
