// Tests a store on a real file system that is full to the last byte.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "tests/server/store/sqlite/store_fixture.h"

namespace phimap::testing {
namespace {

constexpr int kCannotMount = 50;

// Writes until the file system does not accept even one more byte.
void FillUp(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  const std::string bytes(4096, 'x');
  for (size_t size = bytes.size(); size > 0; size /= 2) {
    while (write(file, bytes.data(), size) > 0) {
    }
  }
  close(file);
}

bool IsDiskFull(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail.has_value() && detail->reason == "DISK_FULL";
}

// Runs in a separate process with its own small file system. Returns 0, or a number that identifies
// the check that failed.
int PublishUntilFullThenDelete(const std::string& folder, int64_t reserve_bytes) {
  // Root may mount directly. Any other user must first become root in a new user namespace.
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return kCannotMount;
  mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=12m") != 0) return kCannotMount;
  SqliteStoreOptions options = OptionsFor(folder + "/data", nullptr);
  options.reserve_bytes = reserve_bytes;
  const auto opened = SqliteStore::Open(options, PosixFileSystem());
  if (!opened.ok()) return 1;
  SqliteStore& store = **opened;
  store.MakeReserve();
  absl::Status published;
  int64_t versions = 0;
  for (; published.ok(); ++versions) {
    const std::string artifact(size_t{1} << 20, static_cast<char>('a' + versions));
    const std::string build_id = absl::StrCat("build-", versions);
    published = store.Publish(RequestFor(build_id), artifact).status();
  }
  --versions;
  if (versions < 3 || !IsDiskFull(published)) return 2;
  FillUp(folder + "/fill");
  // A transaction without an artifact finds no space, either. It fails with DISK_FULL, not with
  // COMMIT_IN_DOUBT.
  if (!IsDiskFull(store.SetAlias("letters", "prod", 1, "").status())) return 3;
  if (store.GetAliasedVersion("letters", "prod").ok()) return 4;
  const absl::Status deleted = store.DeleteVersion("letters", 2);
  if (reserve_bytes == 0) return IsDiskFull(deleted) ? 0 : 5;
  if (!deleted.ok()) return 6;
  // The deletion has freed the deleted version's megabyte.
  if (!store.SetAlias("letters", "prod", 1, "").ok()) return 7;
  if (store.GetVersion("letters", 2).ok()) return 8;
  if (static_cast<int64_t>(BlobsIn(folder + "/data").size()) != versions - 1) return 9;
  return 0;
}

class FullDiskTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(FullDiskTest, CanBeFreedByDeletingIfThereIsAReserve) {
  TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) _exit(PublishUntilFullThenDelete(directory.path(), GetParam()));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kCannotMount) GTEST_SKIP() << "this user cannot mount a file system";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(Reserve, FullDiskTest, ::testing::Values(0, int64_t{1} << 20));

}  // namespace
}  // namespace phimap::testing
