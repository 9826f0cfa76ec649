#include "server/transform/transform_checks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/serving/row_server.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

}  // namespace

absl::Status CheckDigest(const VersionHandle& version, absl::string_view expected) {
  const VersionRecord& record = version.record();
  if (expected.empty() || expected == record.digest) return absl::OkStatus();
  return MakeError(Code::kFailedPrecondition, "DIGEST_MISMATCH", "expected_digest",
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
      Code::kInvalidArgument, "COLUMN_NAMES_MISMATCH", field,
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
        Code::kInvalidArgument, "SELF_VALUES_MISSING", field,
        absl::StrCat("for a precomputed kernel, the residual needs K(x, x) as the last of ",
                     version.engine().input_columns() + 1, " columns; got ", rows.columns(),
                     " columns"),
        {{"expected", absl::StrCat(version.engine().input_columns() + 1)},
         {"actual", absl::StrCat(rows.columns())}});
  }
  return MakeError(Code::kFailedPrecondition, "RESIDUAL_NOT_AVAILABLE", field,
                   absl::StrCat("version ", version.record().number, " of \"",
                                version.record().mapping, "\" is ", version.record().mapping_text,
                                "; only f2 on inputs that are not projected has residuals"),
                   {{"mapping", version.record().mapping_text}});
}

}  // namespace phimap
