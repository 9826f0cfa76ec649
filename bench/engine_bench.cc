// Compares the engine with OpenBLAS and with the machine's limits, on one thread, without a server.
// Prints a table; --json=FILE also writes the figures for programs.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/blas_mapping.h"
#include "bench/engine_tables.h"
#include "bench/vector_loops.h"
#include "hwy/highway.h"
#include "hwy/targets.h"

namespace phimap::bench {
namespace {

struct Arguments {
  TimingOptions timing;
  EngineSizes sizes;
  bool quick = false;
  std::string json;
};

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(line.find(':') + 1)));
  }
  return "unknown";
}

// Returns the targets to measure: the best target of the machine, and AVX2 unless that is the best.
std::vector<int64_t> Targets() {
  std::vector<int64_t> targets = {0};  // 0: the best target of the machine
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (target == HWY_AVX2 && absl::string_view(LoopTargetName()) != hwy::TargetName(HWY_AVX2)) {
      targets.push_back(target);
    }
  }
  return targets;
}

void UseTarget(int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

std::string BlasJson(const EngineResult& result) {
  return absl::StrJoin(result.blas, ", ", [](std::string* out, const Contender& way) {
    absl::StrAppendFormat(out, "\"%s\": %.4f", way.name, way.median_us);
  });
}

std::string ResultJson(const EngineResult& result) {
  return absl::StrFormat(
      "{\"table\": \"%s\", \"target\": \"%s\", \"mapping\": \"%s\", \"d\": %d, \"outputs\": %d, "
      "\"rows\": %d, \"phimap_us\": %.4f, \"blas_us\": {%s}, \"over_blas\": %.4f, "
      "\"gflops\": %.3f, \"peak_gflops\": %.3f, \"peak_share\": %.4f, "
      "\"gigabytes_per_second\": %.3f, \"read_gigabytes_per_second\": %.3f, "
      "\"bandwidth_share\": %.4f}",
      result.table, result.target, result.mapping, result.d, result.outputs, result.rows,
      result.phimap_us, BlasJson(result), result.phimap_us / result.FastestBlas().median_us,
      result.gflops, result.peak_gflops, result.gflops / result.peak_gflops,
      result.gigabytes_per_second, result.read_gigabytes_per_second,
      result.gigabytes_per_second / result.read_gigabytes_per_second);
}

void PrintHead() {
  std::printf("\n%-11s%-8s%-4s%6s%6s  %11s %11s %-5s %7s  %7s %7s  %7s\n", "table", "target", "",
              "d", "rows", "phimap us", "blas us", "", "ratio", "GF/s", "peak", "reading");
}

void PrintResult(const EngineResult& result) {
  const Contender& blas = result.FastestBlas();
  // Memory bandwidth is the limit only for few rows, because many rows share one read of the
  // matrix.
  const std::string reading =
      result.rows > 4 ? ""
                      : absl::StrFormat("%6.0f%%", 100 * result.gigabytes_per_second /
                                                       result.read_gigabytes_per_second);
  std::printf("%-11s%-8s%-4s%6d%6d  %11.2f %11.2f %-5s %7.2f  %7.1f %6.0f%%  %7s\n",
              result.table.c_str(), result.target.c_str(), result.mapping.c_str(),
              static_cast<int>(result.d), static_cast<int>(result.rows), result.phimap_us,
              blas.median_us, blas.name.c_str(), result.phimap_us / blas.median_us, result.gflops,
              100 * result.gflops / result.peak_gflops, reading.c_str());
  std::fflush(stdout);
}

std::vector<EngineResult> MeasureAll(const Arguments& arguments) {
  std::vector<EngineResult> results;
  const ResultSink sink = [&](const EngineResult& result) {
    PrintResult(result);
    results.push_back(result);
    // The contenders' functions refer to objects that no longer exist.
    for (Contender& way : results.back().blas) way.run = nullptr;
  };
  PrintHead();
  for (const int64_t target : Targets()) {
    UseTarget(target);
    MeasureProjections(arguments.sizes, arguments.timing, sink);
  }
  UseTarget(0);
  PrintHead();
  MeasureMappings(arguments.sizes, arguments.timing, sink);
  return results;
}

bool WriteJson(const std::string& path, double bandwidth,
               const std::vector<EngineResult>& results) {
  std::ofstream file(path);
  file << absl::StrFormat(
      "{\"cpu\": \"%s\", \"blas_core\": \"%s\", \"target\": \"%s\", "
      "\"memory_gigabytes_per_second\": %.3f,\n \"results\": [\n",
      CpuName(), BlasCore(), LoopTargetName(), bandwidth);
  file << absl::StrJoin(results, ",\n", [](std::string* out, const EngineResult& result) {
    absl::StrAppend(out, "  ", ResultJson(result));
  });
  file << "\n]}\n";
  return static_cast<bool>(file.flush());
}

int Run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("The engine against OpenBLAS and the machine's limits, on one thread.");
  app.add_option("--rounds", arguments.timing.rounds,
                 "Number of interleaved rounds; the medians are over these rounds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--round_seconds", arguments.timing.round_seconds,
                 "Minimum seconds that each contender runs in a round")
      ->check(CLI::Range(1e-6, 60.0))
      ->capture_default_str();
  app.add_option("--inputs", arguments.sizes.inputs, "Columns of a row")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  app.add_option("--d", arguments.sizes.d, "Landmarks")->delimiter(',')->capture_default_str();
  app.add_option("--rows", arguments.sizes.rows, "Rows")->delimiter(',')->capture_default_str();
  app.add_flag("--quick", arguments.quick, "Only show that everything runs");
  app.add_option("--json", arguments.json, "File for the results");
  CLI11_PARSE(app, argc, argv);
  if (arguments.quick) {
    arguments.timing = {.rounds = 1, .round_seconds = 1e-4};
    arguments.sizes = {.d = {512}, .rows = {1, 32}};
  }
  UseOneThread();
  const double bandwidth = MemoryBandwidth(arguments.timing);
  std::printf("%s; engine on %s; OpenBLAS core %s; reads %.1f GB/s from memory; one thread\n",
              CpuName().c_str(), LoopTargetName(), BlasCore().c_str(), bandwidth);
  std::printf(
      "peak: share of a multiply-add loop in registers; reading: share of a loop that only "
      "reads as many bytes\n");
  std::printf(
      "F3 has d/8 features; RFF has d cosines of products; JL has d products without a "
      "function.\n");
  const std::vector<EngineResult> results = MeasureAll(arguments);
  if (arguments.json.empty() || WriteJson(arguments.json, bandwidth, results)) return 0;
  std::fprintf(stderr, "engine_bench: cannot write %s\n", arguments.json.c_str());
  return 1;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) { return phimap::bench::Run(argc, argv); }
