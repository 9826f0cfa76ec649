// Encodes plans as artifacts, and decodes artifacts. docs/formats.md describes every byte.
//
// An artifact is untrusted until it is decoded: every size is bounded before memory is allocated,
// every section must match its CRC-32C, every index must be within what it refers to, and every
// number must be valid for its purpose.
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

// Versions of the byte format (docs/formats.md). An artifact is written in the oldest format that
// can hold it, so that its bytes are the same in every release: the first holds no optional
// section, the second column names, the third a drift reference too, and the fourth, the newest
// that can be read, a head too.
inline constexpr uint32_t kFormatWithoutNames = 1;
inline constexpr uint32_t kFormatOfNames = 2;
inline constexpr uint32_t kFormatOfDriftReference = 3;
inline constexpr uint32_t kArtifactFormat = 4;

// Largest artifact that is written or read: 4 GiB.
inline constexpr int64_t kMaxArtifactBytes = int64_t{4} << 30;

// Origin of a version, in canonical text. Shown to people; the engine does not read it.
struct Provenance {
  // Example: "f2(landmarks=500, policy=uniform, pool_rows=20000, serving_type=float32)".
  std::string spec_text;
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
  // Bytes that only core/certificate writes and reads.
  std::string certificate;
  // Bytes that only core/drift writes and reads. Empty if the version has no drift reference.
  std::string drift_reference = {};
  // Bytes that only core/head writes and reads: the head, and the factor that its variance needs. A
  // version without a head has neither, and only some heads have a variance. Everything else is the
  // artifact's features part.
  std::string head = {};
  std::string head_variance = {};
};

// Encodes an artifact. Equal artifacts give equal bytes. RESOURCE_EXHAUSTED over kMaxArtifactBytes.
// REQUIRES: no variance without a head.
absl::StatusOr<std::string> EncodeArtifact(const Artifact& artifact);

// Returns the artifact `bytes` with this head and variance in place of those that it may have;
// empty ones remove them. The bytes of all other sections are copied, with the checksums that the
// table states, so that a damaged section stays damaged. Returns the errors of DecodeArtifact for a
// damaged table, and RESOURCE_EXHAUSTED over kMaxArtifactBytes. REQUIRES: no variance without a
// head.
absl::StatusOr<std::string> WithHead(absl::string_view bytes, absl::string_view head,
                                     absl::string_view variance);
// Returns the digest of an artifact's features part, in hexadecimal: the SHA-256 of the bytes that
// WithHead(bytes, "", "") returns. Of an artifact without a head this is its own digest. Copies
// nothing. Errors: those of DecodeArtifact, for a damaged table.
absl::StatusOr<std::string> FeaturesDigest(absl::string_view bytes);

// Bytes at the start of an artifact that state its size: the header and the longest section table,
// of nine entries. Every artifact is longer.
inline constexpr int64_t kArtifactHeadBytes = 248;

// Returns the size of the artifact that begins with `bytes`, reading only the first
// kArtifactHeadBytes. Errors: those of DecodeArtifact. Checks only the head.
absl::StatusOr<int64_t> ArtifactSizeInHead(absl::string_view bytes);
// Returns the format version that an artifact's `bytes` are written in; 0 if `bytes` end before the
// version.
uint32_t ArtifactFormatOf(absl::string_view bytes);

// Facts about an artifact for people: all of it except the plan, the drift reference and the head.
struct ArtifactFacts {
  Provenance provenance;
  std::string certificate;
  // Whether the artifact has a drift reference, a head, and a variance of the head. The functions
  // below read them.
  bool has_drift_reference = false;
  bool has_head = false;
  bool has_head_variance = false;
};

// Returns a range of an artifact's bytes, given its offset and length, or an error. Returns fewer
// bytes if the artifact ends earlier.
using ArtifactRange = std::function<absl::StatusOr<std::string>(int64_t offset, int64_t bytes)>;

// Reads the facts of an artifact without its plan. Reads only the head and the sections that hold
// facts, which are some KiB even of an artifact of gigabytes. Checks these sections as
// DecodeArtifact does. The plan may be damaged. `charge`, if not empty, is called with the total
// size of the sections before memory for them is allocated. If it returns an error,
// ReadArtifactFacts returns that error. REQUIRES: size_bytes is the size of the artifact.
absl::StatusOr<ArtifactFacts> ReadArtifactFacts(
    int64_t size_bytes, const ArtifactRange& read,
    const std::function<absl::Status(int64_t bytes)>& charge = nullptr);

// Read one optional section of an artifact in the same way: the drift reference, the head, or the
// head's variance. Return "" if the artifact does not have the section.
absl::StatusOr<std::string> ReadDriftReference(
    int64_t size_bytes, const ArtifactRange& read,
    const std::function<absl::Status(int64_t bytes)>& charge = nullptr);
absl::StatusOr<std::string> ReadHead(
    int64_t size_bytes, const ArtifactRange& read,
    const std::function<absl::Status(int64_t bytes)>& charge = nullptr);
absl::StatusOr<std::string> ReadHeadVariance(
    int64_t size_bytes, const ArtifactRange& read,
    const std::function<absl::Status(int64_t bytes)>& charge = nullptr);

// Decodes an artifact. Returns DATA_LOSS if anything is damaged, with the byte offset and the
// expected and actual value. Returns UNIMPLEMENTED for a format version, arithmetic or kind of
// stage that this build does not know.
absl::StatusOr<Artifact> DecodeArtifact(absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_ARTIFACT_H_
