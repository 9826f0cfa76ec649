#include "core/plan/example_block.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/words.h"

namespace phimap {
namespace {

constexpr size_t kEntryBytes = sizeof(int32_t) + sizeof(double);

template <typename T>
const char* BytesOf(const std::vector<T>& numbers) {
  return reinterpret_cast<const char*>(numbers.data());
}

template <typename T>
T NumberAt(absl::string_view bytes, size_t offset) {
  T number;
  std::memcpy(&number, bytes.data() + offset, sizeof(T));
  return number;
}

// Returns the column of entry e.
int32_t ColumnAt(absl::string_view bytes, size_t e) {
  return NumberAt<int32_t>(bytes, e * sizeof(int32_t));
}
double ValueAt(absl::string_view bytes, size_t e) {
  const size_t entries = bytes.size() / kEntryBytes;
  return NumberAt<double>(bytes, entries * sizeof(int32_t) + e * sizeof(double));
}

absl::Status CheckSparseBytes(int64_t columns, absl::string_view bytes) {
  if (bytes.size() % kEntryBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a sparse example has ", bytes.size(),
                                                   " bytes, expected a multiple of ", kEntryBytes));
  }
  int64_t last = -1;
  for (size_t e = 0; e < bytes.size() / kEntryBytes; ++e) {
    const int64_t column = ColumnAt(bytes, e);
    if (column <= last || column >= columns) {
      return absl::InvalidArgumentError(absl::StrCat("column ", column, " of a sparse example of ",
                                                     CountOf(columns, "column"),
                                                     " is out of order or out of range"));
    }
    if (!std::isfinite(ValueAt(bytes, e))) {
      return absl::InvalidArgumentError("a number of a sparse example is not finite");
    }
    last = column;
  }
  return absl::OkStatus();
}

}  // namespace

void ExampleBlock::AddEntry(int32_t column, double value) {
  indices_.push_back(column);
  values_.push_back(value);
}

void ExampleBlock::EndRow() {
  offsets_.push_back(static_cast<int64_t>(values_.size()));
  ++rows_;
}

void ExampleBlock::AddRow(const double* row) {
  PHIMAP_CHECK(!IsString(kind_));
  if (kind_ == ExampleKind::kDense) {
    values_.insert(values_.end(), row, row + columns_);
  } else {
    for (int64_t j = 0; j < columns_; ++j) {
      if (row[j] != 0) AddEntry(static_cast<int32_t>(j), row[j]);
    }
  }
  EndRow();
}

void ExampleBlock::AddString(std::string string) {
  PHIMAP_CHECK(IsString(kind_));
  string_bytes_ += static_cast<int64_t>(string.size());
  strings_.push_back(std::make_unique<const std::string>(std::move(string)));
  views_.push_back(strings_.back().get());
  ++rows_;
}

void ExampleBlock::AddBytes(absl::string_view bytes) {
  if (IsString(kind_)) return AddString(std::string(bytes));
  if (kind_ == ExampleKind::kDense) {
    const size_t before = values_.size();
    values_.resize(before + static_cast<size_t>(columns_));
    std::memcpy(values_.data() + before, bytes.data(), bytes.size());
  } else {
    for (size_t e = 0; e < bytes.size() / kEntryBytes; ++e) {
      AddEntry(ColumnAt(bytes, e), ValueAt(bytes, e));
    }
  }
  EndRow();
}

ExamplesView ExampleBlock::view() const {
  if (IsString(kind_)) return StringsView{kind_, views_.data(), rows_, string_bytes_};
  if (kind_ == ExampleKind::kDense) {
    return RowsView{
        .data = BytesOf(values_), .type = FloatType::kFloat64, .rows = rows_, .columns = columns_};
  }
  return SparseRowsView{.type = FloatType::kFloat64,
                        .rows = rows_,
                        .columns = columns_,
                        .offsets = BytesOf(offsets_),
                        .indices = BytesOf(indices_),
                        .values = BytesOf(values_)};
}

std::string ExampleBlock::Bytes(int64_t i) const {
  if (IsString(kind_)) return *views_[static_cast<size_t>(i)];
  const auto begin = static_cast<size_t>(offsets_[static_cast<size_t>(i)]);
  const auto entries = static_cast<size_t>(offsets_[static_cast<size_t>(i) + 1]) - begin;
  std::string bytes;
  if (kind_ == ExampleKind::kSparse) {
    bytes.assign(BytesOf(indices_) + begin * sizeof(int32_t), entries * sizeof(int32_t));
  }
  return bytes.append(BytesOf(values_) + begin * sizeof(double), entries * sizeof(double));
}

absl::Status ExampleBlock::CheckBytes(ExampleKind kind, int64_t columns, absl::string_view bytes) {
  if (IsString(kind)) return absl::OkStatus();
  if (kind == ExampleKind::kSparse) return CheckSparseBytes(columns, bytes);
  if (static_cast<int64_t>(bytes.size()) == columns * static_cast<int64_t>(sizeof(double))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("an example has ", bytes.size(),
                                                 " bytes, expected ", CountOf(columns, "number"),
                                                 " of 8 bytes each"));
}

}  // namespace phimap
