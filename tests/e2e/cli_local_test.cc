// Tests the phimap command without a server: what it builds and trains has the digest of a server's
// version of the same rows, and what it maps and predicts has a server's bytes.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

// The value of the first field of this name in JSON.
std::string FieldIn(const std::string& json, const std::string& name) {
  const std::string key = absl::StrCat("\"", name, "\"");
  const size_t begin = json.find('"', json.find(':', json.find(key)));
  return json.substr(begin + 1, json.find('"', begin + 1) - begin - 1);
}

class CliLocalTest : public CliFixture {
 protected:
  const std::vector<std::string> rows_ = {"--input=" + kLetters, "--label=label"};
  const std::vector<std::string> spec_ = {"--spec=f2(landmarks=100)", "--kernel=rbf(gamma=scale)",
                                          "--standardize"};
  std::string InFolder(const std::string& name) const { return folder_.path() + "/" + name; }
  const std::string map_ = InFolder("letters.phimap");
  const std::string model_ = InFolder("model.phimap");

  // A server that nobody listens on: whatever asks it fails.
  ProcessResult Alone(std::vector<std::string> words, std::vector<std::string> more = {}) {
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.begin(), {PHIMAP_BINARY, "--server=127.0.0.1:1"});
    return RunProcess(words, "");
  }
  ProcessResult There(std::vector<std::string> words, const std::vector<std::string>& more = {}) {
    words.insert(words.end(), more.begin(), more.end());
    return Phimap(words);
  }
  static std::vector<std::string> Both(std::vector<std::string> a,
                                       const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  void BuildBoth() {
    const ProcessResult here =
        Alone({"build", "--local", "-o", map_, "--json"}, Both(rows_, spec_));
    ASSERT_EQ(here.exit_code, 0) << here.err;
    const ProcessResult there = There({"build", "letters", "--json"}, Both(rows_, spec_));
    ASSERT_EQ(there.exit_code, 0) << there.err;
    digest_ = FieldIn(there.out, "digest");
    EXPECT_EQ(FieldIn(here.out, "digest"), digest_);
  }

  std::string digest_;
};

TEST_F(CliLocalTest, WhatIsBuiltAndTrainedHereIsAServersVersion) {
  BuildBoth();
  const ProcessResult here = Alone({"train", map_, "--local", "-o", model_, "--json"}, rows_);
  ASSERT_EQ(here.exit_code, 0) << here.err;
  const ProcessResult there = There({"train", "letters", "--json"}, rows_);
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_EQ(FieldIn(here.out, "digest"), FieldIn(there.out, "digest"));
  EXPECT_EQ(FieldIn(here.out, "name"), model_);

  const ProcessResult exported = There({"export", "letters@2", "-o", InFolder("exported.phimap")});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(Read(InFolder("exported.phimap")), Read(model_));
  // The file goes to a server, where its digest is known already.
  const ProcessResult imported = There({"import", model_, "--name=letters", "--json"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(FieldIn(imported.out, "digest"), FieldIn(there.out, "digest"));
  EXPECT_THAT(Alone({"inspect", model_}).out, HasSubstr("ridge"));
}

TEST_F(CliLocalTest, WhatIsMappedAndPredictedHereHasAServersBytes) {
  BuildBoth();
  ASSERT_EQ(Alone({"train", map_, "--local", "-o", model_}, rows_).exit_code, 0);
  ASSERT_EQ(There({"train", "letters"}, rows_).exit_code, 0);
  struct Case {
    std::vector<std::string> here;
    std::vector<std::string> there;
  };
  for (const Case& c :
       {Case{{"transform", map_}, {"transform", "letters@1"}},
        Case{{"transform", map_, "--residual"}, {"transform", "letters@1", "--residual"}},
        Case{{"predict", model_, "--probabilities", "--confidence=0.9"},
             {"predict", "letters@2", "--probabilities", "--confidence=0.9"}}}) {
    const ProcessResult here = Alone(c.here, Both(rows_, {"-o", InFolder("here.csv")}));
    const ProcessResult there = There(c.there, Both(rows_, {"-o", InFolder("there.csv")}));
    ASSERT_EQ(here.exit_code, 0) << here.err;
    ASSERT_EQ(there.exit_code, 0) << there.err;
    EXPECT_FALSE(Read(InFolder("here.csv")).empty());
    EXPECT_EQ(Read(InFolder("here.csv")), Read(InFolder("there.csv"))) << c.here[0];
    EXPECT_THAT(here.err, HasSubstr(absl::StrCat("by ", c.here[1])));
  }
  const ProcessResult here = Alone({"evaluate", map_, "--learner=perceptron", "--json"}, rows_);
  const ProcessResult there =
      There({"evaluate", "letters@1", "--learner=perceptron", "--json"}, rows_);
  ASSERT_EQ(here.exit_code, 0) << here.err;
  EXPECT_EQ(here.out.substr(here.out.find("\"learner\"")),
            there.out.substr(there.out.find("\"learner\"")));
}

TEST_F(CliLocalTest, ResumedOutputIsWholeHereToo) {
  BuildBoth();
  const std::vector<std::string> words = {"transform", map_, "-o", InFolder("resumed.csv"),
                                          "--resume"};
  ASSERT_EQ(Alone(words, rows_).exit_code, 0);
  ASSERT_EQ(Alone({"transform", map_, "-o", InFolder("whole.csv")}, rows_).exit_code, 0);
  EXPECT_EQ(Read(InFolder("resumed.csv")), Read(InFolder("whole.csv")));
}

// What COPY for pgvector holds is what CSV holds, in another text.
TEST_F(CliLocalTest, CopyHasTheNumbersOfCsv) {
  ASSERT_EQ(Alone({"build", "--local", "-o", map_}, Both(rows_, spec_)).exit_code, 0);
  const std::vector<std::string> words = {"transform", map_, "--input=" + kLetters,
                                          "--passthrough=label"};
  const ProcessResult copy = Alone(words, {"-o", InFolder("rows.copy")});
  ASSERT_EQ(copy.exit_code, 0) << copy.err;
  ASSERT_EQ(Alone(words, {"-o", InFolder("rows.csv")}).exit_code, 0);
  std::string expected = Read(InFolder("rows.csv"));
  expected.erase(0, expected.find('\n') + 1);
  expected = absl::StrReplaceAll(expected, {{"\n", "]\n"}});
  // The labels are single letters.
  for (size_t line = 0; line < expected.size(); line = expected.find('\n', line) + 1) {
    expected.replace(line + 1, 1, "\t[");
  }
  EXPECT_TRUE(Read(InFolder("rows.copy")) == expected);

  const ProcessResult piped = Alone({"transform", map_, "-o", "-", "--output-format=copy"}, rows_);
  EXPECT_THAT(piped.out, StartsWith("["));
  const ProcessResult refused = Alone(words, {"-o", InFolder("no.copy"), "--residual"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--residual: copy holds"));
  EXPECT_FALSE(std::filesystem::exists(InFolder("no.copy")));
}

// A `vector` of pgvector has at most 16,000 dimensions.
TEST_F(CliLocalTest, CopyRefusesMoreFeaturesThanAVectorHas) {
  const std::string rows = File("a,b\n1,2\n3,4\n5,6\n");
  const ProcessResult built = Alone({"build", "--local", "-o", map_, "--input=" + rows,
                                     "--spec=random_projection(dimensions=16001)"});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const ProcessResult refused =
      Alone({"transform", map_, "--input=" + rows, "-o", InFolder("no.copy")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("phimap: --output-format=copy: pgvector's type vector holds at "
                        "most 16,000 dimensions, but a row has 16,001 features"));
  EXPECT_FALSE(std::filesystem::exists(InFolder("no.copy")));
}

TEST_F(CliLocalTest, FlagsThatContradictAreRefused) {
  const std::vector<std::string> input = Both(rows_, spec_);
  struct Case {
    std::vector<std::string> words;
    const char* says;
  };
  for (const Case& c : {Case{{"build", "--local"}, "expected -o FILE too"},
                        Case{{"build", "letters", "-o", map_}, "expected --local too"},
                        Case{{"build"}, "NAME: expected the name"}}) {
    const ProcessResult refused = Alone(c.words, input);
    EXPECT_EQ(refused.exit_code, 2) << c.says;
    EXPECT_THAT(refused.err, HasSubstr(c.says));
  }
  const ProcessResult nothing = Alone({"train", "letters", "--local", "-o", model_}, rows_);
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("the file of an artifact"));
  EXPECT_FALSE(std::filesystem::exists(model_));
}

TEST_F(CliLocalTest, AFileThatIsNoArtifactIsNamed) {
  const std::string file = File("not an artifact", "no.phimap");
  const ProcessResult refused = Alone({"transform", file, "-o", "-"}, rows_);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("no.phimap: artifact damaged"));
  const ProcessResult missing = Alone({"transform", "./none.phimap", "-o", "-"}, rows_);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("none.phimap"));
}

TEST_F(CliLocalTest, AnOnnxModelComesFromAFileAndFromAServer) {
  BuildBoth();
  const ProcessResult here = Alone({"export", map_, "--format=onnx", "-o", InFolder("here.onnx")});
  ASSERT_EQ(here.exit_code, 0) << here.err;
  const ProcessResult there =
      There({"export", "letters@1", "--format=onnx", "-o", InFolder("there.onnx")});
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_EQ(Read(InFolder("here.onnx")), Read(InFolder("there.onnx")));
  EXPECT_THAT(Read(InFolder("here.onnx")), HasSubstr(digest_));
  const ProcessResult answers =
      Alone({"export", map_, "--format=onnx", "--outputs=answers", "-o", InFolder("no.onnx")});
  EXPECT_EQ(answers.exit_code, 5);
  EXPECT_THAT(answers.err, HasSubstr("no head"));
  EXPECT_FALSE(std::filesystem::exists(InFolder("no.onnx")));
}

}  // namespace
}  // namespace phimap::e2e
