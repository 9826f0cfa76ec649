#include <sys/stat.h>

#include <fstream>

#include "server/store/postgres/postgres_uri.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(PassFileTest, AFileThatLibpqIgnoresIsNamedWithTheCause) {
  const TemporaryFolder directory;
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
}  // namespace phimap::testing
