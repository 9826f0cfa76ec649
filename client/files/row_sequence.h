// Several files as one stream of rows.
#ifndef PHIMAP_CLIENT_FILES_ROW_SEQUENCE_H_
#define PHIMAP_CLIENT_FILES_ROW_SEQUENCE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/row_source.h"

namespace phimap::cli {

// A reader of one file.
struct OpenedRows {
  std::unique_ptr<client::RowSource> rows;
  // `rows` itself if it has labels; otherwise null.
  client::LabeledRowSource* labels = nullptr;
  // Names of all columns of CSV; other formats have none.
  std::vector<std::string> header = {};
  // Type of the rows of npy; other formats have none.
  std::optional<client::FloatType> type = {};
  // Columns of CSV that are not inputs because the version has none of that name.
  std::vector<std::string> left_out = {};
};

using RowsOpener = std::function<absl::StatusOr<OpenedRows>(const std::string& path)>;

// The rows of several files, one file after the other; one file is open at a time. All files must
// agree with the first one in the header of CSV, the number of columns, and the type of npy. Error
// messages show the values of both files.
//
// Thread-safety: as RowSource.
class RowSequence : public client::LabeledRowSource {
 public:
  // Opens each regular file once, so that a file that does not fit is an error before any row is
  // read. Pipes are checked when they are reached. REQUIRES: at least one path.
  static absl::StatusOr<std::unique_ptr<RowSequence>> Open(std::vector<std::string> paths,
                                                           RowsOpener opener);

  int32_t columns() const override { return columns_; }
  std::vector<std::string> column_names() const override { return column_names_; }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override;
  std::optional<int64_t> row_count() const override { return row_count_; }
  std::optional<double> share_read() const override;
  bool CanRewind() const override { return regular_; }
  absl::Status Rewind() override;
  void Interrupt() override;
  std::vector<std::string> TakeLabels() override;

  // Names of all columns of the first file.
  const std::vector<std::string>& header() const { return header_; }
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  RowSequence(std::vector<std::string> paths, RowsOpener opener)
      : paths_(std::move(paths)), opener_(std::move(opener)) {}

  absl::Status LookAtAll();
  // Opens the file `next_`.
  absl::Status OpenNext();
  // Compares a file with the first one. For the first file, records its properties.
  absl::Status CheckFits(const OpenedRows& opened, const std::string& path);
  void CloseCurrent();
  void NoteShare();

  const std::vector<std::string> paths_;
  const RowsOpener opener_;
  bool regular_ = true;
  // Whether a file was opened; the members below then describe the first one.
  bool known_ = false;
  int32_t columns_ = 0;
  std::vector<std::string> header_;
  std::vector<std::string> column_names_;
  std::vector<std::string> left_out_;
  std::optional<client::FloatType> type_;
  std::optional<int64_t> row_count_;

  // Sizes of the files; empty if one is a pipe.
  std::vector<int64_t> sizes_;
  int64_t total_size_ = 0;
  int64_t done_size_ = 0;
  std::atomic<double> share_ = 0;

  size_t next_ = 0;
  std::vector<std::string> labels_;
  // Held while current_ is replaced, and by Interrupt.
  std::mutex mutex_;
  OpenedRows current_;
  bool interrupted_ = false;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_ROW_SEQUENCE_H_
