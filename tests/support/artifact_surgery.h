// Changing artifacts below their checksums, to see what the decoder believes.
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

// Section 0..4 as the table states it.
int64_t SectionOffset(const std::string& artifact, int section);
int64_t SectionSize(const std::string& artifact, int section);

// Makes every checksum true again, as far as the table's offsets and sizes lie within the bytes.
// REQUIRES: at least kArtifactBodyOffset bytes.
void FixChecksums(std::string& artifact);

// The artifact with one section's bytes replaced: later sections move, table and checksums follow.
std::string WithSection(const std::string& artifact, int section, const std::string& content);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_ARTIFACT_SURGERY_H_
