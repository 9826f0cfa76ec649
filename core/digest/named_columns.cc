#include "core/digest/named_columns.h"

#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/digest/sha256.h"
#include "core/status/error.h"

namespace phimap {

uint64_t ColumnNamesHash(const std::vector<std::string>& names) {
  if (names.empty()) return 0;
  Sha256 hash;
  for (const std::string& name : names) {
    char length[4];
    for (int i = 0; i < 4; ++i) length[i] = static_cast<char>(name.size() >> (8 * i));
    hash.Update(absl::string_view(length, sizeof(length)));
    hash.Update(name);
  }
  const std::string bytes = absl::HexStringToBytes(hash.Hex().substr(0, 16));
  uint64_t number = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    number |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return number == 0 ? 1 : number;
}

std::string ShownColumnNames(const std::vector<std::string>& names, size_t most) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", Quoted(names[i]));
  }
  if (names.size() > most) {
    absl::StrAppend(&text, " and ", names.size() - most, " more");
  }
  return text;
}

int64_t NamedColumns::memory_bytes() const {
  int64_t bytes = 0;
  for (const std::string& name : names_) {
    bytes += static_cast<int64_t>(sizeof(std::string) + name.capacity());
  }
  return bytes;
}

}  // namespace phimap
