// Tests the lifetimes of versions, references by digest, and pruning on the command line.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

class LifetimeCliTest : public CliFixture {
 protected:
  // Returns what `phimap build` prints.
  std::string Build(const std::string& name, std::vector<std::string> flags = {}) {
    if (rows_.empty()) rows_ = File("a,b\n1,2\n3,4\n5,7\n");
    std::vector<std::string> words = {"build", name, "--input=" + rows_, "--spec=f1(landmarks=2)",
                                      "--kernel=linear()"};
    words.insert(words.end(), flags.begin(), flags.end());
    const ProcessResult built = Phimap(words);
    EXPECT_EQ(built.exit_code, 0) << built.err;
    return built.out;
  }
  static std::string DigestIn(const std::string& shown) {
    const size_t at = shown.find("  digest ");
    return shown.substr(shown.find_first_not_of(' ', at + 9), 64);
  }
  std::string Out(std::vector<std::string> words) {
    const ProcessResult result = Phimap(std::move(words));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }

  std::string rows_;
};

TEST_F(LifetimeCliTest, ADigestIsAReferenceOfEveryCommand) {
  const std::string digest = DigestIn(Build("m"));
  const std::string full = "m@sha256:" + digest;
  const std::string brief = full.substr(0, 9 + 7);
  const std::string output = folder_.path() + "/features.csv";
  for (const std::string& reference : {full, brief}) {
    EXPECT_THAT(Out({"show", reference}), HasSubstr("m@1\n"));
    EXPECT_EQ(Phimap({"transform", reference, "--input=" + rows_, "--output=" + output}).exit_code,
              0);
    EXPECT_THAT(Out({"verify", reference}), HasSubstr("m@1"));
    EXPECT_EQ(Phimap({"export", reference, "-o", folder_.path() + "/m.phimap"}).exit_code, 0);
    EXPECT_THAT(Out({"keep", reference}), HasSubstr("m@1 lives for ever"));
    EXPECT_THAT(Out({"alias", "set", "m@prod", reference.substr(2)}),
                HasSubstr("m@prod is version 1"));
  }
  EXPECT_THAT(Phimap({"delete", brief}).err, HasSubstr("is the target of prod"));
  Out({"alias", "delete", "m@prod"});
  EXPECT_THAT(Phimap({"delete", brief}).err, HasSubstr(brief + " is deleted"));
  const ProcessResult unknown = Phimap({"show", full});
  EXPECT_EQ(unknown.exit_code, 3);
  const ProcessResult wrong = Phimap({"show", "m@sha256:123"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("7 to 64 lower-case hexadecimal digits"));
  EXPECT_THAT(Phimap({"alias", "set", "m@prod", "first"}).err, HasSubstr("VERSION: expected"));
}

TEST_F(LifetimeCliTest, ATtlIsShownExtendedAndCleared) {
  EXPECT_THAT(Build("m"), Not(HasSubstr("lives")));
  EXPECT_THAT(Build("m", {"--ttl=7d"}),
              HasSubstr("lives             7d after its last use, so far"));
  EXPECT_THAT(Out({"list", "m"}), HasSubstr(" (until 20"));
  EXPECT_THAT(Out({"keep", "m@2", "--ttl=180h"}),
              MatchesRegex("m@2 lives 180h after its last use, so far until 20.* UTC\n"));
  EXPECT_THAT(Out({"keep", "m@2", "--ttl=9d", "--json"}), HasSubstr("\"ttl\": \"777600s\""));
  const ProcessResult shorter = Phimap({"keep", "m@1", "--ttl=90s"});
  EXPECT_EQ(shorter.exit_code, 5);
  EXPECT_THAT(shorter.err, HasSubstr("--ttl: m@1 lives for ever, and that can only be extended"));
  Out({"alias", "set", "m@prod", "2"});
  EXPECT_THAT(Out({"show", "m@prod"}), HasSubstr("9d after its last use, and while an alias"));
  EXPECT_EQ(Out({"keep", "m@2"}), "m@2 lives for ever\n");
  EXPECT_THAT(Out({"show", "m@2"}), Not(HasSubstr("lives")));
  const ProcessResult malformed = Phimap({"keep", "m", "--ttl=week"});
  EXPECT_EQ(malformed.exit_code, 2);
  EXPECT_THAT(malformed.err, HasSubstr("--ttl: expected a number and a unit"));
  const ProcessResult brief = Phimap({"keep", "m", "--ttl=1s"});
  EXPECT_EQ(brief.exit_code, 2);
  EXPECT_THAT(brief.err, HasSubstr("--ttl"));
}

TEST_F(LifetimeCliTest, PruneListsWhatItDeletesAndDeletesItIfItMay) {
  for (const char* name : {"f2-a", "f2-a", "f2-b", "letters"}) Build(name);
  const ProcessResult dry = Phimap({"prune", "f2-*", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 0);
  EXPECT_THAT(dry.out, AllOf(HasSubstr("f2-a@2 "), HasSubstr("f2-a@1 "), HasSubstr("f2-b@1 "),
                             Not(HasSubstr("letters"))));
  EXPECT_THAT(dry.err, HasSubstr("would delete 3 versions of "));
  // Standard input is not a terminal, so nobody can confirm the deletion.
  const ProcessResult silent = Phimap({"prune", "f2-*"});
  EXPECT_EQ(silent.exit_code, 2);
  EXPECT_THAT(silent.err, HasSubstr("--yes is required"));
  EXPECT_THAT(Out({"list"}), AllOf(HasSubstr("f2-a "), HasSubstr("f2-b ")));
  EXPECT_THAT(Phimap({"prune", "f2-*", "--older-than=1h", "--yes"}).err,
              HasSubstr("nothing to delete"));
  const ProcessResult pruned = Phimap({"prune", "f2-*", "--yes", "--json"});
  EXPECT_EQ(pruned.exit_code, 0) << pruned.err;
  EXPECT_THAT(pruned.out, HasSubstr("\"name\": \"f2-b\""));
  EXPECT_THAT(pruned.err, HasSubstr("3 versions of "));
  EXPECT_THAT(Out({"list"}), AllOf(HasSubstr("letters "), Not(HasSubstr("f2-"))));
}

TEST_F(LifetimeCliTest, PruneDeletesNothingThatAnAliasKeeps) {
  for (int i = 0; i < 3; ++i) Build("m");
  Out({"alias", "set", "m@prod", "1"});
  Out({"alias", "set", "m@prod", "2"});
  const ProcessResult refused = Phimap({"prune", "m", "--yes"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("m@2 (prod), m@1 (a rollback of prod)"),
                                 HasSubstr("--unaliased skips these versions")));
  EXPECT_THAT(Out({"list", "m", "--json"}), HasSubstr("\"number\": \"3\""));
  EXPECT_THAT(Out({"prune", "m", "--unaliased", "--yes"}), HasSubstr("m@3 "));
  EXPECT_THAT(Out({"list", "m", "--json"}),
              AllOf(HasSubstr("\"number\": \"2\""), HasSubstr("\"number\": \"1\""),
                    Not(HasSubstr("\"number\": \"3\""))));
}

}  // namespace
}  // namespace phimap::e2e
