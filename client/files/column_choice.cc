#include "client/files/column_choice.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cpp/row_source.h"
#include "core/digest/named_columns.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

// Whether CsvWriter gives this name to a feature.
bool IsFeatureName(absl::string_view name) {
  return absl::ConsumePrefix(&name, "f") && !name.empty() &&
         std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

// Assigns each column of a header at most one role.
class ColumnChooser {
 public:
  ColumnChooser(const std::vector<std::string>& header, const ColumnChoice& choice,
                const std::string& file)
      : header_(header), choice_(choice), file_(file), option_of_(header.size()) {
    for (size_t i = 0; i < header.size(); ++i) places_.emplace(header[i], static_cast<int>(i));
  }

  absl::StatusOr<ChosenColumns> Choose() {
    PHIMAP_RETURN_IF_ERROR(Take("--exclude", choice_.exclude).status());
    PHIMAP_RETURN_IF_ERROR(TakePassthrough());
    PHIMAP_RETURN_IF_ERROR(TakeOne("--label", choice_.label, chosen_.label));
    PHIMAP_RETURN_IF_ERROR(TakeOne("--weights", choice_.weights, chosen_.weights));
    PHIMAP_RETURN_IF_ERROR(TakeOne("--groups", choice_.groups, chosen_.groups));
    PHIMAP_RETURN_IF_ERROR(TakeOne("--parts", choice_.parts, chosen_.parts));
    PHIMAP_RETURN_IF_ERROR(TakeInputs());
    PHIMAP_RETURN_IF_ERROR(CompareWithVersion());
    return std::move(chosen_);
  }

 private:
  // Returns the positions of `names`, to which `option` assigns a role.
  absl::StatusOr<std::vector<int>> Take(const char* option, const std::vector<std::string>& names) {
    std::vector<int> places;
    for (const std::string& name : names) {
      const auto found = places_.find(name);
      if (found == places_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(option, ": ", file_, " has no column ",
                                                       Quoted(name), "; its columns are ",
                                                       ShownColumnNames(header_)));
      }
      const char*& taken = option_of_[found->second];
      if (taken != nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(option, ": column ", Quoted(name),
                                                       " is already used by ", taken,
                                                       "; expected it once"));
      }
      taken = option;
      places.push_back(found->second);
    }
    return places;
  }

  // Sets `place` to the position of `name`, unless that is empty.
  absl::Status TakeOne(const char* option, const std::string& name, int& place) {
    if (name.empty()) return absl::OkStatus();
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<int> places, Take(option, {name}));
    place = places[0];
    return absl::OkStatus();
  }

  // A passthrough column may also be an input or the label.
  absl::Status TakePassthrough() {
    for (const std::string& name : choice_.passthrough) {
      const std::vector<const char*> before = option_of_;
      PHIMAP_ASSIGN_OR_RETURN(const std::vector<int> place, Take("--passthrough", {name}));
      option_of_ = before;
      if (IsFeatureName(name)) {
        return absl::InvalidArgumentError(
            absl::StrCat("--passthrough: ", Quoted(name),
                         " is the name of a feature in the output; rename the column"));
      }
      chosen_.passthrough.push_back(place[0]);
    }
    return absl::OkStatus();
  }

  bool IsCarried(size_t place) const {
    return std::find(chosen_.passthrough.begin(), chosen_.passthrough.end(),
                     static_cast<int>(place)) != chosen_.passthrough.end();
  }

  // Takes the version's columns, in the version's order. CompareWithVersion reports missing ones.
  void TakeInputsByName() {
    for (const std::string& name : choice_.of_version) {
      const auto found = places_.find(name);
      if (found == places_.end() || option_of_[found->second] != nullptr) continue;
      option_of_[found->second] = "--by-name";
      chosen_.inputs.push_back(found->second);
    }
    for (size_t i = 0; i < header_.size(); ++i) {
      if (option_of_[i] == nullptr && !IsCarried(i)) {
        chosen_.left_out.push_back(static_cast<int>(i));
      }
    }
  }

  absl::Status TakeInputs() {
    if (choice_.by_name && choice_.of_version.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--by-name: the columns of ", choice_.reference,
                       " have no names; list its input columns in order with --columns"));
    }
    if (choice_.by_name && choice_.columns.empty()) {
      TakeInputsByName();
      return absl::OkStatus();
    }
    if (!choice_.columns.empty()) {
      PHIMAP_ASSIGN_OR_RETURN(chosen_.inputs, Take("--columns", choice_.columns));
      return absl::OkStatus();
    }
    const absl::flat_hash_set<absl::string_view> wanted(choice_.of_version.begin(),
                                                        choice_.of_version.end());
    for (size_t i = 0; i < header_.size(); ++i) {
      if (option_of_[i] != nullptr) continue;
      const bool is_input = wanted.empty() ? !IsCarried(i) : wanted.contains(header_[i]);
      if (!is_input && IsCarried(i)) continue;
      (is_input ? chosen_.inputs : chosen_.left_out).push_back(static_cast<int>(i));
    }
    return absl::OkStatus();
  }

  absl::Status CompareWithVersion() const {
    if (choice_.of_version.empty()) return absl::OkStatus();
    std::vector<std::string> came = NamesAt(chosen_.inputs);
    if (came == choice_.of_version) return absl::OkStatus();
    const bool reordered = came.size() == choice_.of_version.size() &&
                           client::NamesNotAmong(came, choice_.of_version).empty();
    if (!reordered) {
      // A column that is missing may be present under another name, among the columns that are left
      // out.
      for (std::string& name : NamesAt(chosen_.left_out)) came.push_back(std::move(name));
    }
    return client::ColumnsDiffer(
        choice_.reference, choice_.of_version, came,
        reordered ? "--by-name finds them by name, in the version's order" : "");
  }

  std::vector<std::string> NamesAt(const std::vector<int>& places) const {
    std::vector<std::string> names;
    for (const int place : places) names.push_back(header_[place]);
    return names;
  }

  const std::vector<std::string>& header_;
  const ColumnChoice& choice_;
  const std::string& file_;
  absl::flat_hash_map<absl::string_view, int> places_;
  // The option that assigned a role to each column; null if none did.
  std::vector<const char*> option_of_;
  ChosenColumns chosen_;
};

}  // namespace

absl::StatusOr<ChosenColumns> ChooseColumns(const std::vector<std::string>& header,
                                            const ColumnChoice& choice, const std::string& file) {
  return ColumnChooser(header, choice, file).Choose();
}

}  // namespace phimap::cli
