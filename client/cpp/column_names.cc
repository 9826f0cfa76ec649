#include "client/cpp/column_names.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/digest/named_columns.h"
#include "core/status/error.h"

namespace phimap::client {
namespace {

std::string WhatDiffers(const std::vector<std::string>& expected,
                        const std::vector<std::string>& came) {
  const std::vector<std::string> missing = NamesNotAmong(expected, came);
  const std::vector<std::string> unknown = NamesNotAmong(came, expected);
  if (missing.empty() && unknown.empty()) return "the columns are in another order";
  std::string text = absl::StrCat("got ", came.size(), " columns; ");
  if (!missing.empty()) {
    absl::StrAppend(&text, ShownColumnNames(missing), missing.size() == 1 ? " is" : " are",
                    " missing", unknown.empty() ? "" : ", and ");
  }
  if (!unknown.empty()) {
    absl::StrAppend(&text, ShownColumnNames(unknown), unknown.size() == 1 ? " is" : " are",
                    " not among the version's columns");
  }
  return text;
}

}  // namespace

std::vector<std::string> NamesNotAmong(const std::vector<std::string>& names,
                                       const std::vector<std::string>& others) {
  const absl::flat_hash_set<absl::string_view> known(others.begin(), others.end());
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    if (!known.contains(name)) unknown.push_back(name);
  }
  return unknown;
}

absl::Status ColumnsDiffer(absl::string_view reference, const std::vector<std::string>& expected,
                           const std::vector<std::string>& came, absl::string_view then) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, "COLUMN_NAMES_MISMATCH", "columns",
      absl::StrCat(WhatDiffers(expected, came), "; expected the ", expected.size(), " of ",
                   reference, ": ", ShownColumnNames(expected), "; got ", came.size(), ": ",
                   ShownColumnNames(came), then.empty() ? "" : "; ", then),
      {{"expected", absl::StrCat(expected.size())}, {"actual", absl::StrCat(came.size())}});
}

}  // namespace phimap::client
