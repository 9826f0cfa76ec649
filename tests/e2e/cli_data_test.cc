// Tests input that is compressed or split into several files, and transforms that are stopped and
// resumed.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

class CliDataTest : public CliFixture {
 protected:
  void SetUp() override {
    const ProcessResult built = Phimap({"build", "letters", "--label=label", "--input=" + kLetters,
                                        "--spec=f2(landmarks=50)", "--kernel=rbf(gamma=0.1)"});
    ASSERT_EQ(built.exit_code, 0) << built.err;
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  ProcessResult Transform(std::vector<std::string> more) {
    more.insert(more.begin(), {"transform", "letters", "--label=label"});
    return Phimap(more);
  }
  // Runs phimap with a limit on the size of its files. The operating system shortens the write that
  // crosses the limit, and ends the process at the next write.
  ProcessResult TransformUntilFileSize(int64_t bytes, const std::string& more) {
    return RunProcess(
        {"/bin/bash", "-c",
         absl::StrCat("ulimit -c 0; ulimit -f ", bytes / 1024, "; exec ", PHIMAP_BINARY,
                      " --server=", server_.address(), " transform letters --label=label ", more)});
  }
  bool Exists(const std::string& name) const { return std::filesystem::exists(Path(name)); }
};

TEST_F(CliDataTest, CompressedRowsOfSeveralFilesGiveTheFeaturesOfOne) {
  const std::string whole = Transform({"--input=" + kLetters, "--output=-"}).out;
  ASSERT_GT(whole.size(), 1000);
  // The rows are split into three files: one not compressed, one compressed with gzip, and one with
  // zstd.
  const std::string split = absl::StrCat(
      "cd ", folder_.path(), " && head -1 ", kLetters, " > head && tail -n +2 ", kLetters,
      " | split -l 7000 - body && for i in a b c; do cat head bodya$i > part-$i.csv; done",
      " && gzip part-b.csv && zstd -q --rm part-c.csv");
  const ProcessResult done = RunProcess({"/bin/bash", "-c", split});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(Transform({"--input=" + Path("part-*"), "--format=csv", "--output=-"}).out == whole);
  EXPECT_TRUE(
      Transform({Path("part-a.csv"), Path("part-b.csv.gz"), Path("part-c.csv.zst"), "--output=-"})
          .out == whole);
  EXPECT_TRUE(Transform({"--input=" + Path("part-a.csv"), "--input=" + Path("part-b.csv.gz"),
                         "--input", Path("part-c.csv.zst"), "--output=-"})
                  .out == whole);
  // Standard input may be compressed, too.
  const ProcessResult packed = RunProcess({"/bin/bash", "-c", "gzip -c " + kLetters});
  EXPECT_TRUE(
      Phimap({"transform", "letters", "--label=label", "--input=-", "--format=csv", "--output=-"},
             packed.out)
          .out == whole);
  // A build from the three files gives the same version as a build from the whole file.
  const auto digest = [&](const std::vector<std::string>& files) {
    std::vector<std::string> words = {"build", "again", "--label=label", "--spec=f2(landmarks=50)",
                                      "--kernel=rbf(gamma=0.1)"};
    words.insert(words.end(), files.begin(), files.end());
    const std::string text = Phimap(words).out;
    const size_t at = text.find("digest");
    return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(digest({Path("part-*"), "--format=csv"}), digest({kLetters}));
}

TEST_F(CliDataTest, AKilledTransformGoesOnToTheBytesOfOneRun) {
  for (const std::string format : {"csv", "npy", "copy"}) {
    SCOPED_TRACE(format);
    const std::string once = Path("once." + format);
    ASSERT_EQ(Transform({"--input=" + kLetters, "--output=" + once}).exit_code, 0);
    const std::string output = Path("resumed." + format);
    const std::string words = "--resume --input=" + kLetters + " --output=" + output;
    // The transform is stopped five times, each time some rows later and usually in the middle of a
    // row. The first time, it is stopped before it writes anything.
    const auto size = static_cast<int64_t>(std::filesystem::file_size(once));
    for (int part = 0; part < 5; ++part) {
      const ProcessResult stopped = TransformUntilFileSize(size * part / 5, words);
      EXPECT_NE(stopped.exit_code, 0);
      EXPECT_FALSE(std::filesystem::exists(output));
    }
    const ProcessResult done = Transform({"--resume", "--input=" + kLetters, "--output=" + output});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.err, HasSubstr("20,000 rows mapped by letters@1, 1"));
    EXPECT_TRUE(Read(output) == Read(once));
    EXPECT_FALSE(std::filesystem::exists(output + ".partial"));
    EXPECT_FALSE(std::filesystem::exists(output + ".resume"));
  }
}

TEST_F(CliDataTest, KillMinusNineLosesNoRow) {
  // The input is the same file eight times, so that the transform takes long enough to be killed.
  std::vector<std::string> files(8, kLetters);
  std::vector<std::string> words = files;
  words.push_back("--output=" + Path("once.csv"));
  ASSERT_EQ(Transform(words).exit_code, 0);
  words = {PHIMAP_BINARY, "--server=" + server_.address(), "transform", "letters", "--label=label",
           "--resume",    "--output=" + Path("out.csv")};
  words.insert(words.end(), files.begin(), files.end());
  Process process(words);
  struct stat info = {};
  while (stat(Path("out.csv.partial").c_str(), &info) != 0 || info.st_size < 4'000'000) {
    ASSERT_FALSE(Exists("out.csv")) << "the transform ended before it could be killed";
  }
  process.Signal(SIGKILL);
  EXPECT_EQ(process.Wait().exit_code, -SIGKILL);
  EXPECT_FALSE(Exists("out.csv"));
  const ProcessResult done = RunProcess(words);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("160,000 rows mapped by letters@1, "));
  EXPECT_TRUE(Read(Path("out.csv")) == Read(Path("once.csv")));
}

TEST_F(CliDataTest, ATransformThatWroteAllItsRowsOnlyHasToFinish) {
  const std::string output = Path("out.npy");
  const std::string words = "--resume --input=" + kLetters + " --output=" + output;
  ASSERT_EQ(Transform({"--input=" + kLetters, "--output=" + Path("once.npy")}).exit_code, 0);
  ASSERT_NE(TransformUntilFileSize(100 << 10, words).exit_code, 0);
  // In an npy file that is made from CSV, the number of rows is written last. Here the test removes
  // it again.
  std::string all = Read(Path("once.npy"));
  const size_t count = all.find("20000");
  all.replace(count, 5, "0    ");
  File(all, "out.npy.partial");
  const ProcessResult done = Transform({"--resume", "--input=" + kLetters, "--output=" + output});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(Read(output) == Read(Path("once.npy")));
}

TEST_F(CliDataTest, ResumeKeepsTheVersionAndRefusesAnotherInputOrAnotherQuestion) {
  const std::string input = File(Read(kLetters), "rows.csv");
  const std::string output = Path("out.csv");
  ASSERT_EQ(Phimap({"alias", "set", "letters@prod", "1"}).exit_code, 0);
  const std::string command = absl::StrCat(
      "ulimit -c 0; ulimit -f 1000; exec ", PHIMAP_BINARY, " --server=", server_.address(),
      " transform letters@prod --label=label --resume", " --input=", input, " --output=", output);
  ASSERT_NE(RunProcess({"/bin/bash", "-c", command}).exit_code, 0);
  ASSERT_TRUE(Exists("out.csv.partial"));
  const std::string kept = Read(output + ".partial");
  const auto resume = [&](const std::string& reference, const std::string& more = "--resume") {
    return Phimap({"transform", reference, "--label=label", "--resume", "--input=" + input,
                   "--output=" + output, more});
  };
  // A transform can be resumed only with the same reference as before.
  const ProcessResult other = resume("letters");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("was computed from other input\n  then: of letters@prod\n"
                                   "  now:  of letters\n  to start over, delete "));
  EXPECT_THAT(resume("letters@prod", "--residual").err, HasSubstr("now:  --residual yes"));
  // The transform is not resumed if an input file has changed.
  const auto time = std::filesystem::last_write_time(input);
  File(Read(kLetters) + "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,A\n", "rows.csv");
  EXPECT_THAT(resume("letters@prod").err, HasSubstr("rows.csv, "));
  File(Read(kLetters), "rows.csv");
  std::filesystem::last_write_time(input, time);
  EXPECT_EQ(Read(output + ".partial"), kept);
  // The alias moves meanwhile. The remaining rows are still mapped by the version that mapped the
  // first rows.
  ASSERT_EQ(Phimap({"build", "letters", "--label=label", "--input=" + kLetters,
                    "--spec=f2(landmarks=30)", "--kernel=rbf(gamma=0.1)"})
                .exit_code,
            0);
  ASSERT_EQ(Phimap({"alias", "set", "letters@prod", "2"}).exit_code, 0);
  const ProcessResult done = resume("letters@prod");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(Phimap({"transform", "letters@1", "--label=label", "--input=" + input,
                    "--output=" + Path("once.csv")})
                .exit_code,
            0);
  EXPECT_TRUE(Read(output) == Read(Path("once.csv")));
}

TEST_F(CliDataTest, ResumeWantsFiles) {
  EXPECT_THAT(Transform({"--resume", "--input=-", "--format=csv", "--output=" + Path("o.csv")}).err,
              HasSubstr("--resume: the input must be files"));
  EXPECT_THAT(Transform({"--resume", "--input=" + kLetters, "--output=-"}).err,
              HasSubstr("--resume: the output must be a file"));
  EXPECT_FALSE(Exists("o.csv.partial"));
  // Nor is a file left behind if the mapping does not exist.
  EXPECT_EQ(
      Phimap({"transform", "none", "--resume", "--input=" + kLetters, "--output=" + Path("o.csv")})
          .exit_code,
      3);
  EXPECT_FALSE(Exists("o.csv.partial"));
}

TEST_F(CliDataTest, AForgottenLabelIsCounted) {
  const ProcessResult result = Phimap(
      {"transform", "letters", "--output=" + Path("o.csv"), "--input=" + File("a,b,c\n1,2,3\n")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("got 3 columns"));
  EXPECT_FALSE(Exists("o.csv"));
}

TEST_F(CliDataTest, CellsThatAreCarriedAlongStayWithTheirRowsOverFilesAndStops) {
  // The cells contain commas and quotes, which must arrive in the output unchanged.
  std::string text = "id,a,b\n";
  for (int i = 0; i < 4000; ++i) {
    absl::StrAppend(&text, i % 3 == 0 ? "\"a \"\"name\"\", of " : "x", i, i % 3 == 0 ? "\"" : "",
                    ",", i, ",", i % 7, "\n");
  }
  const std::string rows = File(text, "ids.csv");
  ASSERT_EQ(Phimap({"build", "small", rows, "--exclude=id", "--spec=f1(landmarks=2)",
                    "--kernel=linear()"})
                .exit_code,
            0);
  const std::vector<std::string> words = {"transform", "small", rows, rows, "--passthrough=id"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return Phimap(more);
  };
  for (const std::string format : {"csv", "copy"}) {
    SCOPED_TRACE(format);
    const std::string once = Path("once." + format);
    const std::string output = Path("out." + format);
    ASSERT_EQ(with({"--output=" + once}).exit_code, 0);
    const ProcessResult stopped =
        RunProcess({"/bin/bash", "-c",
                    absl::StrCat("ulimit -c 0; ulimit -f 60; exec ", PHIMAP_BINARY,
                                 " --server=", server_.address(), " transform small ", rows, " ",
                                 rows, " --passthrough=id --resume --output=", output)});
    ASSERT_NE(stopped.exit_code, 0);
    ASSERT_TRUE(Exists("out." + format + ".partial"));
    const ProcessResult done = with({"--resume", "--output=" + output});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.err, HasSubstr("8,000 rows mapped by small@1, "));
    EXPECT_TRUE(Read(output) == Read(once));
  }
  EXPECT_THAT(Read(Path("out.csv")), HasSubstr("\"a \"\"name\"\", of 3999\","));
  EXPECT_THAT(Read(Path("out.copy")), HasSubstr("\na \"name\", of 3999\t["));
}

}  // namespace
}  // namespace phimap::e2e
