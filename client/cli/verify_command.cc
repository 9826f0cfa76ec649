#include "client/cli/verify_command.h"

#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

using client::FloatType;
using client::RowBlock;

RowBlock BlockOf(const v1::DenseRows& rows) {
  const bool wide = rows.values_case() == v1::DenseRows::kFloat64Le;
  return {.type = wide ? FloatType::kFloat64 : FloatType::kFloat32,
          .rows = rows.rows(),
          .columns = rows.columns(),
          .values_le = wide ? rows.float64_le() : rows.float32_le()};
}

RowBlock OneRow(const RowBlock& block, int32_t row) {
  const size_t bytes = static_cast<size_t>(block.columns * client::ValueSizeBytes(block.type));
  return {.type = block.type,
          .rows = 1,
          .columns = block.columns,
          .values_le = block.values_le.substr(row * bytes, bytes)};
}

// The same numbers as float64.
RowBlock Widened(const RowBlock& block) {
  std::vector<double> values;
  for (int32_t i = 0; i < block.rows; ++i) {
    for (int32_t j = 0; j < block.columns; ++j) values.push_back(block.At(i, j));
  }
  return client::MakeRowBlock(absl::MakeConstSpan(values), block.columns);
}

absl::Status Compare(const RowBlock& expected, const RowBlock& actual, int32_t first_row) {
  if (expected.values_le == actual.values_le) return absl::OkStatus();
  if (expected.rows != actual.rows || expected.columns != actual.columns ||
      expected.type != actual.type) {
    return absl::DataLossError(absl::StrCat("expected ", expected.rows, " × ", expected.columns,
                                            " features, got ", actual.rows, " × ", actual.columns));
  }
  const size_t bytes = static_cast<size_t>(client::ValueSizeBytes(expected.type));
  size_t at = 0;
  while (expected.values_le.compare(at, bytes, actual.values_le, at, bytes) == 0) at += bytes;
  const int32_t row = static_cast<int32_t>(at / bytes) / expected.columns;
  const int32_t column = static_cast<int32_t>(at / bytes) % expected.columns;
  return absl::DataLossError(absl::StrCat(
      "golden row ", first_row + row, ", feature ", column, ": expected ", expected.At(row, column),
      ", got ", actual.At(row, column),
      "; the server's machine has no fused multiply-add, or its arithmetic is broken"));
}

}  // namespace

absl::Status RunVerify(const VerifyArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version,
                          context.client.GetVersion(arguments.reference));
  if (!version.certificate().has_self_check()) {
    return absl::FailedPreconditionError(
        "the version has no golden vectors: it was built on a machine without fused multiply-add");
  }
  const RowBlock rows = BlockOf(version.certificate().self_check().rows());
  const RowBlock features = BlockOf(version.certificate().self_check().features());
  const std::string reference = absl::StrCat(version.ref().mapping(), "@", version.ref().number());
  const client::TransformOptions options{.expected_digest = version.ref().digest()};
  for (const RowBlock& encoded : {rows, Widened(rows)}) {
    PHIMAP_ASSIGN_OR_RETURN(const client::TransformResult together,
                            context.client.Transform(reference, encoded, options));
    PHIMAP_RETURN_IF_ERROR(Compare(features, together.features, 0));
    for (int32_t i = 0; i < rows.rows; ++i) {
      PHIMAP_ASSIGN_OR_RETURN(const client::TransformResult alone,
                              context.client.Transform(reference, OneRow(encoded, i), options));
      PHIMAP_RETURN_IF_ERROR(Compare(OneRow(features, i), alone.features, i));
    }
  }
  context.out << reference << ": " << rows.rows << " golden rows × " << features.columns
              << " features have their bits, alone and together, from float32 and float64\n";
  return absl::OkStatus();
}

}  // namespace phimap::cli
