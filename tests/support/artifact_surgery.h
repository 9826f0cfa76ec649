// Changes bytes of artifacts and restores their checksums. Tests use this to reach those checks of
// the decoder that come after the checksums.
#ifndef PHIMAP_TESTS_SUPPORT_ARTIFACT_SURGERY_H_
#define PHIMAP_TESTS_SUPPORT_ARTIFACT_SURGERY_H_

#include <cstdint>
#include <cstring>
#include <string>

namespace phimap::testing {

inline constexpr int64_t kArtifactHeaderBytes = 32;
inline constexpr int64_t kArtifactBodyOffset = 32 + 5 * 24;

template <typename T>
T ReadAt(const std::string& bytes, int64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}
template <typename T>
void WriteAt(std::string& bytes, int64_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

// Return the offset and the size of a section, from 0 on, as stated in the artifact's section
// table.
int64_t SectionOffset(const std::string& artifact, int section);
int64_t SectionSize(const std::string& artifact, int section);

// Recomputes every checksum, except those of sections whose offset or size in the table is outside
// of the artifact. A count of sections that no format has is taken for five. REQUIRES: at least
// kArtifactBodyOffset bytes, and the whole table.
void FixChecksums(std::string& artifact);

// Returns the artifact with one section's bytes replaced. Later sections move, and the table and
// the checksums are updated.
std::string WithSection(const std::string& artifact, int section, const std::string& content);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_ARTIFACT_SURGERY_H_
