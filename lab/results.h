// Results of an experiment: tables, and verdicts on a paper's claims.
#ifndef PHIMAP_LAB_RESULTS_H_
#define PHIMAP_LAB_RESULTS_H_

#include <concepts>
#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap::lab {

// A cell of a table: a text, or a number with six significant digits.
class Cell {
 public:
  Cell(std::string text) : text_(std::move(text)) {}  // NOLINT: implicit, for rows in braces
  Cell(absl::string_view text) : text_(text) {}       // NOLINT
  Cell(const char* text) : text_(text) {}             // NOLINT
  Cell(double number);                                // NOLINT
  Cell(std::integral auto number) : text_(std::to_string(number)) {}  // NOLINT

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A CSV file with a header.
class Table {
 public:
  Table(std::string name, std::vector<std::string> columns, std::string caption)
      : name_(std::move(name)), caption_(std::move(caption)), columns_(std::move(columns)) {}

  // REQUIRES: one cell per column.
  void Add(std::vector<Cell> row);

  const std::string& name() const { return name_; }
  const std::string& caption() const { return caption_; }
  std::string ToCsv() const;

 private:
  std::string name_;
  std::string caption_;
  std::vector<std::string> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// The judgement of whether a measurement agrees with a claim.
struct Verdict {
  // Claim of the paper, or a condition that must hold; one sentence.
  std::string claim;
  // The number that the paper prints; empty if the paper prints none.
  std::string printed;
  std::string measured;
  // The rule that decides `agrees`, with the numbers of the rule.
  std::string rule;
  bool agrees = false;
  // If not empty, the claim is known not to hold as printed, and this is the reason. `lab/run`
  // fails if a verdict disagrees without a reason, or agrees although it has a reason.
  std::string why_not = "";

  bool is_expected() const { return agrees == why_not.empty(); }
};

class Results {
 public:
  // Adds a table, which lives as long as this object. It is written to NAME.csv; a table with a
  // caption is also shown in docs/lab.md.
  Table& AddTable(std::string name, std::vector<std::string> columns, std::string caption = "");
  void Judge(Verdict verdict);

  const std::deque<Table>& tables() const { return tables_; }
  const std::vector<Verdict>& verdicts() const { return verdicts_; }
  // Writes each table, verdicts.csv and tables.csv, which lists names and captions, into an
  // existing folder.
  absl::Status Write(const std::string& folder) const;

 private:
  std::deque<Table> tables_;
  std::vector<Verdict> verdicts_;
};

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_RESULTS_H_
