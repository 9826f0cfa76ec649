// Measurements of one bench/run: a folder of JSON files.
//
//   engine.json, onnx.json      written by engine_bench and onnx.mjs
//   SCENARIO.ROUND.json         written by `phimap bench --json` or bench/run itself, for instance
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

  // Returns the median over the rounds of the number at `path`, such as "latency_us.p50"; nullopt
  // if no round has it.
  std::optional<double> Median(const std::string& scenario, absl::string_view path) const;
  // Returns the median over the rounds of the ratio of two scenarios' numbers at `path`, taken
  // within each round, for scenarios that ran in pairs; nullopt if no round has both.
  std::optional<double> MedianRatio(const std::string& over, const std::string& under,
                                    absl::string_view path) const;
  // Returns the names of all scenarios that begin with `prefix`.
  std::vector<std::string> Scenarios(absl::string_view prefix) const;
  // Returns the number of rounds of a scenario.
  int64_t Rounds(const std::string& scenario) const;

  // Return the entries of engine.json and onnx.json; empty if the file is missing.
  std::vector<google::protobuf::Struct> Engine() const;
  std::vector<google::protobuf::Struct> Onnx() const;
  // Returns one of the texts at the top level of engine.json ("cpu", "blas_core", "target"); empty
  // if the text or the file is missing.
  std::string EngineText(const std::string& key) const;

 private:
  // The rounds of a scenario, by the number in the file's name.
  using RoundFiles = std::map<std::string, google::protobuf::Struct>;

  std::map<std::string, RoundFiles> scenarios_;
  google::protobuf::Struct engine_;
  google::protobuf::Struct onnx_;
};

// NumberAt returns the number at `path` in an entry; nullopt if there is none. TextAt returns the
// text at `key`; empty if there is none.
std::optional<double> NumberAt(const google::protobuf::Struct& entry, absl::string_view path);
std::string TextAt(const google::protobuf::Struct& entry, const std::string& key);

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_RUN_RESULTS_H_
