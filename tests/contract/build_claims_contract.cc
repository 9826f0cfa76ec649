#include "tests/contract/build_claims_contract.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

const absl::Time kTime = absl::FromUnixSeconds(1'704'067'200);
// The length of a lease that expires as soon as it begins.
constexpr absl::Duration kNoLease = absl::ZeroDuration();

BuildRecord Failure(const BuildClaimant& claimant) {
  return {.mapping = "letters",
          .build_id = "u",
          .spec_digest = "spec",
          .error = absl::CancelledError("ended"),
          .claimant = claimant};
}

}  // namespace

BuildClaims::Taken BuildClaimsContractTest::Take(BuildClaims& claims, absl::Duration lease) {
  absl::StatusOr<BuildClaims::Taken> taken = claims.Take("letters", "u", "spec", lease);
  EXPECT_TRUE(taken.ok()) << taken.status();
  return taken.ok() ? *std::move(taken) : BuildClaims::Taken();
}

BuildClaims::Renewed BuildClaimsContractTest::Renew(BuildClaims& claims, int64_t epoch,
                                                    const ClaimedProgress& progress) {
  const absl::StatusOr<std::vector<BuildClaims::Renewed>> renewed =
      claims.Renew({{"letters", "u", epoch, progress}}, absl::Hours(1));
  EXPECT_TRUE(renewed.ok()) << renewed.status();
  return renewed.ok() ? renewed->at(0) : BuildClaims::Renewed::kLost;
}

absl::Status BuildClaimsContractTest::Publish(ClaimingServer& server,
                                              const BuildClaimant& claimant) {
  PublishRequest request;
  request.version.mapping = "letters";
  request.version.input_columns = 16;
  request.version.output_columns = 256;
  request.version.serving_type = "float32";
  request.build_id = "u";
  request.spec_digest = "spec";
  request.claimant = claimant;
  return server.catalog->Publish(request, "artifact").status();
}

TEST_P(BuildClaimsContractTest, AFreeIdIsTaken) {
  const BuildClaims::Taken taken = Take(*a_.claims);
  EXPECT_TRUE(taken.ours);
  EXPECT_EQ(taken.claim.mapping, "letters");
  EXPECT_EQ(taken.claim.build_id, "u");
  EXPECT_EQ(taken.claim.spec_digest, "spec");
  EXPECT_EQ(taken.claim.claimant.server_id, "a");
  EXPECT_GE(taken.claim.claimant.epoch, 1);
  EXPECT_FALSE(taken.claim.over());
  EXPECT_FALSE(taken.claim.cancelled);
}

TEST_P(BuildClaimsContractTest, AnIdThatRunsElsewhereIsNot) {
  const BuildClaims::Taken first = Take(*a_.claims);
  const BuildClaims::Taken second = Take(*b_.claims);
  EXPECT_FALSE(second.ours);
  EXPECT_EQ(second.claim.claimant, first.claim.claimant);
  EXPECT_EQ(Renew(*a_.claims, first.claim.claimant.epoch), BuildClaims::Renewed::kOurs);
}

TEST_P(BuildClaimsContractTest, ALeaseThatIsOverPermitsATakeover) {
  const BuildClaims::Taken first = Take(*a_.claims, kNoLease);
  EXPECT_TRUE(a_.claims->Find("letters", "u")->value().over());
  const BuildClaims::Taken second = Take(*b_.claims);
  EXPECT_TRUE(second.ours);
  EXPECT_EQ(second.claim.claimant.server_id, "b");
  EXPECT_GT(second.claim.claimant.epoch, first.claim.claimant.epoch);
  EXPECT_EQ(Renew(*a_.claims, first.claim.claimant.epoch), BuildClaims::Renewed::kLost);
}

TEST_P(BuildClaimsContractTest, ALeaseThatIsOverEndsNothingByItself) {
  const BuildClaims::Taken taken = Take(*a_.claims, kNoLease);
  EXPECT_EQ(Renew(*a_.claims, taken.claim.claimant.epoch), BuildClaims::Renewed::kOurs);
  EXPECT_FALSE(Take(*b_.claims).ours);
}

TEST_P(BuildClaimsContractTest, EachTakingHasALargerEpochAlsoAfterARelease) {
  const int64_t first = Take(*a_.claims).claim.claimant.epoch;
  const BuildClaims::Taken again = Take(*a_.claims);
  EXPECT_TRUE(again.ours);
  EXPECT_GT(again.claim.claimant.epoch, first);
  ASSERT_TRUE(a_.claims->Release("letters", "u", again.claim.claimant.epoch).ok());
  EXPECT_FALSE(a_.claims->Find("letters", "u")->has_value());
  EXPECT_GT(Take(*a_.claims).claim.claimant.epoch, first);
}

TEST_P(BuildClaimsContractTest, OnlyTheHolderReleases) {
  const BuildClaims::Taken first = Take(*a_.claims, kNoLease);
  const BuildClaims::Taken second = Take(*b_.claims);
  ASSERT_TRUE(a_.claims->Release("letters", "u", first.claim.claimant.epoch).ok());
  ASSERT_TRUE(a_.claims->Release("letters", "u", second.claim.claimant.epoch).ok());
  EXPECT_EQ(a_.claims->Find("letters", "u")->value().claimant, second.claim.claimant);
}

TEST_P(BuildClaimsContractTest, ARenewalTellsWhereTheBuildStands) {
  const int64_t epoch = Take(*a_.claims).claim.claimant.epoch;
  Renew(*a_.claims, epoch,
        {.state = 2,
         .rows_received = 5'000'000'000,
         .phase = "factor",
         .fraction = 0.25,
         .followed = false});
  const BuildClaim seen = b_.claims->Find("letters", "u")->value();
  EXPECT_EQ(seen.progress.state, 2);
  EXPECT_EQ(seen.progress.rows_received, 5'000'000'000);
  EXPECT_EQ(seen.progress.phase, "factor");
  EXPECT_EQ(seen.progress.fraction, 0.25);
  EXPECT_FALSE(seen.progress.followed);
}

TEST_P(BuildClaimsContractTest, ACancelReachesTheHolder) {
  EXPECT_FALSE(*b_.claims->RequestCancel("letters", "u"));
  const int64_t epoch = Take(*a_.claims).claim.claimant.epoch;
  EXPECT_EQ(Renew(*a_.claims, epoch), BuildClaims::Renewed::kOurs);
  EXPECT_TRUE(*b_.claims->RequestCancel("letters", "u"));
  EXPECT_EQ(Renew(*a_.claims, epoch), BuildClaims::Renewed::kCancelled);
}

TEST_P(BuildClaimsContractTest, ListsThoseOfAMapping) {
  ASSERT_TRUE(a_.claims->Take("letters", "u", "spec", absl::Hours(1)).ok());
  ASSERT_TRUE(b_.claims->Take("digits", "v", "spec", absl::Hours(1)).ok());
  EXPECT_EQ(a_.claims->List("")->size(), 2u);
  const std::vector<BuildClaim> digits = *a_.claims->List("digits");
  ASSERT_EQ(digits.size(), 1u);
  EXPECT_EQ(digits[0].build_id, "v");
  EXPECT_EQ(digits[0].claimant.server_id, "b");
}

TEST_P(BuildClaimsContractTest, PublishingEndsTheClaim) {
  EXPECT_TRUE(Publish(a_, Take(*a_.claims).claim.claimant).ok());
  EXPECT_FALSE(a_.claims->Find("letters", "u")->has_value());
}

TEST_P(BuildClaimsContractTest, RecordingAFailureEndsTheClaim) {
  const BuildClaimant claimant = Take(*a_.claims).claim.claimant;
  EXPECT_TRUE(a_.catalog->RecordFailedBuild(Failure(claimant)).ok());
  EXPECT_FALSE(a_.claims->Find("letters", "u")->has_value());
}

// Tests fencing: a server that was paused for longer than its lease is refused, because another
// server holds the build now.
TEST_P(BuildClaimsContractTest, TheOldHolderPublishesAndRecordsNothing) {
  const BuildClaimant old = Take(*a_.claims, kNoLease).claim.claimant;
  const BuildClaimant holder = Take(*b_.claims).claim.claimant;
  for (const absl::Status& refused :
       {Publish(a_, old), a_.catalog->RecordFailedBuild(Failure(old))}) {
    EXPECT_TRUE(absl::IsAborted(refused)) << refused;
    EXPECT_EQ(ReasonOf(refused), "BUILD_TAKEN_OVER");
  }
  EXPECT_TRUE(absl::IsNotFound(a_.catalog->GetMapping("letters").status()));
  EXPECT_TRUE(Publish(b_, holder).ok());
}

// A publish is not refused only because the lease has expired, as long as nobody else has taken the
// build.
TEST_P(BuildClaimsContractTest, WhoeverWasNotReplacedPublishesLate) {
  EXPECT_TRUE(Publish(a_, Take(*a_.claims, kNoLease).claim.claimant).ok());
}

TEST_P(BuildClaimsContractTest, OfThoseWhoTakeOneIdAtOnceOneHasIt) {
  constexpr int kServers = 8;
  std::vector<ClaimingServer> servers;
  for (int i = 0; i < kServers; ++i) servers.push_back(harness_->Open(absl::StrCat("s", i)));
  for (int round = 0; round < 10; ++round) {
    const std::string id = absl::StrCat("u", round);
    // Every other id already has an expired claim, which the servers take over.
    if (round % 2 == 1) {
      ASSERT_TRUE(a_.claims->Take("letters", id, "spec", kNoLease)->ours);
    }
    std::atomic<int> winners{0};
    std::vector<std::thread> threads;
    for (ClaimingServer& server : servers) {
      threads.emplace_back([&] {
        const BuildClaims::Taken taken =
            server.claims->Take("letters", id, "spec", absl::Hours(1)).value();
        if (taken.ours) ++winners;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners, 1) << id;
  }
}

TEST_P(BuildClaimsContractTest, NoRevisionIsTaken) {
  const Revision before = a_.catalog->ChangesSince(Revision())->revision;
  const int64_t epoch = Take(*a_.claims).claim.claimant.epoch;
  Renew(*a_.claims, epoch);
  ASSERT_TRUE(a_.claims->RequestCancel("letters", "u").ok());
  ASSERT_TRUE(a_.claims->Release("letters", "u", epoch).ok());
  EXPECT_EQ(a_.catalog->ChangesSince(Revision())->revision, before);
}

}  // namespace phimap::testing
