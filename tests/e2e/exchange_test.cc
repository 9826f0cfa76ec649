// Tests `phimap export`, `inspect` and `import`, with which a user copies a version from one server
// to another.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/support/artifact_surgery.h"
#include "tests/support/matchers.h"
#include "tests/support/source_dir.h"

namespace phimap::e2e {
namespace {

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() {
    std::string rows = "a,b,c\n";
    for (int i = 0; i < 300; ++i) absl::StrAppend(&rows, i % 17, ",", i % 5, ",", i * i % 11, "\n");
    File("rows.csv", rows);
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string File(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name), std::ios::binary) << content;
    return Path(name);
  }
  ProcessResult PhimapAt(const std::string& server, std::vector<std::string> arguments,
                         const std::string& input = "") const {
    arguments.insert(arguments.begin(), {PHIMAP_BINARY, "--server=" + server});
    return RunProcess(arguments, input);
  }
  ProcessResult Phimap(std::vector<std::string> arguments, const std::string& input = "") const {
    return PhimapAt(server_.address(), std::move(arguments), input);
  }
  void MustBuild(const std::string& name, const std::string& mapping) const {
    const ProcessResult built =
        Phimap({"build", name, "--input=" + Path("rows.csv"), "--spec=" + mapping,
                "--kernel=rbf(gamma=scale)", "--standardize"});
    ASSERT_EQ(built.exit_code, 0) << built.err;
  }
  // Exports a version to `file`. Returns the bytes of the artifact.
  std::string MustExport(const std::string& reference, const std::string& file) const {
    const ProcessResult exported = Phimap({"export", reference, "-o", Path(file)});
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    return Content(Path(file));
  }
  // Maps rows, and returns the contents of the feature file, so that tests can compare it byte for
  // byte.
  std::string Features(const std::string& server, const std::string& reference) const {
    const ProcessResult mapped =
        PhimapAt(server, {"transform", reference, "--input=" + Path("rows.csv"),
                          "--output=" + Path("features.npy")});
    EXPECT_EQ(mapped.exit_code, 0) << mapped.err;
    return Content(Path("features.npy"));
  }

  TemporaryFolder folder_;
  TemporaryFolder data_;
  ServerProcess server_{data_.path()};
};

TEST_F(ExchangeTest, AVersionThatWasDeletedAnswersTheSameBytesOnceItsFileIsImported) {
  MustBuild("letters", "f2(landmarks=30)");
  const std::string before = Features(server_.address(), "letters@1");
  MustExport("letters@1", "letters@1.phimap");
  ASSERT_EQ(Phimap({"delete", "letters", "--all-versions"}).exit_code, 0);
  ASSERT_EQ(Phimap({"show", "letters"}).exit_code, 3);

  const ProcessResult imported = Phimap({"import", Path("letters@1.phimap")});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  // The import makes version 2, because the number of a deleted version is not used again.
  EXPECT_THAT(imported.out, StartsWith("letters@2\n"));
  EXPECT_THAT(imported.out, HasSubstr("imported"));
  EXPECT_EQ(Features(server_.address(), "letters@2"), before);
  EXPECT_EQ(Phimap({"verify", "letters@2"}).exit_code, 0);
  // Importing the same artifact again adds nothing.
  EXPECT_THAT(Phimap({"import", Path("letters@1.phimap")}).out, StartsWith("letters@2\n"));
  EXPECT_EQ(MustExport("letters", "again.phimap"), Content(Path("letters@1.phimap")));
}

TEST_F(ExchangeTest, AnotherServerAnswersTheSameBytes) {
  const TemporaryFolder other_data;
  const ServerProcess other(other_data.path());
  for (const char* mapping : {"f1(landmarks=20)", "f2(landmarks=30, serving_type=float64)",
                              "f3(landmarks=30, dimensions=10)"}) {
    SCOPED_TRACE(mapping);
    MustBuild("letters", mapping);
    MustExport("letters", "letters.phimap");
    const ProcessResult imported =
        PhimapAt(other.address(), {"import", Path("letters.phimap"), "--name=copy", "--json"});
    ASSERT_EQ(imported.exit_code, 0) << imported.err;
    EXPECT_THAT(imported.out, HasSubstr("\"name\": \"copy\""));
    EXPECT_EQ(Features(other.address(), "copy"), Features(server_.address(), "letters"));
  }
}

TEST_F(ExchangeTest, InspectShowsWhatAFileHoldsAndAsksNoServer) {
  MustBuild("letters", "f2(landmarks=30)");
  MustExport("letters", "letters.phimap");
  const std::string digest = server_.Connect()->GetVersion("letters")->ref().digest();
  const auto inspect = [&](std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), "inspect");
    return PhimapAt("unix:/nowhere", std::move(arguments), input);
  };
  const ProcessResult shown = inspect({Path("letters.phimap")});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  for (const std::string& text : {digest, std::string("f2(landmarks=30, "), std::string(" of 30  "),
                                  std::string("reference vectors 4 ×")}) {
    EXPECT_THAT(shown.out, HasSubstr(text));
  }
  EXPECT_THAT(inspect({Path("letters.phimap"), "--json"}).out, HasSubstr(digest));
  EXPECT_THAT(inspect({"-"}, Content(Path("letters.phimap"))).out, HasSubstr(digest));
  EXPECT_EQ(inspect({Path("rows.csv")}).exit_code, 2);
  EXPECT_THAT(inspect({Path("rows.csv")}).err, HasSubstr("not a phimap artifact"));
  EXPECT_EQ(inspect({Path("nothing")}).exit_code, 2);
}

// Most of the bytes of these files are zeros, and the files are larger than an artifact may be. A
// command that read a whole file would take 4 GiB of memory and report another error.
TEST_F(ExchangeTest, InspectReadsNoMoreThanTheFirstBytesSayThereIs) {
  constexpr int64_t kHuge = int64_t{5} << 30;
  const std::string zeros = File("zeros.phimap", "");
  std::filesystem::resize_file(zeros, kHuge);
  const ProcessResult none = Phimap({"inspect", zeros});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("not a phimap artifact"));
  MustBuild("letters", "f1(landmarks=10)");
  const std::string good = MustExport("letters", "letters.phimap");
  const std::string longer = File("longer.phimap", good);
  std::filesystem::resize_file(longer, kHuge);
  const ProcessResult more = Phimap({"inspect", longer});
  EXPECT_EQ(more.exit_code, 2);
  EXPECT_THAT(more.err, HasSubstr(absl::StrCat("head states ", good.size(), " bytes")));
}

TEST_F(ExchangeTest, AFlippedByteIsRefusedWithItsSectionNamedAndNothingIsStored) {
  MustBuild("letters", "f2(landmarks=30)");
  const std::string good = MustExport("letters", "letters.phimap");
  const char* const sections[] = {"provenance", "input stage", "feature stage", "projection stage",
                                  "certificate"};
  for (int i = 0; i < 5; ++i) {
    SCOPED_TRACE(sections[i]);
    std::string bad = good;
    bad[testing::SectionOffset(good, i) + testing::SectionSize(good, i) / 2] ^= 0x10;
    const std::string path = File("copy.phimap", bad);
    const std::string place = absl::StrCat("section ", i + 1, " (", sections[i], ") is damaged");
    const ProcessResult inspected = Phimap({"inspect", path});
    EXPECT_EQ(inspected.exit_code, 2);
    EXPECT_THAT(inspected.err, StartsWith("phimap: FILE: artifact damaged at byte "));
    EXPECT_THAT(inspected.err, HasSubstr(place));
    const ProcessResult imported = Phimap({"import", path});
    EXPECT_EQ(imported.exit_code, 2);
    EXPECT_THAT(imported.err, StartsWith("phimap: FILE: artifact damaged at byte "));
    EXPECT_THAT(imported.err, HasSubstr(place));
    EXPECT_EQ(imported.out, "");
  }
  EXPECT_EQ(Phimap({"show", "copy"}).exit_code, 3);
  EXPECT_EQ(Phimap({"import", Path("letters.phimap"), "--name=copy"}).exit_code, 0);
}

TEST_F(ExchangeTest, WhatIsCutOffOrTooLongOrNoArtifactIsRefusedAndNothingIsStored) {
  MustBuild("letters", "f1(landmarks=10)");
  const std::string good = MustExport("letters", "letters.phimap");
  for (const std::string& bad :
       {std::string(), good.substr(0, 100), good.substr(0, good.size() - 1), good + "x",
        std::string(5000, 'x'), Content(Path("rows.csv"))}) {
    SCOPED_TRACE(bad.size());
    const std::string path = File("copy.phimap", bad);
    const ProcessResult imported = Phimap({"import", path});
    EXPECT_EQ(imported.exit_code, 2) << imported.err;
    EXPECT_THAT(imported.err, StartsWith("phimap: FILE: "));
    EXPECT_EQ(Phimap({"inspect", path}).exit_code, imported.exit_code);
  }
  EXPECT_EQ(Phimap({"show", "copy"}).exit_code, 3);
}

TEST_F(ExchangeTest, AnImportWithoutANameTakesThatOfItsFile) {
  MustBuild("letters", "f1(landmarks=10)");
  const std::string good = MustExport("letters", "letters.phimap");
  for (const std::string file :
       {"first.phimap", "second@prod.phimap", "third", "fourth@7.2.phimap"}) {
    const std::string name = file.substr(0, file.find_first_of("@."));
    EXPECT_THAT(Phimap({"import", File(file, good)}).out, StartsWith(name + "@1\n")) << file;
  }
  for (const char* file : {".phimap", "Upper.phimap", "-x.phimap"}) {
    const ProcessResult refused = Phimap({"import", File(file, good)});
    EXPECT_EQ(refused.exit_code, 2) << file;
    EXPECT_THAT(refused.err, StartsWith("phimap: --name: ")) << file;
  }
  EXPECT_THAT(Phimap({"import", "-"}, good).err,
              HasSubstr("--name: standard input has no file name"));
  EXPECT_THAT(Phimap({"import", "-", "--name=piped"}, good).out, StartsWith("piped@1\n"));
  EXPECT_EQ(Phimap({"import", Path("nothing.phimap")}).exit_code, 2);
}

TEST_F(ExchangeTest, AnExportAppearsWholeOrNotAtAll) {
  MustBuild("letters", "f1(landmarks=10)");
  const std::string good = MustExport("letters@1", "letters.phimap");
  const ProcessResult piped = Phimap({"export", "letters", "-o", "-"});
  EXPECT_EQ(piped.exit_code, 0);
  EXPECT_EQ(piped.out, good);
  EXPECT_EQ(Phimap({"export", "letters@2", "-o", Path("none.phimap")}).exit_code, 3);
  EXPECT_FALSE(std::filesystem::exists(Path("none.phimap")));
  EXPECT_EQ(Phimap({"export", "letters@2", "-o", Path("letters.phimap")}).exit_code, 3);
  EXPECT_EQ(Content(Path("letters.phimap")), good);
  EXPECT_EQ(Phimap({"export", "letters"}).exit_code, 2);
}

// Returns the commands of shell block number `n` under a heading of docs/operations/mend.md. The
// first block has number 0.
std::string CommandsUnder(const std::string& heading, int n) {
  const std::string text = Content(testing::SourcePath("docs/operations/mend.md"));
  size_t at = text.find("\n## " + heading + "\n");
  EXPECT_NE(at, std::string::npos);
  const std::string begin_line = "\n```sh\n";
  for (int i = 0; i <= n; ++i) at = text.find(begin_line, at + 1);
  EXPECT_NE(at, std::string::npos);
  const size_t begin = at + begin_line.size();
  return text.substr(begin, text.find("```\n", begin) - begin);
}

TEST_F(ExchangeTest, TheBackupOfTheManualRestoresEveryVersionInItsOrder) {
  // Ten versions, because sorting their names as text would put version 10 before version 2.
  for (int i = 1; i <= 10; ++i) MustBuild("letters", absl::StrCat("f1(landmarks=", 10 + i, ")"));
  MustBuild("other", "f2(landmarks=30)");
  ASSERT_EQ(Phimap({"alias", "set", "letters@prod", "9"}).exit_code, 0);
  const auto run = [&](const ServerProcess& server, const std::string& commands) {
    const std::filesystem::path folder = std::filesystem::path(PHIMAP_BINARY).parent_path();
    const ProcessResult result = RunProcess(
        {"/bin/bash", "-ec",
         absl::StrCat("export PHIMAP_SERVER=", server.address(), " PATH=", folder.string(),
                      ":$PATH\ncd ", folder_.path(), "\n", commands)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(run(server_, CommandsUnder("Backup", 0)), "");  // nothing is damaged
  const TemporaryFolder restored_data;
  const ServerProcess restored(restored_data.path());
  const std::string out = run(restored, CommandsUnder("Backup", 1));
  EXPECT_THAT(out, HasSubstr("letters@prod is version 9 "));
  for (const std::string reference :
       {"letters@1", "letters@2", "letters@10", "other@1", "letters@prod"}) {
    EXPECT_EQ(restored.Connect()->GetVersion(reference)->ref().digest(),
              server_.Connect()->GetVersion(reference)->ref().digest());
  }
}

TEST_F(ExchangeTest, AnImportRepairsAVersionWhoseStoredBytesAreDamaged) {
  MustBuild("letters", "f1(landmarks=10)");
  const std::string good = MustExport("letters", "letters.phimap");
  const std::string digest = server_.Connect()->GetVersion("letters")->ref().digest();
  const std::string blob = absl::StrCat(data_.path(), "/blobs/", digest.substr(0, 2), "/", digest);
  ASSERT_EQ(Content(blob), good);
  std::string bad = good;
  bad[bad.size() / 2] ^= 1;
  std::filesystem::permissions(blob, std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add);
  std::ofstream(blob, std::ios::binary) << bad;
  EXPECT_EQ(Phimap({"export", "letters", "-o", Path("bad.phimap")}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(Path("bad.phimap")));
  EXPECT_THAT(Phimap({"import", Path("letters.phimap")}).out, StartsWith("letters@1\n"));
  EXPECT_EQ(MustExport("letters", "good.phimap"), good);
}

}  // namespace
}  // namespace phimap::e2e
