#include "core/plan/column_names.h"

#include <cstddef>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/plan/byte_codec.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::Status BadName(size_t column, absl::string_view what, int64_t limit = 0, int64_t actual = 0) {
  std::map<std::string, std::string> metadata;
  if (limit > 0) metadata = {{"limit", absl::StrCat(limit)}, {"actual", absl::StrCat(actual)}};
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kColumnNamesInvalid,
                   absl::StrCat("column_names[", column, "]"), what, std::move(metadata));
}

}  // namespace

absl::Status CheckColumnNames(const std::vector<std::string>& names) {
  absl::flat_hash_map<absl::string_view, size_t> places;
  int64_t total = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto size = static_cast<int64_t>(names[i].size());
    if (size == 0) return BadName(i, "expected a name, got an empty text");
    if (size > kMaxColumnNameBytes) {
      return BadName(i,
                     absl::StrCat("expected at most ", kMaxColumnNameBytes, " bytes, got ", size),
                     kMaxColumnNameBytes, size);
    }
    const auto [first, fresh] = places.emplace(names[i], i);
    if (!fresh) {
      return BadName(i, absl::StrCat(Quoted(names[i]), " is also the name of column ",
                                     first->second, "; expected names that differ"));
    }
    total += size;
    if (total > kMaxColumnNamesBytes) {
      return BadName(i,
                     absl::StrCat("expected at most ", kMaxColumnNamesBytes,
                                  " bytes of names in all, got more; build without names"),
                     kMaxColumnNamesBytes, total);
    }
  }
  return absl::OkStatus();
}

std::string EncodeColumnNames(const std::vector<std::string>& names) {
  std::string out;
  if (names.empty()) return out;
  ByteWriter writer(out);
  writer.Number<uint32_t>(static_cast<uint32_t>(names.size()));
  for (const std::string& name : names) writer.Text(name);
  return out;
}

absl::StatusOr<std::vector<std::string>> DecodeColumnNames(absl::string_view bytes,
                                                           int64_t offset) {
  ByteReader reader(bytes, offset);
  const uint32_t count = reader.Number<uint32_t>();
  std::vector<std::string> names;
  // Each name takes at least the bytes of its length field, so `count` is at most what the
  // remaining bytes can hold.
  reader.CheckRange("column names", count, 1, reader.left() / int64_t{sizeof(uint32_t)});
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    names.push_back(reader.Text(kMaxColumnNameBytes));
  }
  PHIMAP_RETURN_IF_ERROR(reader.Finish());
  if (const absl::Status valid = CheckColumnNames(names); !valid.ok()) {
    return DamagedArtifact(offset, absl::StrCat("column names: ", valid.message()));
  }
  return names;
}

}  // namespace phimap
