#include "client/cli/commands/sweep_points.h"

#include <fcntl.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/digest/sha256.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

constexpr char kFormat[] = "phimap-sweep-1";

std::string JsonOf(const std::string& text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  std::string json;
  return google::protobuf::util::MessageToJsonString(value, &json).ok() ? json : "\"\"";
}

// Formats a number with the fewest digits that parse back to it. JSON has no NaN.
std::string JsonOf(double number) {
  if (!std::isfinite(number)) return "null";
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

std::string JsonOf(int64_t number) { return absl::StrCat(number); }

template <typename T>
std::string JsonOf(const std::optional<T>& value) {
  return value.has_value() ? JsonOf(*value) : "null";
}

using Fields = google::protobuf::Map<std::string, google::protobuf::Value>;

std::optional<std::string> Text(const Fields& fields, const char* name) {
  const auto found = fields.find(name);
  if (found == fields.end() || !found->second.has_string_value()) return std::nullopt;
  return found->second.string_value();
}

std::optional<double> Number(const Fields& fields, const char* name) {
  const auto found = fields.find(name);
  if (found == fields.end() || !found->second.has_number_value()) return std::nullopt;
  return found->second.number_value();
}

std::optional<int64_t> Integer(const Fields& fields, const char* name) {
  const std::optional<double> number = Number(fields, name);
  if (!number.has_value() || std::abs(*number) > 0x1p53) return std::nullopt;
  return static_cast<int64_t>(*number);
}

// Splits "a, b(c, d)" into "a" and "b(c, d)"; empty parts are dropped.
std::vector<std::string> SplitOutsideParentheses(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  std::vector<std::string> whole;
  for (const std::string& part : parts) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(part);
    if (!stripped.empty()) whole.emplace_back(stripped);
  }
  return whole;
}

// Returns each of `lists`, which are lists of parameters, once for each of `values`, with
// "name=value" behind it.
std::vector<std::string> Combine(const std::vector<std::string>& lists, absl::string_view name,
                                 const std::vector<std::string>& values) {
  std::vector<std::string> combined;
  for (const std::string& list : lists) {
    for (const std::string& value : values) {
      combined.push_back(absl::StrCat(list, list.empty() ? "" : ", ", name, "=", value));
    }
  }
  return combined;
}

bool Has(const v1::Capability& family, absl::string_view parameter) {
  return absl::c_any_of(family.parameters(), [parameter](const v1::ParameterInfo& known) {
    return known.name() == parameter;
  });
}

absl::Status SweepFailed(const char* what, const std::string& path) {
  return absl::InternalError(absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

absl::StatusOr<std::string> ReadPoints(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return errno == ENOENT ? absl::StatusOr<std::string>(std::string())
                           : absl::InvalidArgumentError(absl::StrCat("--output: cannot read ", path,
                                                                     ": ", std::strerror(errno)));
  }
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string SweepLine(const SweepPoint& point) {
  const std::pair<const char*, std::string> fields[] = {
      {"format", JsonOf(std::string(kFormat))},
      {"spec", JsonOf(point.key.spec)},
      {"kernel", JsonOf(point.key.kernel)},
      {"seed", JsonOf(point.key.seed)},
      {"learner", JsonOf(point.key.learner)},
      {"family", JsonOf(point.family)},
      {"landmarks", JsonOf(point.landmarks)},
      {"policy", JsonOf(point.policy)},
      {"output_columns", JsonOf(int64_t{point.output_columns})},
      {"error", JsonOf(point.error)},
      {"error_standard_error", JsonOf(point.error_standard_error)},
      {"accuracy", JsonOf(1 - point.error)},
      {"kernel_error_mean", JsonOf(point.kernel_error_mean)},
      {"microseconds_per_row", JsonOf(point.microseconds_per_row)},
      {"rows", JsonOf(point.rows)},
      {"tested_rows", JsonOf(point.tested_rows)},
      {"digest", JsonOf(point.digest)},
      {"data", JsonOf(point.key.data)},
      {"standardize", point.key.standardize ? "true" : "false"},
      {"error_low", JsonOf(point.error_low)},
      {"error_high", JsonOf(point.error_high)},
  };
  return absl::StrCat("{",
                      absl::StrJoin(fields, ", ",
                                    [](std::string* out, const auto& field) {
                                      absl::StrAppend(out, "\"", field.first, "\": ", field.second);
                                    }),
                      "}");
}

absl::StatusOr<SweepPoint> ParseSweepLine(const std::string& line) {
  google::protobuf::Struct object;
  const bool parsed = google::protobuf::util::JsonStringToMessage(line, &object).ok();
  const Fields& fields = object.fields();
  if (!parsed || Text(fields, "format") != kFormat) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a JSON object with \"format\": \"", kFormat, "\""));
  }
  const std::optional<std::string> spec = Text(fields, "spec");
  const std::optional<std::string> kernel = Text(fields, "kernel");
  const std::optional<std::string> learner = Text(fields, "learner");
  const std::optional<std::string> data = Text(fields, "data");
  const std::optional<int64_t> seed = Integer(fields, "seed");
  const std::optional<double> error = Number(fields, "error");
  if (!spec || !kernel || !learner || !data || !seed || !error) {
    return absl::InvalidArgumentError(
        "expected spec, kernel, seed, learner, data and error in each line");
  }
  const auto standardize = fields.find("standardize");
  SweepPoint point;
  point.key = {*spec,    *kernel, *seed,
               *learner, *data,   standardize != fields.end() && standardize->second.bool_value()};
  // Releases before 0.2 call it the mapping.
  point.family = Text(fields, "family").value_or(Text(fields, "mapping").value_or(""));
  point.landmarks = Integer(fields, "landmarks");
  point.policy = Text(fields, "policy");
  point.output_columns = static_cast<int32_t>(Integer(fields, "output_columns").value_or(0));
  point.error = *error;
  point.error_standard_error = Number(fields, "error_standard_error").value_or(0);
  point.error_low = Number(fields, "error_low");
  point.error_high = Number(fields, "error_high");
  point.kernel_error_mean = Number(fields, "kernel_error_mean");
  point.microseconds_per_row = Number(fields, "microseconds_per_row").value_or(0);
  point.rows = Integer(fields, "rows").value_or(0);
  point.tested_rows = Integer(fields, "tested_rows").value_or(0);
  point.digest = Text(fields, "digest").value_or("");
  return point;
}

absl::StatusOr<std::vector<std::string>> SweepSpecs(
    const std::string& families, const std::vector<SweptParameter>& parameters,
    const google::protobuf::RepeatedPtrField<v1::Capability>& known) {
  std::vector<std::string> specs;
  absl::flat_hash_set<std::string> used;
  for (const std::string& part : SplitOutsideParentheses(families)) {
    if (absl::StrContains(part, "(")) {
      specs.push_back(part);
      continue;
    }
    const auto family =
        absl::c_find_if(known, [&part](const v1::Capability& one) { return one.name() == part; });
    if (family == known.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--spec: the server has no family '", part, "'; expected ",
                       absl::StrJoin(known, ", ", [](std::string* out, const v1::Capability& one) {
                         absl::StrAppend(out, one.name());
                       })));
    }
    std::vector<std::string> lists = {""};
    for (const SweptParameter& parameter : parameters) {
      const std::vector<std::string> values = SplitOutsideParentheses(parameter.values);
      if (values.empty() || !Has(*family, parameter.name)) continue;
      used.insert(parameter.name);
      lists = Combine(lists, parameter.name, values);
    }
    for (const std::string& list : lists) specs.push_back(absl::StrCat(part, "(", list, ")"));
  }
  for (const SweptParameter& parameter : parameters) {
    if (parameter.values.empty() || used.contains(parameter.name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", parameter.name, ": no family of --spec=", families,
                     " takes it; a spec with parentheses has its parameters there"));
  }
  if (specs.empty()) {
    return absl::InvalidArgumentError("--spec: expected specs, separated by commas, got none");
  }
  absl::flat_hash_set<std::string> seen;
  std::erase_if(specs, [&seen](const std::string& spec) { return !seen.insert(spec).second; });
  return specs;
}

absl::StatusOr<std::vector<SweepPoint>> ReadSweep(const std::string& path) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string text, ReadPoints(path));
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.pop_back();
  std::vector<SweepPoint> points;
  for (const std::string& line : lines) {
    absl::StatusOr<SweepPoint> point = ParseSweepLine(line);
    if (!point.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--output: ", path, ", line ", points.size() + 1, ": ", point.status().message()));
    }
    points.push_back(*std::move(point));
  }
  return points;
}

absl::Status CheckSweepIsWritable(const std::string& path) {
  const bool is_new = access(path.c_str(), F_OK) != 0;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output: cannot write ", path, ": ", std::strerror(errno)));
  }
  close(fd);
  if (is_new) unlink(path.c_str());
  return absl::OkStatus();
}

absl::Status AppendToSweep(const std::string& path, const SweepPoint& point) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string before, ReadPoints(path));
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return SweepFailed("writing", path);
  const size_t end = before.rfind('\n') + 1;  // 0 if there is none.
  const std::string line = absl::StrCat(SweepLine(point), "\n");
  const bool written = ftruncate(fd, static_cast<off_t>(end)) == 0 &&
                       pwrite(fd, line.data(), line.size(), static_cast<off_t>(end)) ==
                           static_cast<ssize_t>(line.size()) &&
                       fsync(fd) == 0;
  const absl::Status status = written ? absl::OkStatus() : SweepFailed("writing", path);
  close(fd);
  return status;
}

namespace {

constexpr client::BlockLimits kTimedRows = {.rows = 4096, .bytes = 8 << 20};

template <typename T>
T StoredNumber(const std::string& bytes, int64_t place) {
  T value;
  std::memcpy(&value, bytes.data() + place * sizeof(T), sizeof(T));
  return value;
}

// Returns row `row` as a dense row in float64.
std::vector<double> DenseRow(const client::SparseBlock& block, int32_t row) {
  std::vector<double> values(block.columns, 0.0);
  const auto end = StoredNumber<int64_t>(block.row_offsets_le, row + 1);
  for (auto i = StoredNumber<int64_t>(block.row_offsets_le, row); i < end; ++i) {
    values[StoredNumber<int32_t>(block.column_indices_le, i)] =
        block.type == client::FloatType::kFloat64 ? StoredNumber<double>(block.values_le, i)
                                                  : StoredNumber<float>(block.values_le, i);
  }
  return values;
}

std::vector<double> DenseRow(const client::RowBlock& block, int32_t row) {
  std::vector<double> values(block.columns);
  for (int32_t column = 0; column < block.columns; ++column) values[column] = block.At(row, column);
  return values;
}

std::string BytesOf(const client::ExampleBlock& block, int32_t row) {
  if (block.strings() != nullptr) return block.strings()->values[row] + std::string(1, '\0');
  const std::vector<double> values =
      block.dense() != nullptr ? DenseRow(*block.dense(), row) : DenseRow(*block.sparse(), row);
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
}

}  // namespace

absl::StatusOr<SweepData> ReadSweepData(client::LabeledRowSource& rows) {
  SweepData data;
  Sha256 hash;
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(client::ExampleBlock block, rows.Next(kTimedRows));
    const std::vector<std::string> labels = rows.TakeLabels();
    for (int32_t row = 0; row < block.rows(); ++row) {
      hash.Update(labels[row] + std::string(1, '\0') + BytesOf(block, row));
    }
    if (block.empty()) break;
    data.rows += block.rows();
    if (data.timed.empty()) data.timed = std::move(block);
  }
  if (data.timed.empty()) return absl::InvalidArgumentError("--input: there are no rows");
  data.digest = hash.Hex();
  data.columns = rows.columns();
  return data;
}

}  // namespace phimap::cli
