// Measurements of one bench/run: a folder of JSON files.
//
//   engine.json, onnx.json      of engine_bench and onnx.mjs
//   SCENARIO.ROUND.json         of `phimap bench --json` and of bench/run itself, for instance
//                               closed-512-16-phimap.3.json
#ifndef PHIMAP_BENCH_RUN_RESULTS_H_
#define PHIMAP_BENCH_RUN_RESULTS_H_

#include <google/protobuf/struct.pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap::bench {

class RunResults {
 public:
  static absl::StatusOr<RunResults> Load(const std::string& folder);

  // Median over the rounds of the number at `path`, as in "latency_us.p50". nullopt if no round has
  // it.
  std::optional<double> Median(const std::string& scenario, absl::string_view path) const;
  // Median over the rounds of the ratio of two scenarios' numbers at `path`, each over the one of
  // the same round: for scenarios that ran in pairs. nullopt if no round has both.
  std::optional<double> MedianRatio(const std::string& over, const std::string& under,
                                    absl::string_view path) const;
  // The names of all scenarios that begin with `prefix`.
  std::vector<std::string> Scenarios(absl::string_view prefix) const;
  // Rounds of a scenario.
  int64_t Rounds(const std::string& scenario) const;

  // Entries of engine.json and onnx.json; empty without the file.
  std::vector<google::protobuf::Struct> Engine() const;
  std::vector<google::protobuf::Struct> Onnx() const;
  // A text of engine.json's head ("cpu", "blas_core", "target"); empty without it.
  std::string EngineText(const std::string& key) const;

 private:
  // The rounds of a scenario, by the number in the file's name.
  using RoundFiles = std::map<std::string, google::protobuf::Struct>;

  std::map<std::string, RoundFiles> scenarios_;
  google::protobuf::Struct engine_;
  google::protobuf::Struct onnx_;
};

// The number or text at `path` in an entry; nullopt and empty if there is none.
std::optional<double> NumberAt(const google::protobuf::Struct& entry, absl::string_view path);
std::string TextAt(const google::protobuf::Struct& entry, const std::string& key);

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_RUN_RESULTS_H_
