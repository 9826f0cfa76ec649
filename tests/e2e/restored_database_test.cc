// Tests a database that is restored from a dump while servers and clients remember more than the
// dump has. Nothing that PostgreSQL keeps about itself changes then: neither its system identifier
// nor its timeline.
#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"
#include "tests/e2e/process.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

using ::phimap::testing::PausedProcess;
using ::phimap::testing::PostgresServer;
using Clock = std::chrono::steady_clock;

class RestoredDatabaseTest : public ::testing::Test {
 protected:
  static bool AnswersSoon(client::Client& client, const std::string& reference, int64_t version) {
    const Clock::time_point end = Clock::now() + std::chrono::seconds(20);
    while (Answering(client, reference) != version) {
      if (Clock::now() > end) return false;
    }
    return true;
  }

  Fleet fleet_{PostgresServer::Shared()};
  TemporaryFolder folder_;
  const std::string dump_ = folder_.path() + "/dump.sql";
};

// The server sleeps until the restored database has had more changes than the server knows of.
TEST_F(RestoredDatabaseTest, AServerThatWasCutOffMeanwhileServesWhatNamesMeanNow) {
  auto one = fleet_.Start("one");
  const auto two = fleet_.Start("two");
  const auto second = two->Connect();
  const auto writer = *client::Client::Connect(two->address(), {});
  BuildVersions(*writer, "letters", 2);
  ASSERT_TRUE(writer->SetAlias("letters@1", "prod").ok());
  fleet_.Dump(dump_);
  ASSERT_TRUE(writer->SetAlias("letters@2", "prod").ok());
  ASSERT_TRUE(AnswersSoon(*second, "letters@prod", 2));
  EXPECT_EQ(MetricOf(*two, "phimap_history_changes_total"), 0);
  std::unique_ptr<ServerProcess> three;
  {
    const PausedProcess asleep(two->process().pid());
    one.reset();
    fleet_.Restore(dump_);
    three = fleet_.Start("three");
    const auto third = three->Connect();
    for (const char* alias : {"a", "b", "c"}) {
      ASSERT_TRUE(third->SetAlias("letters@2", alias).ok());
    }
    EXPECT_EQ(Answering(*third, "letters@prod"), 1);
  }
  EXPECT_TRUE(AnswersSoon(*second, "letters@prod", 1));
  EXPECT_TRUE(AnswersSoon(*second, "letters@c", 2));
  EXPECT_EQ(MetricOf(*two, "phimap_history_changes_total"), 1);
  EXPECT_THAT(two->process().AwaitErrors("history_changed"), HasSubstr("history_changed"));
  // This client asks for a revision that the database has lost. It learns that without an error.
  EXPECT_EQ(Answering(*writer, "letters@prod"), 1);
  ASSERT_TRUE(writer->SetAlias("letters@2", "prod").ok());
  EXPECT_EQ(Answering(*writer, "letters@prod"), 2);
}

// No server remembers anything: all were stopped for the restore, as an administrator would.
TEST_F(RestoredDatabaseTest, AClientThatKnowsALostChangeIsNotKeptWaiting) {
  auto one = fleet_.Start("one");
  const std::string address = one->address();
  const auto writer = *client::Client::Connect(address, {});
  BuildVersions(*writer, "letters", 2);
  ASSERT_TRUE(writer->SetAlias("letters@1", "prod").ok());
  fleet_.Dump(dump_);
  for (const int64_t version : {2, 1, 2}) {
    ASSERT_TRUE(writer->SetAlias(absl::StrCat("letters@", version), "prod").ok());
  }
  one.reset();
  fleet_.Restore(dump_);
  one = fleet_.Start("one", {absl::StrCat("--listen=", address)});
  const Clock::time_point start = Clock::now();
  EXPECT_EQ(Answering(*writer, "letters@prod"), 1);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace phimap::e2e
