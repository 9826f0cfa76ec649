// Tests kill -9 at random moments of builds, trainings, imports, moves of aliases and deletions, on
// both stores. After each kill, every acknowledged change must be there, and every other change
// must be there completely or not at all. The audit must have an entry of each change that is there
// and of no other, and so must its copy in a file.
//
// PHIMAP_TEST_KILLS is the number of kills (default 40).
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/cancel_token.h"
#include "gtest/gtest.h"
#include "tests/e2e/fleet.h"

namespace phimap::e2e {
namespace {

constexpr int kCrashWriters = 4;
constexpr int kImported = 6;

// The versions and aliases of a mapping. The digest of a version is empty until it is known.
struct MappingState {
  int64_t next_version = 1;
  std::map<int64_t, std::string> versions;
  std::map<std::string, int64_t> aliases;
};

bool SameState(const MappingState& expected, const MappingState& seen) {
  if (expected.aliases != seen.aliases || expected.versions.size() != seen.versions.size()) {
    return false;
  }
  for (const auto& [number, digest] : expected.versions) {
    const auto found = seen.versions.find(number);
    if (found == seen.versions.end() || (!digest.empty() && digest != found->second)) return false;
  }
  return true;
}

std::string ShowState(const MappingState& state) {
  std::string text;
  for (const auto& [number, digest] : state.versions) {
    absl::StrAppend(&text, number, "=", digest.substr(0, 6), " ");
  }
  for (const auto& [name, number] : state.aliases) absl::StrAppend(&text, "@", name, "=", number);
  return text;
}

MappingState ReadState(client::Client& client, const std::string& mapping) {
  MappingState state;
  const auto described = client.GetMapping(mapping);
  if (absl::IsNotFound(described.status())) return state;
  EXPECT_TRUE(described.ok()) << described.status();
  if (!described.ok()) return state;
  for (const v1::Alias& alias : described->aliases()) {
    state.aliases[alias.name()] = alias.version();
  }
  const auto versions = client.ListVersions(mapping).value();
  for (const v1::Version& version : versions) {
    state.versions[version.ref().number()] = version.ref().digest();
  }
  return state;
}

// Returns all entries of the audit, oldest first.
std::vector<v1::AuditEntry> ReadAudit(client::Client& client) {
  std::vector<v1::AuditEntry> entries;
  v1::ListAuditEntriesRequest request;
  request.set_page_size(1000);
  do {
    const auto page = client.ListAuditEntries(request);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) break;
    entries.insert(entries.end(), page->entries().begin(), page->entries().end());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  std::reverse(entries.begin(), entries.end());
  return entries;
}

// Returns what names mean after all changes of the audit, by mapping.
std::map<std::string, MappingState> StatesAfter(const std::vector<v1::AuditEntry>& entries) {
  std::map<std::string, MappingState> states;
  for (const v1::AuditEntry& entry : entries) {
    if (entry.outcome() != "OK") continue;
    MappingState& state = states[entry.mapping()];
    if (!entry.alias().empty()) {
      const auto alias = state.aliases.find(entry.alias());
      EXPECT_EQ(alias == state.aliases.end() ? 0 : alias->second, entry.previous_version());
      state.aliases[entry.alias()] = entry.version();
    } else if (entry.version() > 0) {
      EXPECT_TRUE(state.versions.emplace(entry.version(), entry.digest()).second);
    } else {
      EXPECT_EQ(state.versions.erase(entry.previous_version()), 1u) << entry.ShortDebugString();
    }
  }
  return states;
}

// Expects that the audit tells exactly the changes that led to what names mean now, and that the
// file has a line of each entry.
void CheckAudit(client::Client& client, const std::string& file) {
  const std::vector<v1::AuditEntry> entries = ReadAudit(client);
  for (const auto& [mapping, state] : StatesAfter(entries)) {
    const MappingState seen = ReadState(client, mapping);
    EXPECT_TRUE(SameState(state, seen))
        << mapping << ": seen " << ShowState(seen) << "; by the audit " << ShowState(state);
  }
  std::ifstream lines(file);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    EXPECT_TRUE(absl::StartsWith(line, absl::StrCat("{\"number\":", number, ","))) << line;
    EXPECT_TRUE(absl::EndsWith(line, "}")) << line;
  }
  EXPECT_EQ(number, static_cast<int64_t>(entries.size()));
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].number(), static_cast<int64_t>(i) + 1);
  }
}

struct ExportedArtifact {
  std::string digest;
  std::string bytes;
};

// Changes its own mapping until the server is gone. No other writer changes that mapping.
class CrashWriter {
 public:
  CrashWriter(std::string mapping, uint64_t seed, const std::vector<ExportedArtifact>& artifacts)
      : mapping_(std::move(mapping)), random_(seed), seed_(seed << 32), artifacts_(artifacts) {}

  void Start(const ServerProcess& server) {
    client_ = server.Connect({.max_attempts = 1});
    thread_ = std::thread([this] {
      while (ChangeSomething()) {
      }
    });
  }
  void Join() { thread_.join(); }

  // Compares the expected state with the state that the restarted server shows, and continues from
  // the state shown.
  void Check(client::Client& client) {
    MappingState seen = ReadState(client, mapping_);
    const bool before = SameState(state_, seen);
    const bool after = pending_.has_value() && SameState(*pending_, seen);
    EXPECT_TRUE(before || after) << mapping_ << ": seen " << ShowState(seen) << "; expected "
                                 << ShowState(state_)
                                 << (pending_.has_value() ? "; or " + ShowState(*pending_) : "");
    if (!before && after) {
      ++made_without_answer_;
      seen.next_version = pending_->next_version;
      ExpectWhole(client, state_, seen);
    } else {
      seen.next_version = state_.next_version;
    }
    state_ = std::move(seen);
    pending_.reset();
  }
  // Expects that every version can map a row. This shows that its artifact is complete, because a
  // server checks the digest of each artifact that it reads.
  void ExpectWhole(client::Client& client) const { ExpectWhole(client, {}, state_); }

  int64_t acknowledged() const { return acknowledged_; }
  int64_t made_without_answer() const { return made_without_answer_; }

 private:
  // Checks only the versions that are not in `before`.
  void ExpectWhole(client::Client& client, const MappingState& before,
                   const MappingState& state) const {
    for (const auto& [number, digest] : state.versions) {
      if (before.versions.contains(number)) continue;
      const std::string reference = absl::StrCat(mapping_, "@", number);
      const auto mapped = client.Transform(reference, FleetRow(), {.expected_digest = digest});
      EXPECT_TRUE(mapped.ok()) << reference << ": " << mapped.status();
      const auto version = client.GetVersion(reference);
      ASSERT_TRUE(version.ok()) << reference << ": " << version.status();
      if (!version->has_head()) continue;
      const auto predicted = client.Predict(reference, FleetRow(), {.wanted = {.scores = true}});
      EXPECT_TRUE(predicted.ok()) << reference << ": " << predicted.status();
    }
  }

  // Makes a random change. Returns false when the server is gone.
  bool ChangeSomething() {
    const uint64_t choice = random_() % 100;
    MappingState after = state_;
    if (choice < 25 && !state_.versions.empty()) return MoveAlias(after);
    if (choice < 45) return Delete(after);
    if (choice < 65) return Import(after);
    if (choice < 80) return Train(after);
    return Build(after);
  }

  // Records a change that leads to the state `after`. `made` is the server's answer.
  bool Note(const absl::Status& made, MappingState after) {
    if (made.ok()) {
      ++acknowledged_;
      state_ = std::move(after);
      return true;
    }
    EXPECT_TRUE(absl::IsUnavailable(made) || absl::IsUnknown(made) || absl::IsCancelled(made))
        << mapping_ << ": " << made;
    pending_ = std::move(after);
    return false;
  }

  bool Build(MappingState& after) {
    GeneratedRows rows(200, kFleetColumns, ++seed_);
    const auto version = client_->Build({.name = mapping_,
                                         .spec = "f2(landmarks=20)",
                                         .kernel = "rbf(gamma=scale)",
                                         .seed = seed_,
                                         .timeout = absl::Seconds(20)},
                                        rows);
    const int64_t number = after.next_version++;
    after.versions[number] = version.ok() ? version->ref().digest() : "";
    if (version.ok()) {
      EXPECT_EQ(version->ref().number(), number);
    }
    return Note(version.status(), std::move(after));
  }

  // Trains a head on a version, or on features of the same rows.
  bool Train(MappingState& after) {
    LabeledGeneratedRows rows(300, kFleetColumns, ++seed_);
    client::TrainOptions options{.seed = seed_, .timeout = absl::Seconds(20)};
    if (after.versions.empty() || seed_ % 2 == 0) {
      options.build = client::TrainedFeatures{
          .name = mapping_, .spec = "f2(landmarks=20)", .kernel = "rbf(gamma=scale)"};
    } else {
      options.reference = absl::StrCat(mapping_, "@", after.versions.rbegin()->first);
    }
    const auto version = client_->Train(options, rows);
    const int64_t number = after.next_version++;
    after.versions[number] = version.ok() ? version->ref().digest() : "";
    if (version.ok()) {
      EXPECT_EQ(version->ref().number(), number);
      EXPECT_TRUE(version->has_head());
    }
    return Note(version.status(), std::move(after));
  }

  bool Import(MappingState& after) {
    const ExportedArtifact& artifact = artifacts_[random_() % artifacts_.size()];
    for (const auto& [number, digest] : after.versions) {
      if (digest == artifact.digest) return true;  // the import would change nothing
    }
    size_t sent = 0;
    const auto version = client_->Import(mapping_, [&](size_t most) -> absl::StatusOr<std::string> {
      std::string part = artifact.bytes.substr(sent, most);
      sent += part.size();
      return part;
    });
    const int64_t number = after.next_version++;
    after.versions[number] = artifact.digest;
    if (version.ok()) {
      EXPECT_EQ(version->ref().number(), number);
    }
    return Note(version.status(), std::move(after));
  }

  bool MoveAlias(MappingState& after) {
    auto version = after.versions.begin();
    std::advance(version, random_() % after.versions.size());
    after.aliases["prod"] = version->first;
    return Note(client_->SetAlias(absl::StrCat(mapping_, "@", version->first), "prod").status(),
                std::move(after));
  }

  bool Delete(MappingState& after) {
    for (const auto& [number, digest] : state_.versions) {
      if (!after.aliases.empty() && after.aliases["prod"] == number) continue;
      after.versions.erase(number);
      return Note(
          client_->DeleteVersion(absl::StrCat(mapping_, "@", number), /*give_up_rollback=*/true),
          std::move(after));
    }
    return true;
  }

  const std::string mapping_;
  std::mt19937_64 random_;
  uint64_t seed_;
  const std::vector<ExportedArtifact>& artifacts_;
  std::unique_ptr<client::Client> client_;
  std::thread thread_;
  // state_ is the acknowledged state. pending_ is the state if the interrupted call took effect.
  MappingState state_;
  std::optional<MappingState> pending_;
  int64_t acknowledged_ = 0;
  int64_t made_without_answer_ = 0;
};

std::vector<ExportedArtifact> BuildAndExport(client::Client& client) {
  std::vector<ExportedArtifact> artifacts;
  BuildVersions(client, "source", kImported);
  for (int i = 1; i <= kImported; ++i) {
    ExportedArtifact artifact;
    const auto exported =
        client.Export(absl::StrCat("source@", i), [&](absl::string_view bytes) -> absl::Status {
          absl::StrAppend(&artifact.bytes, bytes);
          return absl::OkStatus();
        });
    EXPECT_TRUE(exported.ok()) << exported.status();
    if (exported.ok()) artifact.digest = exported->version.digest();
    artifacts.push_back(std::move(artifact));
  }
  return artifacts;
}

int Kills() {
  const char* const text = std::getenv("PHIMAP_TEST_KILLS");
  int kills = 40;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &kills)) << text;
  }
  return kills;
}

using StartServer = std::function<std::unique_ptr<ServerProcess>()>;

void KillAgainAndAgain(const StartServer& start, const std::string& audit_log) {
  std::mt19937_64 random(20061);  // chooses the moments of the kills
  auto server = start();
  const std::vector<ExportedArtifact> artifacts = BuildAndExport(*server->Connect());
  std::vector<std::unique_ptr<CrashWriter>> writers;
  for (int i = 0; i < kCrashWriters; ++i) {
    writers.push_back(std::make_unique<CrashWriter>(absl::StrCat("m", i), i + 1, artifacts));
  }
  uint64_t moments_us = 120'000;
  int64_t acknowledged = 0;
  const int kills = Kills();
  for (int kill = 1; kill <= kills && !::testing::Test::HasFailure(); ++kill) {
    SCOPED_TRACE(kill);
    for (auto& writer : writers) writer->Start(*server);
    // The kill comes at a random moment, before the first change or after several changes.
    client::CancelToken().WaitFor(absl::Microseconds(random() % moments_us));
    server->process().Signal(SIGKILL);
    server->process().Wait();
    for (auto& writer : writers) writer->Join();
    server = start();
    const auto client = server->Connect();
    acknowledged = 0;
    for (auto& writer : writers) {
      writer->Check(*client);
      acknowledged += writer->acknowledged();
    }
    CheckAudit(*client, audit_log);
    // On a slow machine, the time before a kill grows, so that some changes end before it.
    if (acknowledged < 10 * kill && moments_us < 3'000'000) moments_us += moments_us / 4;
  }
  int64_t without_answer = 0;
  for (auto& writer : writers) {
    writer->ExpectWhole(*server->Connect());
    without_answer += writer->made_without_answer();
  }
  EXPECT_GE(acknowledged, kills) << "too few changes ended before the kills, so little was tested";
  std::cout << acknowledged << " changes acknowledged, " << without_answer
            << " made without an answer, " << kills << " kills\n";
}

TEST(CrashTest, SqliteAndFilesKeepWhatWasAcknowledged) {
  TemporaryFolder folder;
  const std::string audit_log = folder.path() + "/audit.log";
  KillAgainAndAgain(
      [&] {
        return std::make_unique<ServerProcess>(
            folder.path() + "/data", std::vector<std::string>{"--audit_log=" + audit_log});
      },
      audit_log);
}

TEST(CrashTest, PostgresKeepsWhatWasAcknowledged) {
  Fleet fleet(phimap::testing::PostgresServer::Shared());
  TemporaryFolder folder;
  const std::string audit_log = folder.path() + "/audit.log";
  KillAgainAndAgain([&] { return fleet.Start("one", {"--audit_log=" + audit_log}); }, audit_log);
}

}  // namespace
}  // namespace phimap::e2e
