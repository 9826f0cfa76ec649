#include "lab/results.h"

#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap::lab {
namespace {

std::string Quoted(absl::string_view text) {
  if (text.find_first_of(",\"\n") == absl::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat(path, " cannot be written"));
  return absl::OkStatus();
}

}  // namespace

Cell::Cell(double number) : text_(absl::StrFormat("%.6g", number)) {}

void Table::Add(std::vector<Cell> row) {
  PHIMAP_CHECK(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::ToCsv() const {
  std::string csv;
  const char* separator = "";
  for (const std::string& column : columns_) {
    absl::StrAppend(&csv, separator, Quoted(column));
    separator = ",";
  }
  csv += '\n';
  for (const std::vector<Cell>& row : rows_) {
    separator = "";
    for (const Cell& cell : row) {
      absl::StrAppend(&csv, separator, Quoted(cell.text()));
      separator = ",";
    }
    csv += '\n';
  }
  return csv;
}

Table& Results::AddTable(std::string name, std::vector<std::string> columns, std::string caption) {
  return tables_.emplace_back(std::move(name), std::move(columns), std::move(caption));
}

void Results::Judge(Verdict verdict) { verdicts_.push_back(std::move(verdict)); }

absl::Status Results::Write(const std::string& folder) const {
  Table list("tables", {"name", "caption"}, "");
  for (const Table& table : tables_) {
    list.Add({table.name(), table.caption()});
    PHIMAP_RETURN_IF_ERROR(
        WriteText(absl::StrCat(folder, "/", table.name(), ".csv"), table.ToCsv()));
  }
  Table judged("verdicts", {"claim", "printed", "measured", "rule", "agrees", "why_not"}, "");
  for (const Verdict& verdict : verdicts_) {
    judged.Add({verdict.claim, verdict.printed, verdict.measured, verdict.rule,
                verdict.agrees ? "yes" : "no", verdict.why_not});
  }
  PHIMAP_RETURN_IF_ERROR(WriteText(folder + "/tables.csv", list.ToCsv()));
  return WriteText(folder + "/verdicts.csv", judged.ToCsv());
}

}  // namespace phimap::lab
