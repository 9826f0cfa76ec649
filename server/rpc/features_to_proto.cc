#include "server/rpc/features_to_proto.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Room for everything in an answer but the features.
constexpr int64_t kEnvelopeBytes = 1024;

// Where the features of `rows` go: the bytes field of the version's serving type.
char* Allocate(const Engine& engine, int64_t rows, v1::DenseRows* features) {
  features->set_rows(static_cast<int>(rows));
  features->set_columns(static_cast<int>(engine.output_columns()));
  std::string* const bytes = engine.serving_type() == FloatType::kFloat32
                                 ? features->mutable_float32_le()
                                 : features->mutable_float64_le();
  bytes->resize(rows * engine.output_columns() * FloatTypeBytes(engine.serving_type()));
  return bytes->data();
}

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

absl::Status CheckShape(const VersionHandle& version, const RowsView& rows,
                        const RpcLimits& limits) {
  const Engine& engine = version.engine();
  if (rows.columns != engine.input_columns()) {
    return MakeError(
        Code::kInvalidArgument, "WRONG_COLUMNS", "examples.dense.columns",
        absl::StrCat("expected ", engine.input_columns(), " columns, got ", rows.columns),
        {{"expected", absl::StrCat(engine.input_columns())},
         {"actual", absl::StrCat(rows.columns)}});
  }
  const int64_t row_bytes = engine.output_columns() * FloatTypeBytes(engine.serving_type());
  const int64_t fitting = (limits.max_message_bytes - kEnvelopeBytes) / row_bytes;
  if (rows.rows > fitting) {
    return MakeError(
        Code::kResourceExhausted, "MESSAGE_TOO_LARGE", "examples.dense.rows",
        absl::StrCat("the features of ", rows.rows, " rows take ", rows.rows * row_bytes,
                     " bytes, over the message limit of ", limits.max_message_bytes,
                     "; send at most ", fitting, " rows at once"),
        {{"actual", absl::StrCat(rows.rows)}, {"limit", absl::StrCat(fitting)}});
  }
  return absl::OkStatus();
}

int64_t FeatureBytes(const VersionHandle& version, int64_t rows) {
  const Engine& engine = version.engine();
  return rows * engine.output_columns() * FloatTypeBytes(engine.serving_type());
}

TransformWork MakeWork(const VersionHandle& version, const RowsView& rows, v1::DenseRows* features,
                       const RpcScope& scope, std::function<void(const absl::Status&)> done) {
  TransformWork work;
  work.engine = version.pinned_engine();
  work.rows = rows;
  work.deadline = scope.deadline();
  work.cancelled = scope.cancelled();
  work.prepare = [engine = work.engine.get(), rows, features]() -> absl::StatusOr<char*> {
    PHIMAP_RETURN_IF_ERROR(CheckFinite(rows, "examples.dense"));
    return Allocate(*engine, rows.rows, features);
  };
  work.done = std::move(done);
  return work;
}

}  // namespace phimap
