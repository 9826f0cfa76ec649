// kill -9 at 100 random moments of building and publishing.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/cancel_token.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"

namespace phimap::e2e {
namespace {

constexpr int kKills = 100;
constexpr int kCrashColumns = 4;

// A build that the client started: what it was told about it.
struct Attempt {
  std::string mapping;
  std::string build_id;
  // Set when the answer came: number and digest.
  int64_t version = 0;
  std::string digest;
};

// Builds one version after the other until the server is gone.
class Builder {
 public:
  Builder(const ServerProcess& server, std::string mapping, uint64_t first_seed)
      : client_(server.Connect({.max_attempts = 1})),
        mapping_(std::move(mapping)),
        seed_(first_seed) {
    thread_ = std::thread([this] { Run(); });
  }
  std::vector<Attempt> Join() {
    thread_.join();
    return attempts_;
  }

 private:
  void Run() {
    for (;;) {
      ++seed_;
      Attempt attempt{
          .mapping = mapping_,
          .build_id = absl::StrCat("00000000-0000-4000-8000-", absl::Dec(seed_, absl::kZeroPad12))};
      GeneratedRows rows(200, kCrashColumns, seed_);
      const absl::StatusOr<v1::Version> version =
          client_->Build({.mapping = mapping_,
                          .mapping_text = "f2(landmarks=20)",
                          .kernel_text = "rbf(gamma=scale)",
                          .seed = seed_,
                          .build_id = attempt.build_id,
                          .timeout = absl::Seconds(5)},
                         rows);
      if (version.ok()) {
        attempt.version = version->ref().number();
        attempt.digest = version->ref().digest();
      }
      attempts_.push_back(attempt);
      if (!version.ok()) return;
    }
  }

  std::unique_ptr<client::Client> client_;
  const std::string mapping_;
  uint64_t seed_;
  std::vector<Attempt> attempts_;
  std::thread thread_;
};

using Versions = std::map<std::pair<std::string, int64_t>, std::string>;  // (name, number) → digest

Versions VisibleVersions(client::Client& client) {
  Versions visible;
  const auto mappings = client.ListMappings();
  EXPECT_TRUE(mappings.ok()) << mappings.status();
  if (!mappings.ok()) return visible;
  for (const v1::Mapping& mapping : *mappings) {
    const auto versions = client.ListVersions(mapping.name());
    EXPECT_TRUE(versions.ok()) << versions.status();
    if (!versions.ok()) continue;
    for (const v1::Version& version : *versions) {
      visible[{mapping.name(), version.ref().number()}] = version.ref().digest();
    }
  }
  return visible;
}

// Every version answers with features, so its artifact is whole: its digest was checked on reading.
void ExpectIntact(client::Client& client, const Versions& versions) {
  const std::vector<float> row(kCrashColumns, 0.25f);
  for (const auto& [key, digest] : versions) {
    const auto result = client.Transform(
        absl::StrCat(key.first, "@", key.second),
        client::MakeRowBlock(absl::MakeConstSpan(row), kCrashColumns), {.expected_digest = digest});
    EXPECT_TRUE(result.ok()) << key.first << "@" << key.second << ": " << result.status();
  }
}

std::set<std::string> FilesUnder(const std::string& folder) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.insert(entry.path().filename().string());
  }
  return files;
}

// Only what a version names is on disk.
void ExpectClean(const std::string& data_dir, const Versions& visible) {
  std::set<std::string> expected = {"STORE"};
  for (const auto& [key, digest] : visible) expected.insert(digest);
  EXPECT_EQ(FilesUnder(data_dir + "/blobs"), expected);
  EXPECT_EQ(FilesUnder(data_dir + "/tmp"), std::set<std::string>{});
}

TEST(CrashTest, EveryAnsweredVersionSurvivesAHundredKillsAndNothingElseAppears) {
  TemporaryFolder folder;
  std::mt19937_64 random(20061);  // of the moments only; what is built has its own seeds
  Versions answered;
  Versions known;  // answered, or whole though the answer was cut off
  int cut_off = 0;
  uint64_t seed = 0;
  uint64_t moments_us = 120'000;
  for (int kill = 0; kill <= kKills; ++kill) {
    SCOPED_TRACE(kill);
    ServerProcess server(folder.path());
    const auto client = server.Connect();
    const Versions visible = VisibleVersions(*client);
    for (const auto& [key, digest] : answered) {
      const auto found = visible.find(key);
      ASSERT_TRUE(found != visible.end()) << key.first << "@" << key.second << " is lost";
      EXPECT_EQ(found->second, digest);
    }
    EXPECT_EQ(visible.size(), known.size());
    ExpectClean(folder.path(), visible);
    if (kill == kKills) {
      ExpectIntact(*client, visible);
      break;
    }
    Builder a(server, "a", seed);
    Builder b(server, "b", seed + 500'000);
    seed += 1000;
    // A moment of the run, not a wait for something: from before the first build to after several.
    client::CancelToken().WaitFor(absl::Microseconds(random() % moments_us));
    server.process().Signal(SIGKILL);
    server.process().Wait();
    std::vector<Attempt> attempts = a.Join();
    for (const Attempt& attempt : b.Join()) attempts.push_back(attempt);

    // What the crash left is looked at through the next server.
    ServerProcess next(folder.path());
    const auto next_client = next.Connect();
    const Versions after = VisibleVersions(*next_client);
    for (const Attempt& attempt : attempts) {
      if (attempt.version > 0) {
        answered[{attempt.mapping, attempt.version}] = attempt.digest;
        continue;
      }
      // No answer came. Either nothing of it is there, or all of it: the crash fell between commit
      // and answer.
      const auto build = next_client->GetBuild(attempt.mapping, attempt.build_id);
      if (!build.ok()) {
        EXPECT_EQ(build.status().code(), absl::StatusCode::kNotFound) << build.status();
        continue;
      }
      ASSERT_EQ(build->state(), v1::BuildJob::DONE);
      const auto key = std::make_pair(attempt.mapping, build->version().number());
      ASSERT_TRUE(after.count(key));
      EXPECT_EQ(after.at(key), build->version().digest());
      ExpectIntact(*next_client, {{key, after.at(key)}});
      known[key] = after.at(key);
      ++cut_off;
    }
    for (const auto& [key, digest] : answered) known[key] = digest;
    EXPECT_EQ(after, known);
    // A slow machine gets more time, so that some builds end before the kill there too.
    if (answered.size() < 2 * static_cast<size_t>(kill) && moments_us < 3'000'000) {
      moments_us += moments_us / 4;
    }
  }
  EXPECT_GE(answered.size(), 100u) << "the kills left no time to publish: nothing was tested";
  std::cout << answered.size() << " versions answered, " << cut_off
            << " whole without their answer\n";
}

}  // namespace
}  // namespace phimap::e2e
