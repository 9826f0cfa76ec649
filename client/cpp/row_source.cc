#include "client/cpp/row_source.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/digest/named_columns.h"
#include "core/status/error.h"
#include "core/status/words.h"

namespace phimap::client {

absl::StatusOr<ExampleBlock> MemoryRowSource::Next(const BlockLimits& limits) {
  const int32_t left = rows_.rows() - next_row_;
  // Mean size of a row.
  const int64_t row_bytes = std::max<int64_t>(1, rows_.bytes() / std::max(1, rows_.rows()));
  const int32_t count = std::min(left, limits.RowsOf(row_bytes));
  ExampleBlock block = rows_.Slice(next_row_, count);
  next_row_ += count;
  return block;
}

absl::Status MemoryRowSource::Rewind() {
  next_row_ = 0;
  return absl::OkStatus();
}

namespace {

// Returns what is wrong with the names that came, and the names that were expected. Names that came
// are listed only if all were expected, but in another order.
std::string WhatDiffers(absl::string_view reference, const std::vector<std::string>& expected,
                        const std::vector<std::string>& came) {
  const std::vector<std::string> missing = NamesNotAmong(expected, came);
  const std::vector<std::string> unknown = NamesNotAmong(came, expected);
  const std::string wanted = absl::StrCat("; expected the ", expected.size(), " of ", reference,
                                          ": ", ShownColumnNames(expected));
  if (missing.empty() && unknown.empty()) {
    return absl::StrCat("the columns are in another order", wanted, "; got ",
                        ShownColumnNames(came));
  }
  std::string text = absl::StrCat("got ", CountOf(came.size(), "column"), "; ");
  if (!missing.empty()) {
    absl::StrAppend(&text, ShownColumnNames(missing), missing.size() == 1 ? " is" : " are",
                    " missing", unknown.empty() ? "" : ", and ");
  }
  if (!unknown.empty()) {
    absl::StrAppend(&text, ShownColumnNames(unknown), unknown.size() == 1 ? " is" : " are",
                    " not among the version's columns");
  }
  return absl::StrCat(text, wanted);
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
      absl::StatusCode::kInvalidArgument, reason::kColumnNamesMismatch, "columns",
      absl::StrCat(WhatDiffers(reference, expected, came), then.empty() ? "" : "; ", then),
      {{"expected", absl::StrCat(expected.size())}, {"actual", absl::StrCat(came.size())}});
}

}  // namespace phimap::client
