#include "server/store/scrubber.h"

#include <algorithm>
#include <optional>

#include "core/status/status_macros.h"
#include "server/store/catalog_tables.h"

namespace phimap {

absl::StatusOr<Scrubber::Finding> Scrubber::Step(Pace pace) {
  Finding finding;
  int64_t size_bytes = 0;
  PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows next,
                            session.Run("SELECT digest, artifact_size_bytes FROM versions "
                                        "WHERE digest > $1 ORDER BY digest LIMIT 1",
                                        {last_}));
    finding.digest = next.empty() ? "" : next.Text(0, 0);
    size_bytes = next.empty() ? 0 : next.Int(0, 1);
    return absl::OkStatus();
  }));
  if (finding.digest.empty()) {
    last_.clear();
    return finding;
  }
  finding.status = ReadWhole(finding.digest, size_bytes, pace, &finding.stopped);
  if (finding.stopped) return finding;
  last_ = finding.digest;
  if (absl::IsDataLoss(finding.status)) {
    // A version that was deleted and collected since then is missing, not damaged.
    bool named = false;
    PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
      PHIMAP_ASSIGN_OR_RETURN(const std::optional<int64_t> size,
                              CatalogTables(session).ArtifactSizeBytes(finding.digest));
      named = size.has_value();
      return absl::OkStatus();
    }));
    if (!named) finding.status = absl::OkStatus();
  }
  MutexLock lock(&mutex_);
  if (absl::IsDataLoss(finding.status)) damaged_.insert(finding.digest);
  if (finding.status.ok()) damaged_.erase(finding.digest);
  return finding;
}

absl::Status Scrubber::ReadWhole(absl::string_view digest, int64_t size_bytes, Pace pace,
                                 bool* stopped) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader,
                          blobs_->OpenReader(digest, size_bytes));
  for (int64_t left = size_bytes; left > 0;) {
    const int64_t wanted = std::min(left, kPieceBytes);
    if (!pace(wanted)) {
      *stopped = true;
      return absl::OkStatus();
    }
    PHIMAP_ASSIGN_OR_RETURN(const std::string piece, reader->Next(wanted));
    if (piece.empty()) break;
    left -= static_cast<int64_t>(piece.size());
    bytes_.fetch_add(static_cast<int64_t>(piece.size()), std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

int64_t Scrubber::damaged() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(damaged_.size());
}

}  // namespace phimap
