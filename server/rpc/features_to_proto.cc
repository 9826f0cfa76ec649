#include "server/rpc/features_to_proto.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/rpc/transform_path.h"

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
        Code::kInvalidArgument, "NO_SELF_VALUES", field,
        absl::StrCat("of a precomputed kernel it needs K(x, x) as the last of ",
                     version.engine().input_columns() + 1, " columns, got ", rows.columns()),
        {{"expected", absl::StrCat(version.engine().input_columns() + 1)},
         {"actual", absl::StrCat(rows.columns())}});
  }
  return MakeError(
      Code::kFailedPrecondition, "NO_RESIDUAL", field,
      absl::StrCat("version ", version.record().number, " of \"", version.record().mapping,
                   "\" is ", version.record().mapping_text,
                   "; residuals are of f2 on inputs that are not projected, and of no other"),
      {{"mapping", version.record().mapping_text}});
}

void AddResiduals(const Residual& residual, const ExamplesView& rows, const v1::DenseRows& features,
                  google::protobuf::RepeatedField<double>* residuals) {
  const std::string& bytes = features.values_case() == v1::DenseRows::kFloat32Le
                                 ? features.float32_le()
                                 : features.float64_le();
  residuals->Resize(static_cast<int>(rows.rows()), 0.0);
  residual.Compute(rows, bytes.data(), residuals->mutable_data());
}

char* AllocateFeatures(const Engine& engine, int64_t rows, v1::DenseRows* features) {
  features->set_rows(static_cast<int>(rows));
  features->set_columns(static_cast<int>(engine.output_columns()));
  std::string* const bytes = engine.serving_type() == FloatType::kFloat32
                                 ? features->mutable_float32_le()
                                 : features->mutable_float64_le();
  bytes->resize(rows * engine.output_columns() * FloatTypeBytes(engine.serving_type()));
  return bytes->data();
}

}  // namespace phimap
