#include <sys/stat.h>

#include <fstream>

#include "gmock/gmock.h"
#include "server/postgres/postgres_uri.h"
#include "tests/server/support/temporary_folder.h"

namespace phimap {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PassFileTest, AFileThatLibpqIgnoresIsNamedWithTheCause) {
  const testing::TemporaryFolder directory;
  const std::string path = directory.path() + "/pgpass";
  EXPECT_THAT(PassFileProblem(path), HasSubstr(path + ": No such file"));
  std::ofstream(path) << "*:*:*:*:secret\n";
  chmod(path.c_str(), 0640);
  EXPECT_THAT(PassFileProblem(path), HasSubstr(path + " has mode 0640"));
  chmod(path.c_str(), 0600);
  EXPECT_THAT(PassFileProblem(path), IsEmpty());
  EXPECT_THAT(PassFileProblem(directory.path()), HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace phimap
