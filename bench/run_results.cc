#include "bench/run_results.h"

#include <google/protobuf/util/json_util.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/interleaved.h"

namespace phimap::bench {
namespace {

using google::protobuf::Struct;

absl::StatusOr<Struct> ReadJson(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  Struct json;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &json);
  if (status.ok()) return json;
  return absl::DataLossError(absl::StrCat(path.string(), ": ", status.ToString()));
}

std::vector<Struct> Entries(const Struct& json) {
  std::vector<Struct> entries;
  const auto found = json.fields().find("results");
  if (found == json.fields().end()) return entries;
  for (const auto& value : found->second.list_value().values()) {
    entries.push_back(value.struct_value());
  }
  return entries;
}

}  // namespace

absl::StatusOr<RunResults> RunResults::Load(const std::string& folder) {
  RunResults results;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!absl::EndsWith(name, ".json")) continue;
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    if (parts.size() != 3 && name != "engine.json" && name != "onnx.json") continue;
    absl::StatusOr<Struct> json = ReadJson(entry.path());
    if (!json.ok()) return json.status();
    if (name == "engine.json") {
      results.engine_ = *std::move(json);
    } else if (name == "onnx.json") {
      results.onnx_ = *std::move(json);
    } else {
      results.scenarios_[parts[0]].emplace(parts[1], *std::move(json));
    }
  }
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  return results;
}

std::optional<double> RunResults::Median(const std::string& scenario,
                                         absl::string_view path) const {
  const auto found = scenarios_.find(scenario);
  if (found == scenarios_.end()) return std::nullopt;
  std::vector<double> values;
  for (const auto& [number, round] : found->second) {
    const std::optional<double> value = NumberAt(round, path);
    if (value.has_value()) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return bench::Median(std::move(values));
}

std::optional<double> RunResults::MedianRatio(const std::string& over, const std::string& under,
                                              absl::string_view path) const {
  const auto above = scenarios_.find(over);
  const auto below = scenarios_.find(under);
  if (above == scenarios_.end() || below == scenarios_.end()) return std::nullopt;
  std::vector<double> ratios;
  for (const auto& [number, round] : above->second) {
    const auto pair = below->second.find(number);
    if (pair == below->second.end()) continue;
    const std::optional<double> dividend = NumberAt(round, path);
    const std::optional<double> divisor = NumberAt(pair->second, path);
    if (dividend.has_value() && divisor.value_or(0) != 0) ratios.push_back(*dividend / *divisor);
  }
  if (ratios.empty()) return std::nullopt;
  return bench::Median(std::move(ratios));
}

std::vector<std::string> RunResults::Scenarios(absl::string_view prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, rounds] : scenarios_) {
    if (absl::StartsWith(name, prefix)) names.push_back(name);
  }
  return names;
}

int64_t RunResults::Rounds(const std::string& scenario) const {
  const auto found = scenarios_.find(scenario);
  return found == scenarios_.end() ? 0 : static_cast<int64_t>(found->second.size());
}

std::vector<Struct> RunResults::Engine() const { return Entries(engine_); }
std::vector<Struct> RunResults::Onnx() const { return Entries(onnx_); }
std::string RunResults::EngineText(const std::string& key) const { return TextAt(engine_, key); }

std::optional<double> NumberAt(const Struct& entry, absl::string_view path) {
  const Struct* at = &entry;
  const std::vector<std::string> keys = absl::StrSplit(path, '.');
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = at->fields().find(keys[i]);
    if (found == at->fields().end()) return std::nullopt;
    const google::protobuf::Value& value = found->second;
    if (i + 1 < keys.size()) {
      if (!value.has_struct_value()) return std::nullopt;
      at = &value.struct_value();
    } else if (value.kind_case() == google::protobuf::Value::kNumberValue) {
      return value.number_value();
    }
  }
  return std::nullopt;
}

std::string TextAt(const Struct& entry, const std::string& key) {
  const auto found = entry.fields().find(key);
  return found == entry.fields().end() ? "" : found->second.string_value();
}

}  // namespace phimap::bench
