#include "server/configuration.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "server/observe/json_text.h"

namespace phimap {
namespace {

// The clients' variables begin with PHIMAP_, so this prefix is the server's own.
constexpr absl::string_view kPrefix = "PHIMAPD_";

absl::Status BadSetting(absl::string_view place, absl::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFlagInvalid, place, why);
}

std::string NameOf(const CLI::Option& option) { return option.get_lnames().front(); }

std::string VariableOf(absl::string_view setting) {
  return absl::StrCat(kPrefix, absl::AsciiStrToUpper(setting));
}

// Returns the options of settings: all but those that the flags of configuration.h and CLI11 add.
std::vector<CLI::Option*> OptionsOf(CLI::App& app) {
  std::vector<CLI::Option*> options;
  for (CLI::Option* option : app.get_options()) {
    const std::string flag = "--" + NameOf(*option);
    if (flag != kConfigFlag && flag != kPrintConfigFlag && flag != kJsonFlag &&
        option != app.get_help_ptr() && option != app.get_version_ptr()) {
      options.push_back(option);
    }
  }
  return options;
}

ValueKind KindOf(const CLI::Option& option) {
  if (option.get_items_expected_min() == 0) return ValueKind::kBoolean;
  if (option.get_expected_max() > 1) return ValueKind::kTexts;
  if (absl::StartsWith(option.get_type_name(), "FLOAT")) return ValueKind::kNumber;
  return absl::StartsWith(option.get_type_name(), "INT") ? ValueKind::kInteger : ValueKind::kText;
}

const char* KindText(ValueKind kind) {
  switch (kind) {
    case ValueKind::kBoolean:
      return "true or false";
    case ValueKind::kInteger:
      return "an integer";
    case ValueKind::kNumber:
      return "a number";
    case ValueKind::kText:
      return "a string";
    case ValueKind::kTexts:
      return "an array of strings";
    case ValueKind::kOther:
      break;
  }
  return "a value";
}

// Sets an option that has no value so far, as the command line would.
absl::Status Set(CLI::Option& option, const std::vector<std::string>& values) {
  const bool boolean = KindOf(option) == ValueKind::kBoolean;
  for (const std::string& value : values) {
    if (value.empty()) return BadSetting("", "expected a value, got nothing");
    if (boolean && value != "true" && value != "false") {
      return BadSetting("", absl::StrCat("expected true or false, got '", Excerpt(value), "'"));
    }
    option.add_result(value);
  }
  // CLI11 reports errors by exceptions, which must not leave this function.
  try {
    if (!values.empty()) option.run_callback();
  } catch (const CLI::ParseError& error) {
    const absl::string_view why = error.what();
    return BadSetting("", absl::StripPrefix(why, absl::StrCat(option.get_name(), ": ")));
  }
  return absl::OkStatus();
}

// Kubernetes gives each container variables about the Services of its namespace. Those of a Service
// "phimapd" or "phimapd-…" begin with kPrefix.
bool IsOfKubernetes(absl::string_view name) {
  if (absl::EndsWith(name, "_SERVICE_HOST") || absl::EndsWith(name, "_SERVICE_PORT") ||
      absl::StrContains(name, "_SERVICE_PORT_") || absl::EndsWith(name, "_PORT")) {
    return true;
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits("_PORT_", 1));
  return !parts.second.empty() && absl::ascii_isdigit(parts.second.front());
}

// Where a value of the environment or of the file was found, by the option.
using Places = std::vector<std::pair<const CLI::Option*, std::string>>;

absl::Status ReadVariable(absl::string_view name, const std::string& value,
                          const std::vector<CLI::Option*>& options, Places& places) {
  std::vector<std::string> known;
  for (CLI::Option* option : options) {
    known.push_back(VariableOf(NameOf(*option)));
    if (known.back() != name) continue;
    if (option->count() > 0) return absl::OkStatus();
    places.emplace_back(option, name);
    if (KindOf(*option) == ValueKind::kTexts) return Set(*option, absl::StrSplit(value, ','));
    return Set(*option, {value});
  }
  if (IsOfKubernetes(name)) return absl::OkStatus();
  const std::string* const meant = NearestTo(name, kPrefix.size(), known);
  return BadSetting(
      "", absl::StrCat("unknown variable",
                       meant == nullptr ? "" : absl::StrCat("; did you mean ", *meant, "?"),
                       "\n  after PHIMAPD_ comes a flag of 'phimapd --help' in capitals"));
}

// A variable that a flag beats is not used, but must be known.
absl::Status ReadEnvironment(const char* const* environment,
                             const std::vector<CLI::Option*>& options, Places& places) {
  for (; *environment != nullptr; ++environment) {
    const std::pair<std::string, std::string> variable =
        absl::StrSplit(*environment, absl::MaxSplits('=', 1));
    if (!absl::StartsWith(variable.first, kPrefix)) continue;
    const absl::Status read = ReadVariable(variable.first, variable.second, options, places);
    if (!read.ok()) return BadSetting(variable.first, read.message());
  }
  return absl::OkStatus();
}

absl::Status ReadEntry(const ConfigEntry& entry, const std::string& place,
                       const std::vector<CLI::Option*>& options, Places& places) {
  std::vector<std::string> known;
  for (CLI::Option* option : options) {
    known.push_back(NameOf(*option));
    if (known.back() != entry.key) continue;
    const ValueKind kind = KindOf(*option);
    const bool is_number = kind == ValueKind::kNumber && entry.kind == ValueKind::kInteger;
    if (entry.kind != kind && !is_number) {
      return BadSetting(entry.key,
                        absl::StrCat("expected ", KindText(kind), ", got TOML's ", entry.type));
    }
    if (option->count() > 0) return absl::OkStatus();
    places.emplace_back(option, place);
    const absl::Status set = Set(*option, entry.values);
    return set.ok() ? set : BadSetting(entry.key, set.message());
  }
  const std::string* const meant = NearestTo(entry.key, 0, known);
  return BadSetting(
      "", absl::StrCat("unknown key ", Quoted(entry.key),
                       meant == nullptr ? "" : absl::StrCat("; did you mean ", *meant, "?"),
                       "\n  a key is a flag of 'phimapd --help' without its dashes; there are no "
                       "tables"));
}

absl::Status ReadFile(const std::string& path, const std::vector<CLI::Option*>& options,
                      Places& places) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<ConfigEntry> entries, ReadConfigFile(path));
  for (const ConfigEntry& entry : entries) {
    const std::string place = absl::StrCat(path, ":", entry.line);
    const absl::Status read = ReadEntry(entry, place, options, places);
    if (!read.ok()) return BadSetting(place, read.message());
  }
  return absl::OkStatus();
}

Setting SettingOf(const CLI::Option& option, const Places& from_environment,
                  const Places& from_file) {
  Setting setting{.name = NameOf(option), .kind = KindOf(option), .values = option.results()};
  const auto place_in = [&option](const Places& places) -> const std::string* {
    const auto found = std::find_if(places.begin(), places.end(),
                                    [&](const auto& place) { return place.first == &option; });
    return found == places.end() ? nullptr : &found->second;
  };
  if (const std::string* place = place_in(from_environment)) {
    setting.source = SettingSource::kEnvironment;
    setting.place = *place;
  } else if (const std::string* line = place_in(from_file)) {
    setting.source = SettingSource::kFile;
    setting.place = *line;
  } else if (option.count() > 0) {
    setting.source = SettingSource::kFlag;
    setting.place = "--" + setting.name;
  } else if (setting.kind == ValueKind::kBoolean) {
    setting.values = {"false"};
  } else if (const std::string standard = option.get_default_str(); !standard.empty()) {
    setting.values = {standard};
  }
  return setting;
}

}  // namespace

absl::StatusOr<std::vector<Setting>> ReadSettings(CLI::App& app, const char* const* environment) {
  const std::vector<CLI::Option*> options = OptionsOf(app);
  CLI::Option* const file = app.get_option(kConfigFlag);
  std::vector<CLI::Option*> named_by_variables = options;
  named_by_variables.push_back(file);
  Places from_environment;
  Places from_file;
  PHIMAP_RETURN_IF_ERROR(ReadEnvironment(environment, named_by_variables, from_environment));
  if (file->count() > 0) {
    PHIMAP_RETURN_IF_ERROR(ReadFile(file->results().front(), options, from_file));
  }
  std::vector<Setting> settings;
  for (const CLI::Option* option : options) {
    settings.push_back(SettingOf(*option, from_environment, from_file));
  }
  return settings;
}

Setting* FindSetting(std::vector<Setting>& settings, absl::string_view name) {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [name](const Setting& setting) { return setting.name == name; });
  return found == settings.end() ? nullptr : &*found;
}

absl::Status WithPlace(const absl::Status& error, std::vector<Setting>& settings) {
  const std::optional<ErrorDetail> detail = DetailOf(error);
  if (error.ok() || !detail.has_value()) return error;
  const Setting* const setting = FindSetting(settings, absl::StripPrefix(detail->field, "--"));
  if (setting == nullptr) return error;
  if (setting->source == SettingSource::kEnvironment) return WithField(error, setting->place);
  if (setting->source != SettingSource::kFile) return error;
  return WithField(error, absl::StrCat(setting->place, ": ", setting->name));
}

namespace {

const char* SourceName(SettingSource source) {
  switch (source) {
    case SettingSource::kDefault:
      return "default";
    case SettingSource::kContainer:
      return "container";
    case SettingSource::kFile:
      return "file";
    case SettingSource::kEnvironment:
      return "environment";
    case SettingSource::kFlag:
      break;
  }
  return "flag";
}

// Why a setting has its value, for people.
std::string SourceText(const Setting& setting) {
  if (!setting.place.empty()) return setting.place;
  if (setting.source == SettingSource::kContainer)
    return "default, lowered to the container's memory";
  return "default";
}

std::string Quote(const std::string& text) {
  std::string quoted;
  AppendJsonText(text, quoted);
  return quoted;
}

// Returns the value as the file has it, such as "info" in quotes; empty if there is none. Strings
// have the escapes that JSON and TOML share.
std::string ValueText(const Setting& setting) {
  if (setting.kind == ValueKind::kTexts) {
    return absl::StrCat("[",
                        absl::StrJoin(setting.values, ", ",
                                      [](std::string* out, const std::string& text) {
                                        absl::StrAppend(out, Quote(text));
                                      }),
                        "]");
  }
  if (setting.values.empty()) return "";
  const std::string& value = setting.values.front();
  if (setting.kind == ValueKind::kText) return Quote(value);
  double number = 0;
  // A flag may be written in ways that TOML and JSON do not know, such as ".5".
  const bool is_number = setting.kind == ValueKind::kNumber && absl::SimpleAtod(value, &number);
  return is_number ? absl::StrFormat("%.15g", number) : value;
}

}  // namespace

std::string SettingsText(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    const bool set = !setting.values.empty();
    // A default that is given is no default any more: some checks are only of settings that are
    // given.
    const bool given = set && !setting.place.empty();
    const std::string line = absl::StrCat(given ? "" : "# ", setting.name,
                                          set ? absl::StrCat(" = ", ValueText(setting)) : "");
    absl::StrAppend(&text, absl::StrFormat("%-39s # ", line), set ? SourceText(setting) : "not set",
                    "\n");
  }
  return text;
}

std::string SettingsJson(const std::vector<Setting>& settings) {
  std::vector<std::string> objects;
  for (const Setting& setting : settings) {
    const std::string value = ValueText(setting);
    objects.push_back(absl::StrCat(
        "{\"name\": ", Quote(setting.name), ", \"value\": ", value.empty() ? "null" : value,
        ", \"source\": \"", SourceName(setting.source), "\", \"place\": ", Quote(setting.place),
        ", \"follows_sighup\": ", setting.follows_sighup ? "true" : "false", "}"));
  }
  return absl::StrCat("{\"settings\": [", absl::StrJoin(objects, ", "), "]}\n");
}

}  // namespace phimap
