// Tests `phimap health`, which container health checks run.
#include <signal.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

// An answer takes a millisecond. The timeout is much longer because the machine may be busy.
ProcessResult Health(const std::string& target, const std::string& service = "") {
  std::vector<std::string> arguments = {PHIMAP_BINARY, "--server=" + target, "health",
                                        "--timeout=60"};
  if (!service.empty()) arguments.push_back(service);
  return RunProcess(arguments);
}

TEST(HealthTest, AServerServesAsAWholeAndWithEachService) {
  TemporaryFolder folder;
  ServerProcess server(folder.path());
  for (const char* service : {"", "phimap.v1.MappingService", "phimap.v1.TransformService",
                              "phimap.v1.LearningService"}) {
    SCOPED_TRACE(service);
    const ProcessResult health = Health(server.address(), service);
    EXPECT_EQ(health.exit_code, 0) << health.err;
    EXPECT_EQ(health.out, "serving\n");
  }
}

TEST(HealthTest, AUnixSocketIsAskedToo) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/socket";
  ServerProcess server(folder.path() + "/data", {"--unix_listen=" + path});
  const ProcessResult health = Health("unix:" + path);
  EXPECT_EQ(health.exit_code, 0) << health.err;
}

TEST(HealthTest, AnUnknownServiceAndAStoppedServerHaveCodesOfTheirOwn) {
  TemporaryFolder folder;
  ServerProcess server(folder.path());
  const ProcessResult unknown = Health(server.address(), "phimap.v1.NoService");
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("the server has no service 'phimap.v1.NoService'"));
  server.process().Signal(SIGTERM);
  server.process().Wait();
  const ProcessResult stopped = Health(server.address());
  EXPECT_EQ(stopped.exit_code, 4);
  EXPECT_THAT(stopped.err, HasSubstr("no server answers at " + server.address()));
  EXPECT_EQ(stopped.out, "");
}

}  // namespace
}  // namespace phimap::e2e
