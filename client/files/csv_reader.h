// Rows of numbers from a CSV file with a header.
#ifndef PHIMAP_CLIENT_FILES_CSV_READER_H_
#define PHIMAP_CLIENT_FILES_CSV_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/row_source.h"
#include "client/files/column_choice.h"
#include "client/files/input_file.h"
#include "client/files/passthrough_cells.h"
#include "proto/rows/csv_tokenizer.h"

namespace phimap::cli {

// The first record is the header. Each later record has the same number of cells, with finite
// numbers in the cells of the inputs. Numbers are read as float64. Blank lines are permitted at the
// end only. Memory: one block of rows.
//
// Every error is kInvalidArgument, and its message contains the file, the line, the column (number
// from 1, and name), and the expected and actual value.
//
// Thread-safety: as RowSource.
class CsvReader : public client::LabeledRowSource {
 public:
  // Reads the header. `passthrough` gets the cells of passthrough columns; null if there are none.
  // A header whose cells are all numbers is refused, because it is probably the first row of a file
  // without a header and would be lost silently.
  static absl::StatusOr<std::unique_ptr<CsvReader>> Open(
      std::unique_ptr<InputFile> file, ColumnChoice choice, char delimiter,
      std::shared_ptr<PassthroughCells> passthrough = nullptr);
  // All columns but `label` are inputs. An empty `label` means that the file has no label column.
  static absl::StatusOr<std::unique_ptr<CsvReader>> Open(std::unique_ptr<InputFile> file,
                                                         const std::string& label,
                                                         char delimiter = ',');

  int32_t columns() const override { return static_cast<int32_t>(chosen_.inputs.size()); }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override;
  // Reads the next rows, at most `max_rows`.
  absl::StatusOr<client::RowBlock> NextRows(int32_t max_rows);
  bool CanRewind() const override { return file_->CanRewind(); }
  absl::Status Rewind() override;
  void Interrupt() override { file_->Interrupt(); }
  std::optional<double> share_read() const override { return file_->share_read(); }

  // Names of all columns.
  const std::vector<std::string>& header() const { return header_; }
  // Names of the inputs, in the order of the rows.
  std::vector<std::string> column_names() const override;
  // Columns that are not inputs because the version has none of that name.
  std::vector<std::string> left_out() const;
  // Labels are kept only after KeepLabels.
  std::vector<std::string> TakeLabels() override;
  client::RowFacts TakeFacts() override;
  void KeepLabels() { keep_labels_ = true; }

 private:
  CsvReader(std::unique_ptr<InputFile> file, ColumnChoice choice, char delimiter,
            std::shared_ptr<PassthroughCells> passthrough);

  absl::Status ReadHeader();
  absl::Status CheckNamesDiffer() const;
  absl::Status Choose();
  // Reads the next record that is a row; false at the end.
  absl::StatusOr<bool> NextRow();
  // Called after a blank line. Reads to the end; it is an error if a line that is not blank
  // follows.
  absl::StatusOr<bool> SkipBlankEnd();
  absl::Status AppendRow(std::vector<double>& values);
  // Keep what is known of the row, whose columns the choice names.
  absl::Status KeepLabel();
  absl::Status KeepFacts();
  absl::Status PassCellsThrough();
  std::vector<std::string> NamesAt(const std::vector<int>& places) const;
  absl::Status CellError(int column, absl::string_view message) const;
  // Returns a suggestion for a cell that is not a number; empty if there is none.
  std::string HintAt(int column) const;
  absl::Status LineError(int64_t line, absl::string_view message) const;

  const std::unique_ptr<InputFile> file_;
  const ColumnChoice choice_;
  const std::shared_ptr<PassthroughCells> passthrough_;
  CsvTokenizer tokenizer_;
  CsvRecord record_;
  std::vector<std::string> header_;
  ChosenColumns chosen_;
  bool keep_labels_ = false;
  std::vector<std::string> labels_;
  client::RowFacts facts_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_CSV_READER_H_
