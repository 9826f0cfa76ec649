// The part of BuildManager that is for several servers on one store: it claims builds, and follows
// builds that other servers run.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/steady_time.h"
#include "server/build/build_error.h"
#include "server/build/build_manager.h"
#include "server/build/stored_build.h"
#include "server/store/build_claims.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// How long CancelBuild waits for the server that runs the build to cancel it.
constexpr absl::Duration kCancelWait = absl::Seconds(2);
constexpr absl::Duration kCancelPoll = absl::Milliseconds(100);
// The claim of a followed build is kept for this long after its lease has expired, in case the
// client streams the build again.
constexpr absl::Duration kForgetAfter = absl::Minutes(10);

absl::Status AbortedAndLeft() {
  return MakeError(
      Code::kAborted, reason::kBuildInterrupted, "",
      absl::StrCat("the server ended before the build was done, and its client did not send the "
                   "stream again within ",
                   absl::FormatDuration(kForgetAfter), "; send it again with a new UUID"));
}

BuildSnapshot SnapshotOf(const BuildClaim& claim) {
  return {.id = {claim.mapping, claim.build_id},
          .state = static_cast<BuildState>(claim.progress.state),
          .rows_received = claim.progress.rows_received,
          .phase = claim.progress.phase,
          .fraction = claim.progress.fraction,
          .seconds_left = 0,
          .version = nullptr,
          .error = absl::OkStatus(),
          .owner = claim.owner,
          // Negative, so that these builds come after those of this server.
          .order = std::numeric_limits<int64_t>::min() + absl::ToUnixMicros(claim.start_time)};
}

BuildClaims::Renewal RenewalOf(const BuildJob& job) {
  const BuildSnapshot snapshot = job.Snapshot();
  return {.mapping = job.id().mapping,
          .build_id = job.id().build_id,
          .epoch = job.claim_epoch(),
          .progress = {.state = static_cast<int64_t>(snapshot.state),
                       .rows_received = snapshot.rows_received,
                       .phase = snapshot.phase,
                       .fraction = snapshot.fraction,
                       .followed = job.IsFollowed()}};
}

BuildRecord RecordOf(const BuildClaim& claim, const BuildClaimant& claimant,
                     const absl::Status& error) {
  return {.mapping = claim.mapping,
          .build_id = claim.build_id,
          .spec_digest = claim.spec_digest,
          .rows_received = claim.progress.rows_received,
          .version = 0,
          .error = error,
          .claimant = claimant};
}

}  // namespace

absl::StatusOr<BuildManager::Attachment> BuildManager::Claim(const std::shared_ptr<BuildJob>& job) {
  const BuildId& id = job->id();
  const absl::StatusOr<BuildClaims::Taken> taken = store_.claims()->Take(
      id.mapping, id.build_id, job->spec_digest(), options_.lease, job->order().origin.principal);
  if (!taken.ok()) {
    GiveBack(job, taken.status());
    return taken.status();
  }
  if (!taken->ours) {
    GiveBack(job, StillOpen(id));
    return AttachElsewhere(id, job->spec_digest(), taken->claim);
  }
  job->set_claim_epoch(taken->claim.claimant.epoch);
  // The build may have ended on another server between the look-up in the store and the claim.
  absl::StatusOr<StoredBuild> stored = ReadStored(id);
  if (absl::IsNotFound(stored.status())) {
    // A cancellation that came before the claim could not release it, so it is released now.
    if (IsFinished(job->Snapshot().state)) ReleaseSoon(*job);
    return Attachment{job, /*attached=*/false};
  }
  GiveBack(job, StillOpen(id));
  if (!stored.ok()) return stored.status();
  return AttachToStored(id, job->spec_digest(), *std::move(stored));
}

absl::StatusOr<BuildManager::Attachment> BuildManager::AttachElsewhere(const BuildId& id,
                                                                       const std::string& digest,
                                                                       const BuildClaim& claim) {
  if (claim.spec_digest != digest) return OtherSpec(id);
  BuildSnapshot snapshot = SnapshotOf(claim);
  if (snapshot.state == BuildState::kReceiving) return StillOpen(id);
  auto job = std::make_shared<BuildJob>(std::move(snapshot), digest, metrics_);
  MutexLock lock(&mutex_);
  if (draining_) return ShuttingDown("the server is shutting down");
  std::erase_if(elsewhere_, [](const auto& old) { return old.expired(); });
  elsewhere_.push_back(job);
  return Attachment{std::move(job), /*attached=*/true};
}

void BuildManager::GiveBack(const std::shared_ptr<BuildJob>& job, const absl::Status& error) {
  MutexLock lock(&mutex_);
  if (job->Move(BuildEvent::kAbandon, error)) {
    --unfinished_;
    job->SetPlace({});
    Forget(job);
    changed_.NotifyAll();
  }
  if (job->claim_epoch() != 0) to_release_.push_back(RenewalOf(*job));
}

void BuildManager::ReleaseSoon(const BuildJob& job) {
  if (job.claim_epoch() == 0) return;
  MutexLock lock(&mutex_);
  to_release_.push_back(RenewalOf(job));
  changed_.NotifyAll();
}

void BuildManager::WatchClaims() {
  const absl::Duration between_sweeps = options_.lease;
  Clock::time_point next_sweep = Clock::now() + absl::ToChronoNanoseconds(between_sweeps);
  while (true) {
    {
      MutexLock lock(&mutex_);
      const auto wake = Clock::now() + absl::ToChronoNanoseconds(options_.renew_every);
      while (!stopping_ && to_release_.empty() && changed_.WaitUntil(&mutex_, wake)) {
      }
      if (stopping_) return;
    }
    RenewClaims();
    if (Clock::now() < next_sweep) continue;
    EndBuildsOfTheDead();
    next_sweep = Clock::now() + absl::ToChronoNanoseconds(between_sweeps);
  }
}

void BuildManager::ReleaseClaims() {
  std::vector<BuildClaims::Renewal> releases;
  {
    MutexLock lock(&mutex_);
    std::swap(releases, to_release_);
    ++pending_;
  }
  const absl::Cleanup end_pending = [this] { EndPending(); };
  for (const BuildClaims::Renewal& claim : releases) {
    // If this fails, the claim's lease expires by itself.
    store_.claims()->Release(claim.mapping, claim.build_id, claim.epoch).IgnoreError();
  }
}

void BuildManager::RenewClaims() {
  ReleaseClaims();
  std::vector<std::shared_ptr<BuildJob>> jobs = Unfinished();
  std::erase_if(jobs, [](const auto& job) { return job->claim_epoch() == 0; });
  std::vector<BuildClaims::Renewal> renewals;
  for (const std::shared_ptr<BuildJob>& job : jobs) renewals.push_back(RenewalOf(*job));
  const absl::StatusOr<std::vector<BuildClaims::Renewed>> renewed =
      store_.claims()->Renew(renewals, options_.lease);
  NoteRenewal(renewed.status());
  for (size_t i = 0; renewed.ok() && i < jobs.size(); ++i) {
    const BuildId& id = jobs[i]->id();
    if ((*renewed)[i] == BuildClaims::Renewed::kCancelled) CancelNow(jobs[i]);
    // A publishing build may have lost its claim because it is already published. End is a no-op
    // for such a build, whose publication succeeds or fails in the store.
    if ((*renewed)[i] == BuildClaims::Renewed::kLost) {
      End(jobs[i], {BuildEvent::kCancel, BuildTakenOver(id.mapping, id.build_id), Keep::kNothing});
    }
  }
  FollowElsewhere();
}

void BuildManager::NoteRenewal(const absl::Status& renewed) {
  const bool failing = !renewed.ok();
  if (renewals_fail_.exchange(failing) == failing) return;
  const LoggedError why = ErrorForLog(renewed);
  logger_.Log(failing ? LogLevel::kWarning : LogLevel::kInfo,
              failing ? "build_claims_not_renewed" : "build_claims_renewed_again",
              {{"code", why.code}, {"reason", why.reason}, {"error", why.message}});
}

void BuildManager::FollowElsewhere() {
  std::vector<std::shared_ptr<BuildJob>> jobs;
  {
    MutexLock lock(&mutex_);
    for (const std::weak_ptr<BuildJob>& weak : elsewhere_) {
      std::shared_ptr<BuildJob> job = weak.lock();
      if (job != nullptr && !IsFinished(job->Snapshot().state)) jobs.push_back(std::move(job));
    }
  }
  for (const std::shared_ptr<BuildJob>& job : jobs) LookElsewhere(*job);
}

void BuildManager::LookElsewhere(BuildJob& job) {
  const BuildId& id = job.id();
  const absl::StatusOr<std::optional<BuildClaim>> claim =
      store_.claims()->Find(id.mapping, id.build_id);
  // Nothing is known while the store is unavailable, so the client keeps waiting.
  if (!claim.ok()) return;
  if (claim->has_value() && !(*claim)->over()) return job.ShowElsewhere(SnapshotOf(**claim));
  absl::StatusOr<StoredBuild> stored = ReadStored(id);
  if (stored.ok()) return job.ShowElsewhere(std::move(stored->snapshot));
  if (!absl::IsNotFound(stored.status())) return;
  BuildSnapshot gone = job.Snapshot();
  gone.state = BuildState::kFailed;
  gone.error = ShuttingDown(
      "the server that ran the build ended before the build was done; send the stream again");
  job.ShowElsewhere(std::move(gone));
}

void BuildManager::EndBuildsOfTheDead() {
  const absl::StatusOr<std::vector<BuildClaim>> claims = store_.claims()->List("");
  if (!claims.ok()) return;
  for (const BuildClaim& claim : *claims) {
    // For one more lease period, a client that followed the build from another server may stream it
    // again.
    if (claim.over_for < options_.lease) continue;
    if (claim.cancelled) {
      RecordForTheDead(claim, CancelledByCall()).IgnoreError();
    } else if (!claim.progress.followed) {
      RecordForTheDead(claim, AbortedByRestart()).IgnoreError();
    } else if (claim.over_for > kForgetAfter) {
      RecordForTheDead(claim, AbortedAndLeft()).IgnoreError();
    }
  }
}

absl::Status BuildManager::RecordForTheDead(const BuildClaim& claim, const absl::Status& error) {
  // Never takes over a build that runs on this server.
  if (Find({claim.mapping, claim.build_id}) != nullptr) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const BuildClaims::Taken taken,
                          store_.claims()->Take(claim.mapping, claim.build_id, claim.spec_digest,
                                                absl::ZeroDuration(), claim.owner));
  if (!taken.ours) return absl::OkStatus();
  ChangeOrigin origin;
  origin.method = "the end of a build whose server is gone";
  origin.principal = claim.owner;
  PHIMAP_RETURN_IF_ERROR(
      store_.RecordFailedBuild(RecordOf(claim, taken.claim.claimant, error), origin));
  const LoggedError why = ErrorForLog(error);
  logger_.Log(LogLevel::kWarning, "build_ended",
              {{"mapping", claim.mapping},
               {"build_id", claim.build_id},
               {"rows", claim.progress.rows_received},
               {"code", why.code},
               {"reason", why.reason},
               {"error", why.message},
               {"caller", claim.owner}});
  return absl::OkStatus();
}

absl::StatusOr<BuildSnapshot> BuildManager::GetElsewhere(const BuildId& id) {
  if (store_.claims() == nullptr) return NoSuchBuild(id);
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<BuildClaim> claim,
                          store_.claims()->Find(id.mapping, id.build_id));
  if (!claim.has_value()) return NoSuchBuild(id);
  return SnapshotOf(*claim);
}

absl::StatusOr<BuildSnapshot> BuildManager::CancelElsewhere(const BuildId& id,
                                                            const ChangeOrigin& origin) {
  BuildClaims& claims = *store_.claims();
  PHIMAP_ASSIGN_OR_RETURN(const bool asked, claims.RequestCancel(id.mapping, id.build_id, origin));
  if (!asked) return Get(id);
  const absl::Time until = SteadyNow() + kCancelWait;
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const std::optional<BuildClaim> claim,
                            claims.Find(id.mapping, id.build_id));
    if (!claim.has_value()) return Get(id);
    if (claim->over()) {
      PHIMAP_RETURN_IF_ERROR(RecordForTheDead(*claim, CancelledByCall()));
      return Get(id);
    }
    if (SteadyNow() >= until) return SnapshotOf(*claim);
    absl::SleepFor(kCancelPoll);
  }
}

absl::StatusOr<std::vector<BuildSnapshot>> BuildManager::ListAll(absl::string_view mapping) const {
  std::vector<BuildSnapshot> all;
  if (BuildClaims* const claims = store_.claims(); claims != nullptr) {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<BuildClaim> claimed, claims->List(mapping));
    for (const BuildClaim& claim : claimed) {
      if (Find({claim.mapping, claim.build_id}) == nullptr) all.push_back(SnapshotOf(claim));
    }
  }
  const std::vector<BuildSnapshot> here = List(mapping);
  all.insert(all.begin(), here.begin(), here.end());
  return all;
}

}  // namespace phimap
