#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/store/files/file_system.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class PosixFileSystemTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }

  TemporaryDirectory directory_;
  FileSystem* const file_system_ = PosixFileSystem();
};

TEST_F(PosixFileSystemTest, WhatIsAppendedIsReadBack) {
  std::unique_ptr<WritableFile> file = file_system_->NewWritableFile(Path("a")).value();
  EXPECT_TRUE(file->Append("hello ").ok());
  EXPECT_TRUE(file->Append(std::string("wor\0ld", 6)).ok());
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_TRUE(file->Close().ok());
  EXPECT_EQ(*file_system_->ReadFile(Path("a"), 12), std::string("hello wor\0ld", 12));
  EXPECT_EQ(*file_system_->SizeBytes(Path("a")), 12);
  EXPECT_TRUE(absl::IsOutOfRange(file_system_->ReadFile(Path("a"), 11).status()));
}

TEST_F(PosixFileSystemTest, ANewFileReplacesNothing) {
  WriteWhole(Path("a"), "old");
  EXPECT_TRUE(absl::IsAlreadyExists(file_system_->NewWritableFile(Path("a")).status()));
  EXPECT_EQ(ReadWhole(Path("a")), "old");
}

TEST_F(PosixFileSystemTest, RenameReplacesAndListIsSorted) {
  WriteWhole(Path("b"), "new");
  WriteWhole(Path("a"), "old");
  EXPECT_THAT(*file_system_->List(directory_.path()), ElementsAre("a", "b"));
  EXPECT_TRUE(file_system_->Rename(Path("b"), Path("a")).ok());
  EXPECT_TRUE(file_system_->SyncDir(directory_.path()).ok());
  EXPECT_EQ(ReadWhole(Path("a")), "new");
  EXPECT_TRUE(file_system_->Remove(Path("a")).ok());
  EXPECT_TRUE(absl::IsNotFound(file_system_->Remove(Path("a"))));
}

TEST_F(PosixFileSystemTest, ADirectoryMayExistButAFileInItsPlaceIsAnError) {
  EXPECT_TRUE(file_system_->CreateDir(Path("d")).ok());
  EXPECT_TRUE(file_system_->CreateDir(Path("d")).ok());
  WriteWhole(Path("f"), "");
  EXPECT_TRUE(absl::IsFailedPrecondition(file_system_->CreateDir(Path("f"))));
  EXPECT_TRUE(absl::IsNotFound(file_system_->CreateDir(Path("missing/d"))));
}

TEST_F(PosixFileSystemTest, ASecondLockIsRefusedNamingTheHolderUntilTheFirstIsGone) {
  std::unique_ptr<FileLock> first = file_system_->Lock(Path("lock")).value();
  const absl::Status second = file_system_->Lock(Path("lock")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second));
  EXPECT_THAT(std::string(second.message()), HasSubstr(absl::StrCat("process ", getpid())));
  EXPECT_EQ(ReasonOf(second), "DIRECTORY_LOCKED");
  first.reset();
  EXPECT_TRUE(file_system_->Lock(Path("lock")).ok());
}

// If a file's size is limited, the operating system first writes fewer bytes than requested, and
// then refuses to write, just as with a full disk.
TEST_F(PosixFileSystemTest, AShortWriteIsContinuedAndEndsInResourceExhausted) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto file = file_system_->NewWritableFile(Path("a"));
    const absl::Status status = (*file)->Append(std::string(1500, 'x'));
    _exit(absl::IsResourceExhausted(status) && *file_system_->SizeBytes(Path("a")) == 1000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(FileErrorTest, EveryErrnoHasACodeAReasonAndNamesThePath) {
  const struct {
    int error_number;
    StatusCode code;
    const char* reason;
  } kCases[] = {
      {ENOENT, StatusCode::kNotFound, "FILE_NOT_FOUND"},
      {EEXIST, StatusCode::kAlreadyExists, "FILE_EXISTS"},
      {ENOSPC, StatusCode::kResourceExhausted, "DISK_FULL"},
      {EDQUOT, StatusCode::kResourceExhausted, "DISK_FULL"},
      {EFBIG, StatusCode::kResourceExhausted, "DISK_FULL"},
      {EMFILE, StatusCode::kResourceExhausted, "OPEN_FILE_LIMIT_REACHED"},
      {EROFS, StatusCode::kFailedPrecondition, "FILE_SYSTEM_READ_ONLY"},
      {EACCES, StatusCode::kFailedPrecondition, "FILE_PERMISSION_DENIED"},
      {ENOTDIR, StatusCode::kFailedPrecondition, "PATH_INVALID"},
      {EIO, StatusCode::kUnavailable, "FILE_IO_FAILED"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.error_number);
    EXPECT_THAT(FileError(test.error_number, "write", "/data/x"),
                IsError(test.code, test.reason, _, HasSubstr("cannot write /data/x: ")));
  }
}

}  // namespace
}  // namespace phimap::testing
