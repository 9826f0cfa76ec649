#include "server/store/admin/store_check.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;

struct NamedArtifact {
  int64_t size_bytes = 0;
  std::vector<std::string> versions;
};

absl::StatusOr<std::map<std::string, NamedArtifact>> ReadNames(SqlDatabase& database) {
  std::map<std::string, NamedArtifact> named;
  PHIMAP_RETURN_IF_ERROR(database.Read([&](SqlSession& session) -> absl::Status {
    named.clear();
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                            session.Run("SELECT digest, artifact_size_bytes, mapping, number "
                                        "FROM versions ORDER BY mapping, number"));
    for (size_t row = 0; row < rows.size(); ++row) {
      NamedArtifact& artifact = named[rows.Text(row, 0)];
      artifact.size_bytes = rows.Int(row, 1);
      artifact.versions.push_back(absl::StrCat(rows.Text(row, 2), "@", rows.Int(row, 3)));
    }
    return absl::OkStatus();
  }));
  return named;
}

absl::StatusOr<bool> IsNamed(SqlDatabase& database, absl::string_view digest) {
  bool named = false;
  PHIMAP_RETURN_IF_ERROR(database.Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(
        const SqlRows rows,
        session.Run("SELECT 1 FROM versions WHERE digest = $1 LIMIT 1", {digest}));
    named = !rows.empty();
    return absl::OkStatus();
  }));
  return named;
}

absl::Status ReadThrough(Blobs& blobs, absl::string_view digest, int64_t size_bytes) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader,
                          blobs.OpenReader(digest, size_bytes));
  for (;;) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string piece, reader->Next(kPieceBytes));
    if (piece.empty()) return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<CheckReport> CheckStore(const AdminStore& store, bool quarantine,
                                       const AdminProgress& progress) {
  // Lists blobs before names. So the blob of a version that is published in between is not reported
  // as unreferenced.
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<StoredBlob> blobs, store.blobs->List());
  PHIMAP_ASSIGN_OR_RETURN(const auto named, ReadNames(*store.database));
  CheckReport report;
  std::set<std::string> stored;
  for (const StoredBlob& blob : blobs) {
    stored.insert(blob.digest);
    if (named.contains(blob.digest)) continue;
    ++report.unnamed_artifacts;
    report.unnamed_bytes += blob.size_bytes;
  }
  for (const auto& [digest, artifact] : named) {
    if (!progress(report.artifacts, static_cast<int64_t>(named.size()))) {
      return absl::CancelledError("the check was cancelled");
    }
    const absl::Status read = ReadThrough(*store.blobs, digest, artifact.size_bytes);
    if (!read.ok() && !absl::IsDataLoss(read)) return read;
    if (!read.ok()) {
      PHIMAP_ASSIGN_OR_RETURN(const bool still_named, IsNamed(*store.database, digest));
      if (!still_named) continue;
      // A missing artifact cannot be set aside.
      const bool set_aside = quarantine && stored.contains(digest);
      if (set_aside) PHIMAP_RETURN_IF_ERROR(store.blobs->SetAside(digest));
      report.damaged.push_back({digest, std::string(read.message()), artifact.versions, set_aside});
    }
    report.versions += static_cast<int64_t>(artifact.versions.size());
    ++report.artifacts;
    report.bytes += artifact.size_bytes;
  }
  return report;
}

}  // namespace phimap
