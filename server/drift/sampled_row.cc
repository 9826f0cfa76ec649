#include "server/drift/sampled_row.h"

#include <cstring>
#include <utility>

namespace phimap {

SampledRow::SampledRow(VersionHandle version, const ExamplesView& rows, const RowsView& features,
                       int64_t index)
    : version_(std::move(version)), kind_(rows.kind()), shape_(features.Slice(index, 1)) {
  if (const StringsView* const strings = rows.strings()) {
    string_ = (*strings)[index];
  } else {
    numbers_.resize(static_cast<size_t>(rows.columns()));
    rows.CopyRow(index, numbers_.data());
  }
  const auto bytes = static_cast<size_t>(shape_.RowBytes());
  features_.resize((bytes + sizeof(double) - 1) / sizeof(double));
  std::memcpy(features_.data(), shape_.data, bytes);
  shape_.data = reinterpret_cast<const char*>(features_.data());
}

ExamplesView SampledRow::row() const {
  if (IsString(kind_)) {
    return StringsView{kind_, &string_at_, 1, static_cast<int64_t>(string_.size())};
  }
  return RowsView{.data = reinterpret_cast<const char*>(numbers_.data()),
                  .type = FloatType::kFloat64,
                  .rows = 1,
                  .columns = static_cast<int64_t>(numbers_.size())};
}

RowsView SampledRow::features() const { return shape_; }

int64_t SampledRow::BytesOf(const ExamplesView& rows, const RowsView& features, int64_t index) {
  const StringsView* const strings = rows.strings();
  const int64_t row = strings != nullptr ? static_cast<int64_t>((*strings)[index].size())
                                         : rows.columns() * int64_t{sizeof(double)};
  return row + features.RowBytes() + int64_t{sizeof(SampledRow)};
}

}  // namespace phimap
