// Tests four writers and four readers of one alias, on two servers that are killed repeatedly. The
// recorded history must be linearizable.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "phimap/v1/transform_service.grpc.pb.h"
#include "tests/e2e/fleet.h"
#include "tests/e2e/fleet_clients.h"
#include "tests/e2e/history.h"

namespace phimap::e2e {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRegisterServers = 2;
constexpr int kRegisterWriters = 4;
constexpr int kRegisterReaders = 4;
// The alias is moved to each version at most once, which makes it simple to check the history.
constexpr int kRegisterVersions = 200;

class LinearizableTest : public ::testing::Test {
 protected:
  LinearizableTest() {
    for (int i = 0; i < kRegisterServers; ++i) {
      servers_.push_back(fleet_.Start(absl::StrCat(i), {"--log_level=error"}));
      addresses_.push_back(servers_[i]->address());
    }
    BuildVersions(*servers_[0]->Connect(), "letters", kRegisterVersions);
    EXPECT_TRUE(servers_[0]->Connect()->SetAlias("letters@1", "prod", "none").ok());
    EXPECT_EQ(Answering(*servers_[1]->Connect(), "letters@prod"), 1);
  }

  Instant Now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(3));
  }

  // Moves another alias, so that there is a first revision to require.
  void MakeFirstRevision() {
    grpc::ClientContext context;
    v1::SetAliasRequest request;
    request.set_reference("letters@1");
    request.set_alias("other");
    v1::Alias alias;
    const auto stub = v1::MappingService::NewStub(ChannelTo(addresses_[0]));
    EXPECT_TRUE(stub->SetAlias(&context, request, &alias).ok());
    EXPECT_TRUE(newest_.Note(context));
  }

  // Moves the alias repeatedly, each time to a version to which it has not pointed before.
  void WriteOnEnd(int writer) {
    const auto channel = ChannelTo(addresses_[writer % kRegisterServers]);
    const auto stub = v1::MappingService::NewStub(channel);
    while (!stop_) {
      // The writer waits until the server is back. Otherwise it would use up the limited number of
      // versions on a server that does not answer.
      channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30));
      const int64_t value = next_value_++;
      if (value > kRegisterVersions) return;
      grpc::ClientContext context;
      SetDeadline(context);
      v1::SetAliasRequest request;
      request.set_reference(absl::StrCat("letters@", value));
      request.set_alias("prod");
      v1::Alias alias;
      Write write{.value = value, .begin = Now()};
      const grpc::Status status = stub->SetAlias(&context, request, &alias);
      // Whoever begins later requires the revision.
      if (status.ok() && newest_.Note(context)) write.end = Now();
      const std::lock_guard<std::mutex> lock(mutex_);
      writes_.push_back(write);
    }
  }
  // Reads on one server. With `with_revision`, each read requires the newest revision of all
  // earlier answers.
  void ReadOnEnd(int reader, bool with_revision) {
    const int server = reader % kRegisterServers;
    const auto stub = v1::TransformService::NewStub(ChannelTo(addresses_[server]));
    v1::TransformRequest request;
    request.set_reference("letters@prod");
    const client::RowBlock row = FleetRow();
    auto* const dense = request.mutable_examples()->mutable_dense();
    dense->set_rows(1);
    dense->set_columns(kFleetColumns);
    dense->set_float32_le(row.values_le);
    while (!stop_) {
      grpc::ClientContext context;
      SetDeadline(context);
      Read read{.begin = Now(), .server = server};
      if (with_revision) context.AddMetadata("phimap-min-revision", newest_.Get());
      v1::TransformResponse response;
      const grpc::Status status = stub->Transform(&context, request, &response);
      read.end = Now();
      if (!status.ok()) {
        EXPECT_TRUE(status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                    status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
            << status.error_message();
        continue;
      }
      read.value = response.version().number();
      // The read may have seen a write that is not answered yet. Later reads must not see an older
      // value, so they require the revision of this read's answer.
      if (with_revision) {
        EXPECT_TRUE(newest_.Note(context));
      }
      read.end = Now();
      const std::lock_guard<std::mutex> lock(mutex_);
      (with_revision ? reads_ : plain_reads_).push_back(read);
    }
  }
  // Kills a server, and starts it again at the same address.
  void Restart(int server) {
    servers_[server]->process().Signal(SIGKILL);
    servers_[server]->process().Wait();
    servers_[server] =
        fleet_.Start(absl::StrCat(server), {"--log_level=error", "--listen=" + addresses_[server]});
  }

  Fleet fleet_{phimap::testing::PostgresServer::Shared()};
  std::vector<std::unique_ptr<ServerProcess>> servers_;
  std::vector<std::string> addresses_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> next_value_{2};
  std::mutex mutex_;
  std::vector<Write> writes_;
  std::vector<Read> reads_;
  std::vector<Read> plain_reads_;
  NewestRevision newest_;
};

TEST_F(LinearizableTest, WritesAndReadsWithARevisionAreLinearizableAndOthersNearly) {
  MakeFirstRevision();
  std::vector<std::thread> threads;
  for (int i = 0; i < kRegisterWriters; ++i) threads.emplace_back([this, i] { WriteOnEnd(i); });
  for (int i = 0; i < kRegisterReaders; ++i) {
    threads.emplace_back([this, i] { ReadOnEnd(i, /*with_revision=*/i < kRegisterReaders / 2); });
  }
  int kills = 0;
  while (next_value_ <= kRegisterVersions) Restart(kills++ % kRegisterServers);
  stop_ = true;
  for (std::thread& thread : threads) thread.join();
  int64_t answered = 0;
  for (const Write& write : writes_) answered += write.end == kNever ? 0 : 1;
  std::cout << answered << " of " << writes_.size() << " writes answered, " << reads_.size()
            << " reads with a revision, " << plain_reads_.size() << " without, " << kills
            << " kills\n";
  EXPECT_GE(answered, kRegisterVersions / 4);
  EXPECT_GE(reads_.size(), 100);
  EXPECT_EQ(FindContradiction(1, writes_, reads_), "");
  EXPECT_EQ(FindStaleRead(1, writes_, plain_reads_, 1.0), "");
  // Only reads that require a revision must be linearizable. For information, the test prints
  // whether the other reads are linearizable, too.
  std::cout << "contradiction if the reads without a revision had to be linearizable: "
            << FindContradiction(1, writes_, plain_reads_) << "\n";
  // The checker must find a contradiction when one impossible read is added to the same history.
  ASSERT_FALSE(reads_.empty());
  const Read last = reads_.back();
  if (last.value != 1) {
    std::vector<Read> planted = reads_;
    planted.push_back({.value = 1, .begin = Now(), .end = Now() + 1, .server = last.server});
    EXPECT_NE(FindContradiction(1, writes_, planted), "");
  }
}

}  // namespace
}  // namespace phimap::e2e
