// `phimap verify`: checks that a server answers a version's reference vectors bit for bit.
#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/commands/commands.h"
#include "client/cli/local/local_maps.h"
#include "client/cli/views/views.h"
#include "client/cpp/client.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

using client::RowBlock;

RowBlock BlockOf(const v1::DenseRows& rows) {
  const bool wide = rows.values_case() == v1::DenseRows::kFloat64Le;
  return {.type = wide ? client::FloatType::kFloat64 : client::FloatType::kFloat32,
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

// Returns a block of `rows` rows that repeats the rows of `block` in order.
RowBlock InTurn(const RowBlock& block, int32_t rows) {
  RowBlock repeated{.type = block.type, .rows = rows, .columns = block.columns, .values_le = {}};
  for (int32_t i = 0; i < rows; ++i) {
    repeated.values_le += OneRow(block, i % block.rows).values_le;
  }
  return repeated;
}

// Number of rows of the large batch. 48 rows fill a tile of the engine. The other 23 rows form a
// smaller tile, which every vector unit divides into full blocks of rows and one lower block (12 +
// 11, or 6 + 6 + 6 + 5). The batch has fewer rows if the messages would be large, but at least as
// many as there are reference vectors.
int32_t BatchRows(const RowBlock& rows, const RowBlock& features) {
  constexpr int64_t kRows = 48 + 23;
  constexpr int64_t kMostBytes = int64_t{16} << 20;
  const int64_t row_bytes = 8 * std::max<int64_t>({1, rows.columns, features.columns});
  return static_cast<int32_t>(
      std::max<int64_t>(rows.rows, std::min(kRows, kMostBytes / row_bytes)));
}

// Returns the block's numbers as float64.
RowBlock Widened(const RowBlock& block) {
  std::vector<double> values;
  for (int32_t i = 0; i < block.rows; ++i) {
    for (int32_t j = 0; j < block.columns; ++j) values.push_back(block.At(i, j));
  }
  return client::MakeRowBlock(absl::MakeConstSpan(values), block.columns);
}

std::string ShapeAndType(const RowBlock& block) {
  const absl::string_view type = block.type == client::FloatType::kFloat64 ? "float64" : "float32";
  return absl::StrCat(block.rows, " × ", block.columns, " ", type);
}

// Row i of `expected` is reference vector (first_row + i) mod reference_rows.
absl::Status Compare(const RowBlock& expected, const RowBlock& actual, int32_t first_row,
                     int32_t reference_rows) {
  if (expected.values_le == actual.values_le) return absl::OkStatus();
  if (expected.rows != actual.rows || expected.columns != actual.columns ||
      expected.type != actual.type) {
    return absl::DataLossError(
        absl::StrCat("expected ", ShapeAndType(expected), " features, got ", ShapeAndType(actual)));
  }
  const size_t bytes = static_cast<size_t>(client::ValueSizeBytes(expected.type));
  size_t at = 0;
  while (expected.values_le.compare(at, bytes, actual.values_le, at, bytes) == 0) at += bytes;
  const int32_t row = static_cast<int32_t>(at / bytes) / expected.columns;
  const int32_t column = static_cast<int32_t>(at / bytes) % expected.columns;
  return absl::DataLossError(absl::StrCat(
      "reference vector ", (first_row + row) % reference_rows, ", feature ", column,
      ", in a batch of ", expected.rows, ": expected ", expected.At(row, column), ", got ",
      actual.At(row, column),
      "; the server's machine has no fused multiply-add, or its arithmetic is broken"));
}

// Checks that there are reference vectors, and that not all of their features are 0, because a
// comparison would then show nothing.
absl::Status CheckReferenceVectors(const v1::Certificate& certificate) {
  if (!certificate.has_self_check()) {
    return absl::FailedPreconditionError(
        "the version has no reference vectors: it maps strings, or its kernel is remote, or it was "
        "built on a machine without fused multiply-add, or the features of every candidate row are "
        "0 or overflow");
  }
  const v1::SelfCheck& check = certificate.self_check();
  if (check.rows().rows() < 1 || check.features().rows() != check.rows().rows()) {
    return absl::DataLossError(absl::StrCat("the version has ", check.rows().rows(),
                                            " reference vectors, but the features of ",
                                            check.features().rows()));
  }
  if (SelfCheckIsAllZero(check)) {
    return absl::FailedPreconditionError(
        "all features of the version's reference vectors are 0, because these are too far from the "
        "landmarks for the kernel. A broken engine would return 0 too, so a comparison proves "
        "nothing; build the version again to get reference vectors near the landmarks");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunVerify(const VerifyArguments& arguments, CommandContext& context) {
  if (IsArtifactPath(arguments.reference)) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kReferenceInvalid, "reference",
                     absl::StrCat("expected a version of a server, got the file ",
                                  arguments.reference, "; phimap inspect ", arguments.reference,
                                  " computes a file's reference vectors"));
  }
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version,
                          context.client.GetVersion(arguments.reference));
  PHIMAP_RETURN_IF_ERROR(CheckReferenceVectors(version.certificate()));
  const RowBlock rows = BlockOf(version.certificate().self_check().rows());
  const RowBlock features = BlockOf(version.certificate().self_check().features());
  const std::string reference = client::ReferenceTo(version.ref());
  const client::TransformOptions options{.expected_digest = version.ref().digest()};
  const int32_t batch = BatchRows(rows, features);
  const auto compare = [&](const RowBlock& sent, const RowBlock& expected,
                           int32_t first_row) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const client::TransformResult result,
                            context.client.Transform(reference, sent, options));
    return Compare(expected, result.features, first_row, rows.rows);
  };
  for (const RowBlock& encoded : {rows, Widened(rows)}) {
    PHIMAP_RETURN_IF_ERROR(compare(encoded, features, 0));
    for (int32_t i = 0; i < rows.rows; ++i) {
      PHIMAP_RETURN_IF_ERROR(compare(OneRow(encoded, i), OneRow(features, i), i));
    }
    PHIMAP_RETURN_IF_ERROR(compare(InTurn(encoded, batch), InTurn(features, batch), 0));
  }
  context.out << reference << ": " << rows.rows << " reference vectors × "
              << CountOf(features.columns, "feature")
              << " match bit for bit, alone, together and in a batch of " << batch
              << ", from float32 and float64\n";
  return absl::OkStatus();
}

Command AddVerify(CLI::App& app) {
  auto arguments = std::make_shared<VerifyArguments>();
  VerifyArguments& verify = *arguments;
  CLI::App* command = app.add_subcommand(
      "verify", "Check that the server reproduces a version's reference vectors bit for bit");
  command
      ->add_option("NAME[@VERSION]", verify.reference,
                   "A mapping or a version of it (default: the newest)")
      ->required();
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunVerify(*arguments, context); }};
}

}  // namespace phimap::cli
