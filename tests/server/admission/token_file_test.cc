#include "server/admission/token_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr char kOld[] = "old-token-0123456789";
constexpr char kNew[] = "new-token-0123456789";

std::optional<Role> RoleOf(const TokenFile& file, absl::string_view token) {
  const PrincipalPointer principal = file.table()->Find(token);
  return principal == nullptr ? std::nullopt : std::optional<Role>(principal->role);
}

class TokenFileTest : public ::testing::Test {
 protected:
  // Replaces the token file by renaming a new file over it. A reader therefore sees all of the old
  // file or all of the new one.
  void Replace(const std::string& text, mode_t mode = 0600) {
    const std::string fresh = absl::StrCat(path_, ".new");
    std::ofstream(fresh) << text;
    ASSERT_EQ(chmod(fresh.c_str(), mode), 0);
    std::filesystem::rename(fresh, path_);
  }
  std::string Log() {
    MutexLock lock(&mutex_);
    return log_;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/tokens";
  Mutex mutex_;
  std::string log_ ABSL_GUARDED_BY(mutex_);
  const Logger logger_{LogLevel::kDebug, [this](absl::string_view line) {
                         MutexLock lock(&mutex_);
                         absl::StrAppend(&log_, line);
                       }};
};

TEST_F(TokenFileTest, AChangedFileIsReadAgain) {
  Replace(absl::StrCat("reader ", kOld));
  const auto file = TokenFile::Open(path_, logger_).value();
  EXPECT_EQ(RoleOf(*file, kOld), Role::kReader);
  Replace(absl::StrCat("admin ", kNew));
  file->Refresh();
  EXPECT_EQ(RoleOf(*file, kNew), Role::kAdmin);
  EXPECT_EQ(RoleOf(*file, kOld), std::nullopt);
}

TEST_F(TokenFileTest, AChangeIsSeenWithoutBeingAskedFor) {
  Replace(absl::StrCat("reader ", kOld));
  const auto file = TokenFile::Open(path_, logger_).value();
  Replace(absl::StrCat("admin ", kNew));
  while (RoleOf(*file, kNew) != Role::kAdmin) std::this_thread::yield();
}

TEST_F(TokenFileTest, AWrongFileChangesNothingAndTheLogSaysWhyWithoutAToken) {
  Replace(absl::StrCat("reader ", kOld));
  const auto file = TokenFile::Open(path_, logger_).value();
  const struct {
    std::string text;
    mode_t mode;
    const char* says;
  } cases[] = {
      {absl::StrCat("writer ", kNew), 0600, "line 1"},
      {"", 0600, "no token"},
      {absl::StrCat("admin ", kNew), 0604, "chmod o-r"},
      {absl::StrCat("admin ", kNew), 0602, "chmod o-w"},
      {std::string(5 << 20, '#'), 0600, "4194304 bytes"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.says);
    Replace(c.text, c.mode);
    file->Refresh();
    EXPECT_EQ(RoleOf(*file, kOld), Role::kReader);
    EXPECT_EQ(RoleOf(*file, kNew), std::nullopt);
    EXPECT_THAT(Log(), HasSubstr(c.says));
  }
  std::filesystem::remove(path_);
  file->Refresh();
  EXPECT_EQ(RoleOf(*file, kOld), Role::kReader);
  EXPECT_THAT(Log(), HasSubstr("No such file"));
  EXPECT_THAT(Log(), Not(HasSubstr("-0123456789")));
  // Once the file is valid again, Refresh reads it again.
  Replace(absl::StrCat("admin ", kNew));
  file->Refresh();
  EXPECT_EQ(RoleOf(*file, kNew), Role::kAdmin);
}

TEST_F(TokenFileTest, ATokenThatIsTakenOutIsRevoked) {
  Replace(absl::StrCat("reader ", kOld, "\nadmin ", kNew));
  const auto file = TokenFile::Open(path_, logger_).value();
  const PrincipalPointer old = file->table()->Find(kOld);
  const PrincipalPointer stays = file->table()->Find(kNew);
  Replace("wrong");
  file->Refresh();
  EXPECT_TRUE(old->Check().ok());
  Replace(absl::StrCat("# less\nadmin ", kNew));
  file->Refresh();
  EXPECT_THAT(old->Check(), IsError(StatusCode::kUnauthenticated, "TOKEN_REVOKED"));
  EXPECT_TRUE(stays->Check().ok());
  EXPECT_EQ(file->table()->Find(kNew), stays);
}

TEST_F(TokenFileTest, AWrongFileIsLoggedOnce) {
  Replace(absl::StrCat("reader ", kOld));
  const auto file = TokenFile::Open(path_, logger_).value();
  Replace("wrong");
  file->Refresh();
  const std::string log = Log();
  file->Refresh();
  EXPECT_EQ(Log(), log);
}

TEST_F(TokenFileTest, DigestsMayBeReadByOthersButNotWritten) {
  const std::string digests = absl::StrCat("admin sha256:", std::string(64, 'a'));
  Replace(digests, 0644);
  EXPECT_TRUE(TokenFile::Open(path_, logger_).ok());
  Replace(digests, 0646);
  EXPECT_EQ(TokenFile::Open(path_, logger_).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(TokenFileTest, WhatIsNoFileIsRefusedWithItsPath) {
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {folder_.path(), pipe, folder_.path() + "/missing"}) {
    const auto file = TokenFile::Open(path, logger_);
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(path));
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("token_file"));
  }
}

}  // namespace
}  // namespace phimap::testing
