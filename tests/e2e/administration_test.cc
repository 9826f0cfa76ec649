// Tests that clients that ask for large versions neither delay changes of aliases nor cause high
// memory use.
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/server_process.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

constexpr int kReaders = 60;
constexpr int64_t kArtifactBytes = int64_t{96} << 20;

class AdministrationTest : public ::testing::Test {
 protected:
  // Creates versions. They are not live in the test's server, because another server has built them
  // and stopped.
  AdministrationTest() {
    ServerProcess server(folder_.path());
    Build(server, "large", 8192, 3072);
    Build(server, "small", 4, 2);
  }

  static void Build(const ServerProcess& server, const std::string& mapping, int32_t columns,
                    int dimensions) {
    GeneratedRows rows(40, columns, 1);
    const auto version =
        server.Connect()
            ->Build({.name = mapping,
                     .spec = absl::StrCat("random_projection(dimensions=", dimensions, ")"),
                     .kernel = "linear()"},
                    rows)
            .value();
    if (mapping == "large") {
      EXPECT_GE(version.artifact_size_bytes(), kArtifactBytes);
    }
  }

  TemporaryFolder folder_;
};

// Returns how many calls of GetVersion have begun on the server, or -1 before the first.
double Begun(const ServerProcess& server) {
  const std::string text = HttpGet(server.http_address(), "/metrics");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    double count = 0;
    if (absl::StartsWith(line, "grpc_server_started_total{") &&
        absl::StrContains(line, "grpc_method=\"GetVersion\"") &&
        absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &count)) {
      return count;
    }
  }
  return -1;
}

TEST_F(AdministrationTest, ReadersOfLargeColdVersionsHoldUpNoAliasAndTakeLittleMemory) {
  ServerProcess server(folder_.path());
  const int64_t before = server.PeakMemoryBytes();
  std::vector<std::thread> readers;
  std::vector<absl::Status> answers(kReaders);
  readers.reserve(kReaders);
  for (absl::Status& answer : answers) {
    readers.emplace_back([&] { answer = server.Connect()->GetVersion("large@1").status(); });
  }
  while (Begun(server) < kReaders / 2) {
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto moved = server.Connect()->SetAlias("small@1", "prod").value();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 1);
  for (std::thread& reader : readers) reader.join();
  EXPECT_THAT(answers, Each(absl::OkStatus()));
  const int64_t grown = server.PeakMemoryBytes() - before;
  std::cout << "SetAlias took " << took.count() << " s; the peak grew by "
            << static_cast<double>(grown) / (1 << 20) << " MiB\n";
  // Even so many readers must cost less memory than half of one artifact.
  EXPECT_LT(grown, kArtifactBytes / 2);
}

}  // namespace
}  // namespace phimap::e2e
