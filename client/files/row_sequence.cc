#include "client/files/row_sequence.h"

#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

const char* TypeName(client::FloatType type) {
  return type == client::FloatType::kFloat32 ? "float32" : "float64";
}

absl::Status DoesNotFit(const std::string& path, const std::string& first, absl::string_view what,
                        const std::string& actual, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("the files of one stream must have the same ",
                                                 what, "\n  ", first, " has ", expected, "\n  ",
                                                 path, " has ", actual));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowSequence>> RowSequence::Open(std::vector<std::string> paths,
                                                               RowsOpener opener) {
  std::unique_ptr<RowSequence> sequence(new RowSequence(std::move(paths), std::move(opener)));
  PHIMAP_RETURN_IF_ERROR(sequence->LookAtAll());
  if (sequence->current_.rows == nullptr) PHIMAP_RETURN_IF_ERROR(sequence->OpenNext());
  return sequence;
}

absl::Status RowSequence::LookAtAll() {
  std::optional<int64_t> rows = 0;
  for (size_t i = 0; i < paths_.size(); ++i) {
    std::error_code error;
    if (paths_[i] == "-" || !std::filesystem::is_regular_file(paths_[i], error)) {
      regular_ = false;
      // A pipe can be opened only once. If it comes first, it is opened here, because it determines
      // the properties of the other files.
      if (i == 0) PHIMAP_RETURN_IF_ERROR(OpenNext());
      continue;
    }
    const int64_t size = static_cast<int64_t>(std::filesystem::file_size(paths_[i], error));
    sizes_.push_back(size);
    total_size_ += size;
    PHIMAP_ASSIGN_OR_RETURN(const OpenedRows opened, opener_(paths_[i]));
    PHIMAP_RETURN_IF_ERROR(CheckFits(opened, paths_[i]));
    const std::optional<int64_t> count = opened.rows->row_count();
    rows = rows.has_value() && count.has_value() ? std::optional(*rows + *count) : std::nullopt;
  }
  if (regular_) {
    row_count_ = rows;
  } else {
    sizes_.clear();
  }
  return absl::OkStatus();
}

absl::Status RowSequence::CheckFits(const OpenedRows& opened, const std::string& path) {
  if (!std::exchange(known_, true)) {
    columns_ = opened.rows->columns();
    header_ = opened.header;
    column_names_ = opened.rows->column_names();
    left_out_ = opened.left_out;
    type_ = opened.type;
    return absl::OkStatus();
  }
  if (opened.header != header_) {
    return DoesNotFit(path, paths_[0], "header", absl::StrJoin(opened.header, ","),
                      absl::StrJoin(header_, ","));
  }
  if (opened.rows->columns() != columns_) {
    return DoesNotFit(path, paths_[0], "number of columns", absl::StrCat(opened.rows->columns()),
                      absl::StrCat(columns_));
  }
  if (opened.type.has_value() && opened.type != type_) {
    return DoesNotFit(path, paths_[0], "type after conversion to float32 or float64",
                      TypeName(*opened.type), TypeName(*type_));
  }
  return absl::OkStatus();
}

absl::Status RowSequence::OpenNext() {
  PHIMAP_ASSIGN_OR_RETURN(OpenedRows opened, opener_(paths_[next_]));
  PHIMAP_RETURN_IF_ERROR(CheckFits(opened, paths_[next_]));
  const std::lock_guard<std::mutex> lock(mutex_);
  current_ = std::move(opened);
  if (interrupted_) current_.rows->Interrupt();
  return absl::OkStatus();
}

void RowSequence::CloseCurrent() {
  if (current_.labels != nullptr) {
    std::vector<std::string> labels = current_.labels->TakeLabels();
    std::move(labels.begin(), labels.end(), std::back_inserter(labels_));
  }
  if (!sizes_.empty()) done_size_ += sizes_[next_];
  ++next_;
  const std::lock_guard<std::mutex> lock(mutex_);
  current_ = OpenedRows{};
}

absl::StatusOr<client::ExampleBlock> RowSequence::Next(const client::BlockLimits& limits) {
  while (next_ < paths_.size()) {
    if (current_.rows == nullptr) PHIMAP_RETURN_IF_ERROR(OpenNext());
    PHIMAP_ASSIGN_OR_RETURN(client::ExampleBlock block, current_.rows->Next(limits));
    if (block.empty()) CloseCurrent();
    NoteShare();
    if (!block.empty()) return block;
  }
  return client::ExampleBlock{};
}

void RowSequence::NoteShare() {
  if (sizes_.empty() || total_size_ == 0) return;
  const double current = current_.rows == nullptr ? 0
                                                  : current_.rows->share_read().value_or(0) *
                                                        static_cast<double>(sizes_[next_]);
  share_ = (static_cast<double>(done_size_) + current) / static_cast<double>(total_size_);
}

std::optional<double> RowSequence::share_read() const {
  if (sizes_.empty() || total_size_ == 0) return std::nullopt;
  return share_.load();
}

absl::Status RowSequence::Rewind() {
  if (!regular_) return absl::UnimplementedError("one of the files can be read only once");
  labels_.clear();
  next_ = 0;
  done_size_ = 0;
  share_ = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = false;
    current_ = OpenedRows{};
  }
  return OpenNext();
}

void RowSequence::Interrupt() {
  const std::lock_guard<std::mutex> lock(mutex_);
  interrupted_ = true;
  if (current_.rows != nullptr) current_.rows->Interrupt();
}

std::vector<std::string> RowSequence::TakeLabels() {
  std::vector<std::string> labels = std::exchange(labels_, {});
  if (current_.labels == nullptr) return labels;
  std::vector<std::string> more = current_.labels->TakeLabels();
  std::move(more.begin(), more.end(), std::back_inserter(labels));
  return labels;
}

}  // namespace phimap::cli
