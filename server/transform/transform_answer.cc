#include "server/transform/transform_answer.h"

#include <cstring>
#include <string>
#include <vector>

#include "phimap/v1/transform_service.pb.h"
#include "server/transform/version_ref_to_proto.h"

namespace phimap {
namespace {

using Response = v1::TransformResponse;
// One function writes both messages, so their field numbers must agree.
static_assert(static_cast<int>(Response::kVersionFieldNumber) ==
              static_cast<int>(v1::TransformStreamResponse::kVersionFieldNumber));
static_assert(static_cast<int>(Response::kFeaturesFieldNumber) ==
              static_cast<int>(v1::TransformStreamResponse::kFeaturesFieldNumber));
static_assert(static_cast<int>(Response::kResidualsFieldNumber) ==
              static_cast<int>(v1::TransformStreamResponse::kResidualsFieldNumber));
static_assert(static_cast<int>(Response::kResidualAllowancesFieldNumber) ==
              static_cast<int>(v1::TransformStreamResponse::kResidualAllowancesFieldNumber));

}  // namespace

void TransformAnswer::Plan(const VersionHandle& version, int64_t rows, bool names_version,
                           const Residual* residual) {
  residual_ = residual;
  const Engine& engine = version.engine();
  const auto bytes =
      static_cast<size_t>(rows * engine.output_columns() * FloatTypeBytes(engine.serving_type()));
  const int values = engine.serving_type() == FloatType::kFloat32
                         ? v1::DenseRows::kFloat32LeFieldNumber
                         : v1::DenseRows::kFloat64LeFieldNumber;
  if (names_version) {
    Response named;
    RefToProto(version.record(), named.mutable_version());
    message_.AddBytes(named.SerializeAsString());
  }
  v1::DenseRows shape;
  shape.set_rows(static_cast<int>(rows));
  shape.set_columns(static_cast<int>(engine.output_columns()));
  const std::string shape_bytes = shape.SerializeAsString();
  message_.AddFieldHead(Response::kFeaturesFieldNumber,
                        shape_bytes.size() + PlannedAnswer::FieldHeadBytes(values, bytes) + bytes);
  message_.AddBytes(shape_bytes);
  features_ = message_.AddField(values, bytes);
  if (residual != nullptr) {
    const size_t column_bytes = static_cast<size_t>(rows) * sizeof(double);
    residuals_ = message_.AddField(Response::kResidualsFieldNumber, column_bytes);
    allowances_ = message_.AddField(Response::kResidualAllowancesFieldNumber, column_bytes);
  }
}

void TransformAnswer::Complete(const ExamplesView& seen) {
  if (residual_ == nullptr) return;
  // Vectors are needed because the fields in the message may not be aligned for doubles.
  std::vector<double> values(static_cast<size_t>(seen.rows()));
  std::vector<double> allowances(values.size());
  residual_->Compute(seen, Features(), values.data(), allowances.data());
  std::memcpy(message_.field(residuals_), values.data(), values.size() * sizeof(double));
  std::memcpy(message_.field(allowances_), allowances.data(), values.size() * sizeof(double));
}

}  // namespace phimap
