// Artifacts: plan ↔ bytes. The byte table is docs/formats.md.
//
// An artifact is untrusted until it is decoded: every size is bounded before memory is allocated,
// every section is checked against its CRC-32C, and every index and number against its target.
#ifndef PHIMAP_CORE_PLAN_ARTIFACT_H_
#define PHIMAP_CORE_PLAN_ARTIFACT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/plan/plan.h"

namespace phimap {

// Versions of the byte format (docs/formats.md). An artifact without column names is written in the
// first format, so that its bytes are the same in every release. An artifact with column names is
// written in the second, the newest that can be read.
inline constexpr uint32_t kFormatWithoutNames = 1;
inline constexpr uint32_t kArtifactFormat = 2;

// Largest artifact that is written or read: 4 GiB.
inline constexpr int64_t kMaxArtifactBytes = int64_t{4} << 30;

// Origin of a version, in canonical text. Shown to people; the engine does not read it.
struct Provenance {
  // Example: "f2(landmarks=500, policy=uniform, pool_rows=20000, serving_type=float32)".
  std::string mapping_text;
  // Example: "rbf(gamma=0.0625)". All parameters are resolved.
  std::string kernel_text;
  bool standardize = false;
  uint64_t seed = 0;
  // Names of the columns, one for each (column_names.h). Empty if the columns have no names.
  std::vector<std::string> column_names = {};
};

struct Artifact {
  Plan plan;
  Provenance provenance;
  // Opaque here; written and read by certificate/.
  std::string certificate;
};

// Encodes an artifact. Equal artifacts give equal bytes. RESOURCE_EXHAUSTED over kMaxArtifactBytes.
absl::StatusOr<std::string> EncodeArtifact(const Artifact& artifact);

// Bytes at the start of an artifact that state its size: the header and the longest section table.
// Every artifact is longer.
inline constexpr int64_t kArtifactHeadBytes = 176;

// Returns the size of the artifact that begins with `bytes`, reading only the first
// kArtifactHeadBytes. Errors: those of DecodeArtifact. Checks only the head.
absl::StatusOr<int64_t> ArtifactSizeInHead(absl::string_view bytes);
// Returns the format version that an artifact's `bytes` are written in; 0 if they end before it.
uint32_t ArtifactFormatOf(absl::string_view bytes);

// Facts about an artifact for people: all of it except the plan.
struct ArtifactFacts {
  Provenance provenance;
  std::string certificate;
};

// Returns a range of an artifact's bytes, given its offset and length, or an error. Returns fewer
// bytes if the artifact ends before.
using ArtifactRange = std::function<absl::StatusOr<std::string>(int64_t offset, int64_t bytes)>;

// Reads only the head and the sections of facts: some KiB of an artifact of gigabytes. They are
// checked as by DecodeArtifact; the plan may still be damaged. `charge`, if not empty, is called
// with the size of the sections before they are allocated, and its error is returned. REQUIRES:
// size_bytes is the size of the artifact.
absl::StatusOr<ArtifactFacts> ReadArtifactFacts(
    int64_t size_bytes, const ArtifactRange& read,
    const std::function<absl::Status(int64_t bytes)>& charge = nullptr);

// Decodes an artifact. DATA_LOSS with the byte offset, and the expected and actual value, for
// anything damaged; UNIMPLEMENTED for a format version, arithmetic or kind of stage that this build
// does not know.
absl::StatusOr<Artifact> DecodeArtifact(absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_ARTIFACT_H_
