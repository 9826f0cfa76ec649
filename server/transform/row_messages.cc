#include "server/transform/row_messages.h"

#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/plan/residual.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "server/transform/row_server.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

absl::Status CheckCount(const char* field, int64_t count, int64_t limit) {
  if (count >= 1 && count <= limit) return absl::OkStatus();
  return MakeError(Code::kInvalidArgument, reason::kFieldOutOfRange, field,
                   absl::StrCat("expected 1..", limit, ", got ", count),
                   {{"actual", absl::StrCat(count)}, {"limit", absl::StrCat(limit)}});
}

absl::Status WrongLength(const char* field, const char* unit, int64_t expected, int64_t actual,
                         const v1::DenseRows& dense) {
  return MakeError(
      Code::kInvalidArgument, reason::kLengthMismatch, field,
      absl::StrCat("expected ", expected, " ", unit, " (", CountOf(dense.rows(), "row"), " × ",
                   CountOf(dense.columns(), "column"), "), got ", actual),
      {{"expected", absl::StrCat(expected)}, {"actual", absl::StrCat(actual)}});
}

absl::Status WrongLength(const char* field, const std::string& expected, int64_t bytes,
                         size_t actual) {
  return MakeError(Code::kInvalidArgument, reason::kLengthMismatch, field,
                   absl::StrCat("expected ", bytes, " bytes (", expected, "), got ", actual),
                   {{"expected", absl::StrCat(bytes)}, {"actual", absl::StrCat(actual)}});
}

absl::StatusOr<RowsView> FromBytes(const char* field, const std::string& bytes, FloatType type,
                                   const v1::DenseRows& dense) {
  const RowsView rows{bytes.data(), type, dense.rows(), dense.columns()};
  // At most 65536 · 65536 · 8 = 2^35, so this does not overflow.
  const int64_t expected = rows.rows * rows.RowBytes();
  if (std::ssize(bytes) != expected)
    return WrongLength(field, "bytes", expected, bytes.size(), dense);
  return rows;
}

absl::StatusOr<RowsView> FromNumbers(const v1::DenseRows& dense) {
  const auto& values = dense.numbers().values();
  const int64_t expected = int64_t{dense.rows()} * dense.columns();
  if (values.size() != expected) {
    return WrongLength("examples.dense.numbers", "numbers", expected, values.size(), dense);
  }
  return RowsView{reinterpret_cast<const char*>(values.data()), FloatType::kFloat64, dense.rows(),
                  dense.columns()};
}

absl::StatusOr<RowsView> FromDense(const v1::DenseRows& dense) {
  PHIMAP_RETURN_IF_ERROR(CheckCount("examples.dense.rows", dense.rows(), kMaxRowsPerMessage));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("examples.dense.columns", dense.columns(), kMaxColumnsPerMessage));
  switch (dense.values_case()) {
    case v1::DenseRows::kFloat32Le:
      return FromBytes("examples.dense.float32_le", dense.float32_le(), FloatType::kFloat32, dense);
    case v1::DenseRows::kFloat64Le:
      return FromBytes("examples.dense.float64_le", dense.float64_le(), FloatType::kFloat64, dense);
    case v1::DenseRows::kNumbers:
      return FromNumbers(dense);
    case v1::DenseRows::VALUES_NOT_SET:
      break;
  }
  return MakeError(Code::kInvalidArgument, reason::kFieldMissing, "examples.dense.values",
                   "expected one of float32_le, float64_le and numbers, got none");
}

// Values and the field that holds them; null if no field does.
struct SparseValues {
  const char* field = nullptr;
  const std::string* bytes = nullptr;
  FloatType type = FloatType::kFloat64;
};

SparseValues ValuesOf(const v1::SparseRows& sparse) {
  switch (sparse.values_case()) {
    case v1::SparseRows::kFloat32Le:
      return {"examples.sparse.float32_le", &sparse.float32_le(), FloatType::kFloat32};
    case v1::SparseRows::kFloat64Le:
      return {"examples.sparse.float64_le", &sparse.float64_le(), FloatType::kFloat64};
    case v1::SparseRows::VALUES_NOT_SET:
      break;
  }
  return {};
}

// Checks that the offsets begin with 0 and end with the number of entries.
absl::Status CheckOuterOffsets(const SparseRowsView& rows, int64_t entries) {
  if (rows.offset(0) == 0 && rows.offset(rows.rows) == entries) return absl::OkStatus();
  return MakeError(
      Code::kInvalidArgument, reason::kOffsetsInvalid, "examples.sparse.row_offsets_le",
      absl::StrCat("expected the first offset to be 0 and the last to be ", entries,
                   ", the number of column indices; got ", rows.offset(0), " and ",
                   rows.offset(rows.rows)),
      {{"expected", absl::StrCat(entries)}, {"actual", absl::StrCat(rows.offset(rows.rows))}});
}

// Checks the first and the last offset, because the other lengths depend on the number of entries.
// The offsets in between are checked on a worker.
absl::StatusOr<ExamplesView> FromSparse(const v1::SparseRows& sparse) {
  PHIMAP_RETURN_IF_ERROR(CheckCount("examples.sparse.rows", sparse.rows(), kMaxRowsPerMessage));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("examples.sparse.columns", sparse.columns(), kMaxColumnsPerMessage));
  const SparseValues values = ValuesOf(sparse);
  if (values.bytes == nullptr) {
    return MakeError(Code::kInvalidArgument, reason::kFieldMissing, "examples.sparse.values",
                     "expected one of float32_le and float64_le, got none");
  }
  const int64_t offsets = int64_t{sparse.rows()} + 1;
  if (static_cast<int64_t>(sparse.row_offsets_le().size()) != 8 * offsets) {
    return WrongLength("examples.sparse.row_offsets_le",
                       absl::StrCat("int64 offsets: one for each of ",
                                    CountOf(sparse.rows(), "row"), " and one for the end"),
                       8 * offsets, sparse.row_offsets_le().size());
  }
  const int64_t entries = static_cast<int64_t>(sparse.column_indices_le().size()) / 4;
  const SparseRowsView rows{values.type,
                            sparse.rows(),
                            sparse.columns(),
                            sparse.row_offsets_le().data(),
                            sparse.column_indices_le().data(),
                            values.bytes->data()};
  PHIMAP_RETURN_IF_ERROR(CheckOuterOffsets(rows, entries));
  const std::string count = CountOf(entries, "entry");
  if (static_cast<int64_t>(sparse.column_indices_le().size()) != 4 * entries) {
    return WrongLength("examples.sparse.column_indices_le",
                       absl::StrCat("an int32 for each of ", count), 4 * entries,
                       sparse.column_indices_le().size());
  }
  const int64_t value_bytes = entries * FloatTypeBytes(values.type);
  if (static_cast<int64_t>(values.bytes->size()) != value_bytes) {
    return WrongLength(values.field,
                       absl::StrCat("a ", FloatTypeName(values.type), " for each of ", count),
                       value_bytes, values.bytes->size());
  }
  return ExamplesView(rows);
}

template <typename Values>
absl::StatusOr<ExamplesView> FromStrings(const char* field, ExampleKind kind,
                                         const Values& values) {
  PHIMAP_RETURN_IF_ERROR(CheckCount(field, values.size(), kMaxRowsPerMessage));
  StringsView strings{kind, values.data(), values.size(), 0};
  for (const std::string& value : values) strings.bytes += static_cast<int64_t>(value.size());
  return ExamplesView(strings);
}

}  // namespace

absl::StatusOr<ExamplesView> ExamplesFromProto(const v1::Examples& examples) {
  switch (examples.kind_case()) {
    case v1::Examples::kDense: {
      PHIMAP_ASSIGN_OR_RETURN(const RowsView rows, FromDense(examples.dense()));
      return ExamplesView(rows);
    }
    case v1::Examples::kSparse:
      return FromSparse(examples.sparse());
    case v1::Examples::kBytes:
      return FromStrings("examples.bytes.values", ExampleKind::kBytes, examples.bytes().values());
    case v1::Examples::kText:
      return FromStrings("examples.text.values", ExampleKind::kText, examples.text().values());
    case v1::Examples::KIND_NOT_SET:
      break;
  }
  return MakeError(Code::kInvalidArgument, reason::kFieldMissing, "examples",
                   "expected one of dense, sparse, bytes and text, got none");
}

absl::Status CheckDigest(const VersionHandle& version, absl::string_view expected) {
  const VersionRecord& record = version.record();
  if (expected.empty() || expected == record.digest) return absl::OkStatus();
  return MakeError(Code::kFailedPrecondition, reason::kDigestMismatch, "expected_digest",
                   absl::StrCat("version ", record.number, " of \"", record.mapping,
                                "\" has the digest ", record.digest),
                   {{"expected", std::string(expected.substr(0, record.digest.size()))},
                    {"actual", record.digest}});
}

absl::Status CheckColumnNamesHash(const VersionHandle& version, uint64_t hash,
                                  absl::string_view field) {
  const NamedColumns& columns = version.columns();
  if (hash == 0 || columns.hash() == 0 || hash == columns.hash()) return absl::OkStatus();
  const VersionRecord& record = version.record();
  return MakeError(
      Code::kInvalidArgument, reason::kColumnNamesMismatch, field,
      absl::StrCat("the columns have other names, or another order, than those of version ",
                   record.number, " of ", Quoted(record.mapping), ", which are ",
                   ShownColumnNames(columns.names()), "; send them as GetVersion lists them"),
      {{"expected", absl::StrCat(columns.hash())}, {"actual", absl::StrCat(hash)}});
}

absl::string_view RowsField(ExampleKind kind) {
  switch (kind) {
    case ExampleKind::kDense:
      return "examples.dense.";
    case ExampleKind::kSparse:
      return "examples.sparse.";
    case ExampleKind::kBytes:
      return "examples.bytes.";
    case ExampleKind::kText:
      break;
  }
  return "examples.text.";
}

absl::StatusOr<const Residual*> ResidualOf(const VersionHandle& version, const ExamplesView& rows,
                                           absl::string_view field) {
  if (version.residual() != nullptr) {
    if (HasSelfValues(version, rows)) return version.residual();
    return MakeError(
        Code::kInvalidArgument, reason::kSelfValuesMissing, field,
        absl::StrCat("for a precomputed kernel, the residual needs K(x, x) as the last of ",
                     CountOf(version.engine().input_columns() + 1, "column"), "; got ",
                     rows.columns(), " columns"),
        {{"expected", absl::StrCat(version.engine().input_columns() + 1)},
         {"actual", absl::StrCat(rows.columns())}});
  }
  return MakeError(
      Code::kFailedPrecondition, reason::kResidualNotAvailable, field,
      absl::StrCat("version ", version.record().number, " of \"", version.record().mapping,
                   "\" is ", version.record().spec_text, "; only ", Residual::kFamily,
                   " on inputs that are not projected has residuals"),
      {{"spec", version.record().spec_text}});
}

absl::Status WithRequestNumber(const absl::Status& status, int64_t number) {
  const std::string message = absl::StrCat("request ", number, ": ", status.message());
  std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return absl::Status(status.code(), message);
  detail->metadata["request"] = absl::StrCat(number);
  return MakeError(status.code(), detail->reason, detail->field,
                   absl::StrCat("request ", number, ": ", WithoutField(status)), detail->metadata,
                   detail->retry_delay_ms);
}

}  // namespace phimap
