// Sparse rows from a file of svmlight's format, which libsvm and liblinear read too.
#ifndef PHIMAP_CLIENT_FILES_SVMLIGHT_READER_H_
#define PHIMAP_CLIENT_FILES_SVMLIGHT_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/row_source.h"
#include "client/files/input_file.h"
#include "client/files/line_reader.h"

namespace phimap::cli {

struct SvmlightOptions {
  // Number of columns of every row. With 0, the largest index of the file determines it, and the
  // file is read twice.
  int32_t columns = 0;
  // Whether the file's indices begin with 0. The format prescribes that they begin with 1.
  bool zero_based = false;
};

// Reads lines `LABEL INDEX:VALUE INDEX:VALUE …`, separated by blanks, with rising indices; absent
// columns are 0. `qid:N` after the label, blank lines and text after a # are skipped. The label may
// be missing if labels are not kept. Numbers are read as float64. Memory: one block of rows.
//
// Every error is kInvalidArgument, and its message contains the file, the line, and the expected
// and actual value.
//
// Thread-safety: as RowSource.
class SvmlightReader : public client::LabeledRowSource {
 public:
  // Opens a file. Also returns an error if `columns` is not given for an input that can be read
  // only once. `cancel` ends the first pass.
  static absl::StatusOr<std::unique_ptr<SvmlightReader>> Open(std::unique_ptr<InputFile> file,
                                                              const SvmlightOptions& options,
                                                              client::CancelToken& cancel);

  int32_t columns() const override { return options_.columns; }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override;
  bool CanRewind() const override { return file_->CanRewind(); }
  absl::Status Rewind() override;
  void Interrupt() override { file_->Interrupt(); }
  std::optional<double> share_read() const override { return file_->share_read(); }

  // Returns no labels unless KeepLabels was called. After that call, a row without a label is an
  // error. A numeric label is normalised: "+1" and "1.0" become "1".
  std::vector<std::string> TakeLabels() override;
  void KeepLabels() { keep_labels_ = true; }

 private:
  // The entries of the rows of a block.
  struct Entries {
    std::vector<int64_t> offsets = {0};
    std::vector<int32_t> columns;
    std::vector<double> values;
  };

  SvmlightReader(std::unique_ptr<InputFile> file, const SvmlightOptions& options);

  // Returns the largest index of the file, as a column from 0; -1 if the file has none.
  absl::StatusOr<int64_t> LargestColumn();
  absl::Status CountColumns(client::CancelToken& cancel);
  // Reads the next line that is a row, without its comment; false at the end.
  absl::StatusOr<bool> NextLine();
  absl::Status TakeRow(Entries& entries);
  absl::Status TakeLabel(absl::string_view& rest);
  absl::Status TakeEntry(absl::string_view token, Entries& entries);
  // Parses the INDEX of an entry and returns the column, counted from 0.
  absl::StatusOr<int32_t> ColumnOf(absl::string_view index) const;

  const std::unique_ptr<InputFile> file_;
  SvmlightOptions options_;
  LineReader lines_;
  std::string line_;
  bool keep_labels_ = false;
  std::vector<std::string> labels_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_SVMLIGHT_READER_H_
