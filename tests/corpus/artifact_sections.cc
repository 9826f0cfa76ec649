#include "tests/corpus/artifact_sections.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/digest/sha256.h"
#include "core/status/check.h"

namespace phimap::testing {
namespace {

constexpr size_t kCountAt = 20;
constexpr size_t kTableAt = 32;
constexpr size_t kEntryBytes = 24;

template <typename T>
T NumberAt(absl::string_view bytes, size_t at) {
  PHIMAP_CHECK(at + sizeof(T) <= bytes.size());
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(T));
  return number;
}

}  // namespace

std::string SectionsDigest(absl::string_view artifact) {
  Sha256 hash;
  const auto sections = NumberAt<uint32_t>(artifact, kCountAt);
  for (uint32_t i = 0; i < sections; ++i) {
    const size_t entry = kTableAt + i * kEntryBytes;
    const auto kind = NumberAt<uint32_t>(artifact, entry);
    if (kind == 5 || kind > 6) continue;
    const auto offset = NumberAt<uint64_t>(artifact, entry + 8);
    const auto size = NumberAt<uint64_t>(artifact, entry + 16);
    PHIMAP_CHECK(offset + size <= artifact.size());
    hash.Update(absl::StrCat(kind, " ", size, "\n"));
    hash.Update(artifact.substr(offset, size));
  }
  return hash.Hex();
}

}  // namespace phimap::testing
