#include "server/config_file.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/files/file_system.h"
#include "toml++/toml.h"

namespace phimap {
namespace {

constexpr int64_t kMaxConfigBytes = 1 << 20;

// Only regular files are read: a pipe could make the server wait when it reads the file again.
absl::StatusOr<std::string> ReadConfig(const std::string& path) {
  std::error_code none;
  if (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none)) {
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kPathInvalid, "",
                     absl::StrCat(path, " is not a regular file"));
  }
  return PosixFileSystem()->ReadFile(path, kMaxConfigBytes);
}

std::string TypeOf(const toml::node& value) {
  std::ostringstream name;
  name << value.type();
  return name.str();
}

ConfigEntry EntryOf(std::string_view key, const toml::node& value) {
  ConfigEntry entry{.key = std::string(key),
                    .type = TypeOf(value),
                    .line = static_cast<int>(value.source().begin.line)};
  const auto take = [&entry](ValueKind kind, std::string text) {
    entry.kind = kind;
    entry.values.push_back(std::move(text));
  };
  if (const auto* text = value.as_string()) {
    take(ValueKind::kText, text->get());
  } else if (const auto* number = value.as_integer()) {
    take(ValueKind::kInteger, absl::StrCat(number->get()));
  } else if (const auto* real = value.as_floating_point()) {
    take(ValueKind::kNumber, absl::StrFormat("%.17g", real->get()));
  } else if (const auto* boolean = value.as_boolean()) {
    take(ValueKind::kBoolean, boolean->get() ? "true" : "false");
  } else if (const auto* array = value.as_array()) {
    const bool of_texts = array->empty() || array->is_homogeneous(toml::node_type::string);
    for (const toml::node& element : *array) {
      if (of_texts) take(ValueKind::kTexts, element.as_string()->get());
    }
    if (of_texts) entry.kind = ValueKind::kTexts;
  }
  return entry;
}

}  // namespace

absl::StatusOr<std::vector<ConfigEntry>> ReadConfigFile(const std::string& path) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string text, ReadConfig(path));
  std::vector<ConfigEntry> entries;
  try {
    for (const auto& [key, value] : toml::parse(text, path)) {
      entries.push_back(EntryOf(key.str(), value));
    }
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    // The end of some messages quotes the file, which may hold a secret.
    const std::string_view why = error.description();
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kFlagInvalid, "",
                     absl::StrCat(path, ":", at.line, ":", at.column,
                                  ": not TOML: ", std::string(why.substr(0, why.find(", saw ")))));
  }
  std::sort(entries.begin(), entries.end(),
            [](const ConfigEntry& a, const ConfigEntry& b) { return a.line < b.line; });
  return entries;
}

}  // namespace phimap
