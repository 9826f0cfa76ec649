// Tests that servers that share a catalog know which artifact formats the other servers can read.
#include "server/store/fleet_member.h"

#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/plan/artifact.h"
#include "server/store/postgres/postgres_schema.h"
#include "server/store/store.h"
#include "tests/contract/memory_blobs.h"
#include "tests/server/store/postgres/postgres_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Returns bytes that say, where an artifact says so, that they have this format.
std::string HeadOfFormat(uint32_t artifact_format) {
  std::string head(1024, '\0');
  std::memcpy(head.data() + 8, &artifact_format, sizeof(artifact_format));
  return head;
}

class FleetMemberTest : public PostgresTest {
 protected:
  FleetServer Named(const std::string& id, int64_t artifact_format = 1) {
    return {.id = id,
            .name = absl::StrCat("host-", id),
            .release = "0.0.9",
            .artifact_format = artifact_format,
            .arithmetic = 1};
  }
  std::unique_ptr<FleetMember> Join(const FleetServer& server,
                                    absl::Duration period = absl::Hours(1)) {
    return FleetMember::Join(database_, server, period).value();
  }
  int64_t Count(const std::string& where = "true") {
    return Run("SELECT count(*) FROM phimap.servers WHERE " + where).Int(0, 0);
  }
  // Imports an artifact of the given format.
  absl::Status Import(uint32_t artifact_format = 2) {
    VersionRecord version{.mapping = "letters", .serving_type = "float32"};
    return Store(database_, std::make_shared<MemoryBlobs>())
        .Import(version, HeadOfFormat(artifact_format))
        .status();
  }

  const std::shared_ptr<PostgresDatabase> database_ = OpenDatabase();
};

TEST_F(FleetMemberTest, AServerIsThereWhileItLives) {
  const auto one = Join(Named("1"));
  {
    const auto two = Join(Named("2"));
    EXPECT_EQ(Count(), 2);
  }
  EXPECT_EQ(Count("server_id = '1' AND name = 'host-1' AND release = '0.0.9'"), 1);
  EXPECT_EQ(Count(), 1);
}

TEST_F(FleetMemberTest, ItIsHeardOfAgainAndAgain) {
  const auto one = Join(Named("1"), absl::Milliseconds(5));
  Run("UPDATE phimap.servers SET seen_time_us = 0");
  server_.Await("EXISTS (SELECT 1 FROM phimap.servers WHERE seen_time_us > 0)", name_);
}

TEST_F(FleetMemberTest, WhatALivingServerDoesNotReadIsNotPublished) {
  const auto old = Join(Named("old", /*artifact_format=*/1));
  const absl::Status refused = Import();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "FLEET_TOO_OLD");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("host-old"));
  EXPECT_EQ(Run("SELECT count(*) FROM phimap.versions").Int(0, 0), 0);
  // A server counts as gone when it has sent no sign of life for FleetMember::kLifetime, measured
  // with the database's clock.
  const std::string ago =
      "UPDATE phimap.servers SET seen_time_us = (SELECT now_us FROM "
      "phimap.clock) - ";
  Run(absl::StrCat(ago, absl::ToInt64Microseconds(FleetMember::kLifetime - absl::Seconds(10))));
  EXPECT_EQ(ReasonOf(Import()), "FLEET_TOO_OLD");
  Run(absl::StrCat(ago, absl::ToInt64Microseconds(FleetMember::kLifetime + absl::Seconds(1))));
  const absl::Status accepted = Import();
  EXPECT_TRUE(accepted.ok()) << accepted;
}

// Older servers can read artifacts without column names, so such artifacts may be published while
// an older server lives.
TEST_F(FleetMemberTest, WhatAllReadIsPublishedWhileAnOlderServerLives) {
  const auto old = Join(Named("old", /*artifact_format=*/1));
  const absl::Status accepted = Import(/*artifact_format=*/1);
  EXPECT_TRUE(accepted.ok()) << accepted;
}

// Artifacts with a drift reference have format 3, and those with a head format 4: servers that read
// only the format before must be gone.
TEST_F(FleetMemberTest, AnOptionalSectionWaitsForServersThatDoNotReadIt) {
  static_assert(kArtifactFormat == 4);
  for (const uint32_t format : {kFormatOfDriftReference, kArtifactFormat}) {
    {
      const auto before = Join(Named("old", format - 1));
      EXPECT_EQ(ReasonOf(Import(format)), "FLEET_TOO_OLD");
    }
    const auto now = Join(Named("new", format));
    const absl::Status accepted = Import(format);
    EXPECT_TRUE(accepted.ok()) << accepted;
  }
}

TEST_F(FleetMemberTest, WhoIsLongGoneIsForgotten) {
  Run("INSERT INTO phimap.servers VALUES ('x', 'x', 'x', 0, 0, 0, 0, 0)");
  const auto one = Join(Named("1"));
  EXPECT_EQ(Count("server_id = 'x'"), 0);
}

TEST_F(FleetMemberTest, ADatabaseThatIsAwayKeepsNobodyFromGoing) {
  PostgresServer own;
  const std::string name = own.CreateDatabase();
  auto database = PostgresDatabase::Open(own.Uri(name)).value();
  auto member = FleetMember::Join(std::move(database), Named("1"), absl::Milliseconds(1)).value();
  own.Stop();
  member.reset();
}

}  // namespace
}  // namespace phimap::testing
