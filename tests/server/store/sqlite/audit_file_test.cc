#include "server/store/audit_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/matchers.h"

namespace phimap {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The numbers of the entries in the file, from the beginning of their lines.
std::vector<int> NumbersIn(const std::string& path) {
  std::vector<int> numbers;
  for (const std::string& line : LinesOf(path)) {
    EXPECT_EQ(line.rfind("{\"number\":", 0), 0u) << line;
    EXPECT_EQ(line.back(), '}') << line;
    numbers.push_back(std::stoi(line.substr(10)));
  }
  return numbers;
}

class AuditFileTest : public ::testing::Test {
 protected:
  AuditFileTest() : store_(MustOpen(folder_.path() + "/data", nullptr)) {}

  void Open() { file_ = AuditFile::Open(path_, *store_, logger_).value(); }
  void Close() {
    store_->CopyAuditBy(nullptr, nullptr);
    file_ = nullptr;
  }
  absl::Status Publish() {
    return store_->Publish(RequestFor(absl::StrCat("b", ++builds_)), "artifact").status();
  }

  TemporaryDirectory folder_;
  const std::string path_ = folder_.path() + "/audit.log";
  Logger logger_{LogLevel::kOff};
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<AuditFile> file_;
  int builds_ = 0;
};

TEST_F(AuditFileTest, EachEntryIsOneLineAsSoonAsTheChangeIsAnswered) {
  ASSERT_TRUE(Publish().ok());
  Open();
  EXPECT_THAT(NumbersIn(path_), ::testing::ElementsAre(1));
  ASSERT_TRUE(Publish().ok());
  EXPECT_THAT(NumbersIn(path_), ::testing::ElementsAre(1, 2));
  EXPECT_THAT(LinesOf(path_)[1], ::testing::HasSubstr("\"mapping\":\"letters\""));
  // No one but the owner may read who calls.
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AuditFileTest, AFileThatWasRenamedIsBegunAnewWithWhatFollows) {
  Open();
  ASSERT_TRUE(Publish().ok());
  fs::rename(path_, path_ + ".1");
  ASSERT_TRUE(Publish().ok());
  EXPECT_THAT(NumbersIn(path_ + ".1"), ::testing::ElementsAre(1));
  EXPECT_THAT(NumbersIn(path_), ::testing::ElementsAre(2));
  // Also across a start.
  Close();
  fs::rename(path_, path_ + ".2");
  Open();
  ASSERT_TRUE(Publish().ok());
  EXPECT_THAT(NumbersIn(path_), ::testing::ElementsAre(3));
}

TEST_F(AuditFileTest, NoChangeIsMadeWhileAnEntryCannotBeWritten) {
  // The file's name leads to a disk that is full, and then to one that is not.
  fs::create_symlink(folder_.path() + "/good", path_);
  Open();
  ASSERT_TRUE(Publish().ok());
  fs::remove(path_);
  fs::create_symlink("/dev/full", path_);
  // This one is made: that it cannot be copied shows only then.
  EXPECT_TRUE(Publish().ok());
  const absl::Status refused = Publish();
  EXPECT_THAT(refused, testing::IsError(absl::StatusCode::kUnavailable, "AUDIT_LOG_NOT_WRITABLE",
                                        "audit_log", ::testing::HasSubstr("No space left")));
  EXPECT_FALSE(file_->writable());
  EXPECT_EQ(store_->ListVersions("letters", std::nullopt, 10)->size(), 2u);
  fs::remove(path_);
  fs::create_symlink(folder_.path() + "/good", path_);
  EXPECT_TRUE(Publish().ok());
  EXPECT_TRUE(file_->writable());
  EXPECT_THAT(NumbersIn(folder_.path() + "/good"), ::testing::ElementsAre(1, 2, 3));
}

TEST_F(AuditFileTest, AServerStartsWhileAnEntryCannotBeWritten) {
  fs::create_symlink(folder_.path() + "/good", path_);
  Open();
  ASSERT_TRUE(Publish().ok());
  Close();
  ASSERT_TRUE(Publish().ok());
  fs::remove(path_);
  fs::create_symlink("/dev/full", path_);
  Open();
  EXPECT_FALSE(file_->writable());
  EXPECT_THAT(Publish(), testing::IsError(absl::StatusCode::kUnavailable, "AUDIT_LOG_NOT_WRITABLE",
                                          "audit_log", ::testing::HasSubstr("No space left")));
  fs::remove(path_);
  fs::create_symlink(folder_.path() + "/good", path_);
  EXPECT_TRUE(Publish().ok());
  EXPECT_THAT(NumbersIn(folder_.path() + "/good"), ::testing::ElementsAre(1, 2, 3));
}

TEST_F(AuditFileTest, HalfALineThatACrashLeftIsWrittenAgain) {
  Open();
  ASSERT_TRUE(Publish().ok());
  ASSERT_TRUE(Publish().ok());
  Close();
  // The process ended in the middle of the second line, and before it noted how far it was.
  const std::string whole = LinesOf(path_)[0] + "\n";
  fs::resize_file(path_, whole.size() + 20);
  std::ofstream(path_ + ".position") << whole;
  Open();
  EXPECT_THAT(NumbersIn(path_), ::testing::ElementsAre(1, 2));
  Close();
  // It ended behind the line, and before it noted that.
  std::ofstream(path_ + ".position") << whole;
  Open();
  EXPECT_THAT(NumbersIn(path_), ::testing::ElementsAre(1, 2));
}

TEST_F(AuditFileTest, AfterARestoreWhatIsChangedSinceFollows) {
  Open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Publish().ok());
  Close();
  // Another store, with fewer entries, that was made afterwards.
  store_ = MustOpen(folder_.path() + "/restored", nullptr);
  ASSERT_TRUE(Publish().ok());
  Open();
  EXPECT_THAT(NumbersIn(path_), ::testing::ElementsAre(1, 2, 3, 1));
  ASSERT_TRUE(Publish().ok());
  EXPECT_THAT(NumbersIn(path_), ::testing::ElementsAre(1, 2, 3, 1, 2));
  Close();
  Open();
  EXPECT_THAT(NumbersIn(path_), ::testing::ElementsAre(1, 2, 3, 1, 2));
}

TEST_F(AuditFileTest, AnotherFileIsRefusedAndLeftAsItIs) {
  for (const std::string text : {"my notes", "my notes\n", "a\nb"}) {
    std::ofstream(path_) << text;
    EXPECT_THAT(AuditFile::Open(path_, *store_, logger_).status(),
                testing::IsError(absl::StatusCode::kFailedPrecondition, "AUDIT_LOG_NOT_WRITABLE",
                                 "audit_log", ::testing::HasSubstr("another file")));
    std::ifstream file(path_);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
  }
}

TEST_F(AuditFileTest, TwoServersDoNotWriteOneFile) {
  Open();
  EXPECT_THAT(AuditFile::Open(path_, *store_, logger_).status(),
              testing::IsError(absl::StatusCode::kUnavailable, "AUDIT_LOG_NOT_WRITABLE",
                               "audit_log", ::testing::HasSubstr("another server")));
}

TEST_F(AuditFileTest, NoChangeIsMadeWhileThePositionCannotBeWritten) {
  Open();
  ASSERT_TRUE(Publish().ok());
  fs::remove(path_ + ".position");
  fs::create_directory(path_ + ".position");
  EXPECT_TRUE(Publish().ok());
  EXPECT_FALSE(Publish().ok());
  EXPECT_FALSE(Publish().ok());
  fs::remove(path_ + ".position");
  EXPECT_TRUE(Publish().ok());
  EXPECT_THAT(NumbersIn(path_), ::testing::ElementsAre(1, 2, 3));
}

TEST_F(AuditFileTest, AServerDoesNotStartWithoutIt) {
  EXPECT_THAT(AuditFile::Open(folder_.path() + "/missing/audit.log", *store_, logger_).status(),
              testing::IsError(absl::StatusCode::kUnavailable, "AUDIT_LOG_NOT_WRITABLE",
                               "audit_log", ::testing::HasSubstr("No such file")));
}

}  // namespace
}  // namespace phimap
