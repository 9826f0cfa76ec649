// Tests `phimap capabilities` against a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/cli_fixture.h"

namespace phimap::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CliCapabilitiesTest : public CliFixture {};

TEST_F(CliCapabilitiesTest, ListsNamesOfAllKindsAndParametersOfOne) {
  const ProcessResult all = Phimap({"capabilities"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_THAT(all.out, AllOf(HasSubstr("mappings\n"), HasSubstr("\nkernels\n"),
                             HasSubstr("\npolicies\n"), HasSubstr("\nlearners\n"),
                             HasSubstr("\n  rpcholesky "), Not(HasSubstr("pool_rows"))));
  const ProcessResult mappings = Phimap({"capabilities", "mappings"});
  ASSERT_EQ(mappings.exit_code, 0) << mappings.err;
  EXPECT_THAT(mappings.out, AllOf(HasSubstr("\nfourier  "), HasSubstr(" pool_rows "),
                                  HasSubstr(" required "), Not(HasSubstr("perceptron"))));
  const ProcessResult one = Phimap({"capabilities", "learners", "perceptron"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(HasSubstr("perceptron  "), HasSubstr(" epochs "),
                             Not(HasSubstr("linear_svm"))));
}

TEST_F(CliCapabilitiesTest, JsonHoldsWhatWasAskedFor) {
  const std::string json = Phimap({"capabilities", "policies", "uniform", "--json"}).out;
  EXPECT_THAT(json, AllOf(HasSubstr("\"name\": \"uniform\""), Not(HasSubstr("rpcholesky")),
                          HasSubstr("\"mappings\": []")));
  EXPECT_THAT(Phimap({"capabilities", "--json"}).out,
              AllOf(HasSubstr("\"learners\""), HasSubstr("\"name\": \"f2\"")));
}

TEST_F(CliCapabilitiesTest, AnUnknownNameIsAnErrorThatListsTheOthers) {
  const ProcessResult unknown = Phimap({"capabilities", "mappings", "fuorier"});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("no 'fuorier' among the server's mappings"),
                                 HasSubstr("f2, "), HasSubstr("fourier")));
  EXPECT_EQ(Phimap({"capabilities", "mapping"}).exit_code, 2);
}

}  // namespace
}  // namespace phimap::e2e
