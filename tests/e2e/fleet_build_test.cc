// Tests builds on two servers that share one PostgreSQL database.
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"

namespace phimap::e2e {
namespace {

constexpr char kUuid[] = "00000000-0000-4000-8000-000000000001";

class FleetBuildTest : public ::testing::Test {
 protected:
  // Builds a version with so many landmarks that the build takes seconds.
  static absl::StatusOr<v1::Version> Build(client::Client& client) {
    GeneratedRows rows(20'000, kFleetColumns, 1);
    return client.Build({.name = "letters",
                         .spec = absl::StrCat("f2(landmarks=", PHIMAP_SLOW_LANDMARKS, ")"),
                         .kernel = "rbf(gamma=50)",
                         .seed = 1,
                         .build_id = kUuid},
                        rows);
  }
  static void AwaitComputing(client::Client& client) {
    while (true) {
      const auto build = client.GetBuild("letters", kUuid);
      if (build.ok() && build->state() == v1::BuildJob::STATE_COMPUTING) return;
      ASSERT_TRUE(build.ok() || absl::IsNotFound(build.status())) << build.status();
      ASSERT_TRUE(!build.ok() || build->state() < v1::BuildJob::STATE_COMPUTING)
          << "the build ended before the test saw it compute";
    }
  }

  Fleet fleet_{phimap::testing::PostgresServer::Shared()};
};

TEST_F(FleetBuildTest, ABuildOfAServerThatWasKilledIsStreamedToAnother) {
  auto one = fleet_.Start("one");
  const auto two = fleet_.Start("two");
  const auto client = two->Connect();
  std::thread at_one([&] { Build(*one->Connect({.max_attempts = 1})).IgnoreError(); });
  AwaitComputing(*client);
  absl::StatusOr<v1::Version> version;
  // This call attaches to the build that server `one` is computing. After that server is killed and
  // its lease has expired, the client streams the build to server `two`.
  std::thread at_two([&] { version = Build(*client); });
  one->process().Signal(SIGKILL);
  at_one.join();
  at_two.join();
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(version->ref().number(), 1);
}

TEST_F(FleetBuildTest, IsCancelledFromTheOtherServer) {
  const auto one = fleet_.Start("one");
  const auto two = fleet_.Start("two");
  absl::Status ended;
  std::thread at_one([&] { ended = Build(*one->Connect()).status(); });
  const auto client = two->Connect();
  AwaitComputing(*client);
  const auto cancelled = client->CancelBuild("letters", kUuid).value();
  at_one.join();
  EXPECT_EQ(cancelled.state(), v1::BuildJob::STATE_CANCELLED);
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
}

}  // namespace
}  // namespace phimap::e2e
