// Measures what it costs a Transform to compare the request's column names with those of the
// version. Parses and checks a request of one row of 31 numbers, with the hash of the names and
// without it.
//
// Not part of bench/run, because this program compares with a limit of 1 µs, not with another
// system.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/interleaved.h"
#include "core/digest/named_columns.h"
#include "core/status/check.h"
#include "phimap/v1/transform_service.pb.h"
#include "server/registry/version_handle.h"
#include "server/transform/row_messages.h"

namespace phimap::bench {
namespace {

constexpr double kLimitUs = 1;
constexpr int kColumns = 31;

std::string Serialized(uint64_t hash) {
  v1::TransformRequest request;
  request.set_reference("letters@prod");
  request.set_column_names_hash(hash);
  v1::DenseRows& rows = *request.mutable_examples()->mutable_dense();
  rows.set_rows(1);
  rows.set_columns(kColumns);
  rows.set_float32_le(std::string(4 * kColumns, '\0'));
  return request.SerializeAsString();
}

int Run() {
  std::vector<std::string> names;
  for (int i = 0; i < kColumns; ++i) names.push_back(absl::StrCat("column_", i));
  auto live = std::make_shared<LiveVersion>();
  live->columns = NamedColumns(names);
  const VersionHandle version(live);
  const auto check = [&version](const std::string& bytes) {
    v1::TransformRequest request;
    PHIMAP_CHECK(request.ParseFromString(bytes));
    PHIMAP_CHECK(
        CheckColumnNamesHash(version, request.column_names_hash(), "column_names_hash").ok());
  };
  const std::string without = Serialized(0);
  const std::string with = Serialized(ColumnNamesHash(names));
  std::vector<Contender> contenders = {{"without", [&] { check(without); }},
                                       {"with", [&] { check(with); }}};
  TimeInterleaved({.rounds = 31}, contenders);
  const double cost_us = contenders[1].median_us - contenders[0].median_us;
  absl::PrintF(
      "parse and check of one row: %.3f us without names, %.3f us with: %.3f us (limit %g)\n",
      contenders[0].median_us, contenders[1].median_us, cost_us, kLimitUs);
  return cost_us < kLimitUs ? 0 : 1;
}

}  // namespace
}  // namespace phimap::bench

int main() { return phimap::bench::Run(); }
