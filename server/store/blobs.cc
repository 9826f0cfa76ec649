#include "server/store/blobs.h"

#include "core/status/status_macros.h"

namespace phimap {

absl::Status Blobs::WriteFrom(absl::string_view digest, ArtifactReader& content) {
  std::string whole;
  whole.reserve(static_cast<size_t>(content.size_bytes()));
  for (;;) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string piece, content.Next(content.size_bytes()));
    if (piece.empty()) return Write(digest, whole);
    whole += piece;
  }
}

}  // namespace phimap
