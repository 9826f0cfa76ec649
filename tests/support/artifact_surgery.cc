#include "tests/support/artifact_surgery.h"

#include "core/digest/crc32c.h"
#include "core/status/check.h"

namespace phimap::testing {
namespace {

int SectionCount(const std::string& artifact) {
  const auto stated = ReadAt<uint32_t>(artifact, 20);
  return stated >= 5 && stated <= 9 ? static_cast<int>(stated) : 5;
}

int64_t EntryOffset(int section) { return kArtifactHeaderBytes + 24 * section; }

}  // namespace

int64_t SectionOffset(const std::string& artifact, int section) {
  return ReadAt<int64_t>(artifact, EntryOffset(section) + 8);
}

int64_t SectionSize(const std::string& artifact, int section) {
  return ReadAt<int64_t>(artifact, EntryOffset(section) + 16);
}

void FixChecksums(std::string& artifact) {
  const auto bytes = static_cast<int64_t>(artifact.size());
  PHIMAP_CHECK(bytes >= kArtifactBodyOffset);
  const int sections = SectionCount(artifact);
  const int64_t table_bytes = EntryOffset(sections) - kArtifactHeaderBytes;
  PHIMAP_CHECK(bytes >= kArtifactHeaderBytes + table_bytes);
  for (int section = 0; section < sections; ++section) {
    const int64_t offset = SectionOffset(artifact, section);
    const int64_t size = SectionSize(artifact, section);
    if (offset < 0 || offset > bytes || size < 0 || size > bytes - offset) continue;
    WriteAt<uint32_t>(artifact, EntryOffset(section) + 4, Crc32c(artifact.substr(offset, size)));
  }
  WriteAt<uint32_t>(artifact, kArtifactHeaderBytes - 4,
                    Crc32c(artifact.substr(0, kArtifactHeaderBytes - 4) +
                           artifact.substr(kArtifactHeaderBytes, table_bytes)));
}

std::string WithSection(const std::string& artifact, int section, const std::string& content) {
  const int sections = SectionCount(artifact);
  std::string out = artifact.substr(0, EntryOffset(sections));
  for (int i = 0; i < sections; ++i) {
    while (out.size() % 64 != 0) out.push_back('\0');
    const std::string bytes =
        i == section ? content
                     : artifact.substr(SectionOffset(artifact, i), SectionSize(artifact, i));
    WriteAt<int64_t>(out, EntryOffset(i) + 8, static_cast<int64_t>(out.size()));
    WriteAt<int64_t>(out, EntryOffset(i) + 16, static_cast<int64_t>(bytes.size()));
    out += bytes;
  }
  FixChecksums(out);
  return out;
}

}  // namespace phimap::testing
