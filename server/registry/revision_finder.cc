#include "server/registry/revision_finder.h"

#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr size_t kMaxRevisionIdBytes = 128;

bool IsId(absl::string_view text) {
  if (text.empty() || text.size() > kMaxRevisionIdBytes) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-') return false;
  }
  return true;
}

}  // namespace

std::string RevisionText(const Revision& revision) {
  return absl::StrCat(revision.id, ":", revision.number);
}

absl::StatusOr<Revision> ParseRevision(absl::string_view text) {
  const size_t colon = text.rfind(':');
  Revision revision;
  if (colon != absl::string_view::npos && IsId(text.substr(0, colon)) &&
      absl::SimpleAtoi(text.substr(colon + 1), &revision.number) && revision.number >= 0) {
    revision.id = std::string(text.substr(0, colon));
    return revision;
  }
  return MakeError(Code::kInvalidArgument, reason::kRevisionInvalid, std::string(kMinRevisionKey),
                   absl::StrCat("expected the value of an answer's ", kRevisionKey,
                                ", ID:NUMBER, got ", Quoted(text)));
}

RevisionFinder::~RevisionFinder() {
  MutexLock lock(&mutex_);
  while (asking_) idle_.Wait(&mutex_);
}

std::string RevisionFinder::KnownWithOwnChanges() const {
  const std::optional<Revision> known = registry_.revision_with_own_changes();
  return known.has_value() ? RevisionText(*known) : "";
}

absl::StatusOr<bool> RevisionFinder::Knows(absl::string_view text) const {
  PHIMAP_ASSIGN_OR_RETURN(const Revision wanted, ParseRevision(text));
  return PlaceOf(wanted) == Place::kPassed;
}

RevisionFinder::Place RevisionFinder::PlaceOf(const Revision& wanted) const {
  const Revision known = registry_.revision();
  if (known == wanted) return Place::kPassed;
  if (known.number < wanted.number) return Place::kAhead;
  if (known.number == wanted.number) return Place::kOfAnotherHistory;
  const std::string id = registry_.IdOfPassed(wanted.number);
  if (id.empty()) return Place::kForgotten;
  return id == wanted.id ? Place::kPassed : Place::kOfAnotherHistory;
}

absl::Status RevisionFinder::Judge(const Revision& wanted) const {
  const Place place = PlaceOf(wanted);
  if (place == Place::kPassed) return absl::OkStatus();
  if (place == Place::kForgotten) {
    PHIMAP_ASSIGN_OR_RETURN(const bool there, store_.IsInHistory(wanted));
    if (there) return absl::OkStatus();
  }
  // Revisions are told only after their commit, so the store has lost one that is ahead of it.
  const Revision known = registry_.revision();
  return MakeError(
      Code::kFailedPrecondition, reason::kRevisionHistoryMismatch, std::string(kMinRevisionKey),
      absl::StrCat("the store does not have revision ", RevisionText(wanted), "; its latest is ",
                   RevisionText(known),
                   ": the database failed over or was restored from a backup since then; check "
                   "whether your change is there, and discard the revision"),
      {{"expected", RevisionText(known)}, {"actual", RevisionText(wanted)}});
}

void RevisionFinder::Find(absl::string_view revision, std::function<void(absl::Status)> done) {
  absl::StatusOr<Revision> wanted = ParseRevision(revision);
  if (!wanted.ok()) return done(wanted.status());
  {
    MutexLock lock(&mutex_);
    askers_.push_back({*std::move(wanted), std::move(done)});
    if (std::exchange(asking_, true)) return;
  }
  const absl::Status queued = store_pool_.Submit([this] { Ask(); });
  if (queued.ok()) return;
  std::vector<Asker> refused;
  {
    MutexLock lock(&mutex_);
    refused.swap(askers_);
    asking_ = false;
    idle_.NotifyAll();
  }
  for (const Asker& asker : refused) asker.done(queued);
}

void RevisionFinder::Ask() {
  while (true) {
    std::vector<Asker> askers;
    {
      MutexLock lock(&mutex_);
      askers.swap(askers_);
      if (askers.empty()) {
        asking_ = false;
        idle_.NotifyAll();
        return;
      }
    }
    const absl::Status caught_up = registry_.CatchUp();
    for (const Asker& asker : askers) {
      asker.done(caught_up.ok() ? Judge(asker.wanted) : caught_up);
    }
  }
}

}  // namespace phimap
