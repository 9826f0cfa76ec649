// Where the settings of phimapd come from: a flag beats the environment, which beats the file,
// which beats the default.
//
// The flags say what settings there are. A setting has the same name, values and checks wherever it
// comes from: --max_builds=4, PHIMAPD_MAX_BUILDS=4, or max_builds = 4 in the file of --config.
#ifndef PHIMAP_SERVER_CONFIGURATION_H_
#define PHIMAP_SERVER_CONFIGURATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config_file.h"

namespace CLI {
class App;
}  // namespace CLI

namespace phimap {

// kContainer: a default that was lowered to fit into the memory of the container.
enum class SettingSource { kDefault, kContainer, kFile, kEnvironment, kFlag };

struct Setting {
  // The flag without its dashes.
  std::string name;
  ValueKind kind = ValueKind::kText;
  // The value as text; one for each element of kTexts. Empty if nothing is set.
  std::vector<std::string> values;
  SettingSource source = SettingSource::kDefault;
  // "--max_builds", "PHIMAPD_MAX_BUILDS" or "/etc/phimap/phimapd.toml:12"; "" for other sources.
  std::string place;
  // Whether SIGHUP puts a new value in the file in force. Other settings need a restart.
  bool follows_sighup = false;
};

// Flags of `app` that are about the configuration itself, and not settings.
inline constexpr char kConfigFlag[] = "--config";
inline constexpr char kPrintConfigFlag[] = "--print_config";
inline constexpr char kJsonFlag[] = "--json";

// Gives the flags that the command line lacks the values of the environment, and those that it
// lacks too the values of the file. Returns all settings, in the order of the flags. `environment`
// is as environ(7). Errors: INVALID_ARGUMENT for a name or key that is unknown, with the one that
// was probably meant, and for a value that the flag refuses, with what was expected; those of
// ReadConfigFile. REQUIRES: app.parse has returned.
absl::StatusOr<std::vector<Setting>> ReadSettings(CLI::App& app, const char* const* environment);

// Returns the setting, or null if there is none with this name.
Setting* FindSetting(std::vector<Setting>& settings, absl::string_view name);

// Returns the error of a check of several settings, which begins with a flag, such as
// "--tls_key: expected …". If the setting does not come from a flag, says where it comes from.
absl::Status WithPlace(const absl::Status& error, std::vector<Setting>& settings);

// Returns the settings as a file that sets them, with the source of each in a comment, and with
// defaults as comments.
std::string SettingsText(const std::vector<Setting>& settings);
// Returns the settings as a line of JSON.
std::string SettingsJson(const std::vector<Setting>& settings);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CONFIGURATION_H_
