// Summarizes the results of bench/run: tables of medians, and each bar with its measurement.
//
//   run_report FOLDER [--quick]      writes FOLDER/summary.json too; --quick gives no verdicts
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/bars.h"
#include "bench/run_results.h"

namespace phimap::bench {
namespace {

std::string NumberText(std::optional<double> number, int digits) {
  return number.has_value() ? absl::StrFormat("%.*f", digits, *number) : "-";
}

std::string JsonNumber(std::optional<double> number) {
  return number.has_value() ? absl::StrFormat("%.6g", *number) : "null";
}

struct Column {
  const char* head;
  const char* path;
};

const std::vector<Column> kMeters = {
    {"rows/batch", "rows a batch"},   {"parse us", "phase parse us"},
    {"queue us", "phase queue us"},   {"comp. us", "phase compute us"},
    {"answer us", "phase answer us"}, {"gap ms", "longest gap ms"},
    {"idle %", "machine idle %"}};

constexpr const char* kLoadPaths[] = {"calls_per_second",      "latency_us.p50",
                                      "latency_us.p90",        "latency_us.p99",
                                      "latency_us.p999",       "generator.cpu_us_per_call",
                                      "server.cpu_us_per_call"};

const std::vector<Column> kIdle = {{"calls", "calls"},   {"under 5 ms %", "under 5 ms %"},
                                   {"p50 us", "p50 us"}, {"p90 us", "p90 us"},
                                   {"p99 us", "p99 us"}, {"max us", "max us"}};
const std::vector<Column> kBulk = {{"rows/s", "rows/s"},
                                   {"srv us/row", "server us/row"},
                                   {"engine us", "engine us/row"},
                                   {"difference", "server - engine us"}};

void PrintLoads(const RunResults& results) {
  std::printf("\n%-28s%6s%10s%10s%10s%10s%10s%10s%10s\n", "end to end (medians)", "runs", "calls/s",
              "p50 us", "p90 us", "p99 us", "p99.9 us", "cli us", "srv us");
  for (const char* prefix : {"closed-", "connections-", "unix-", "tls-", "open-", "protocol-",
                             "build-", "overload-capacity", "overload-offered"}) {
    for (const std::string& scenario : results.Scenarios(prefix)) {
      std::printf("%-28s%6d", scenario.c_str(), static_cast<int>(results.Rounds(scenario)));
      for (const char* path : kLoadPaths) {
        std::printf("%10s", NumberText(results.Median(scenario, path), 1).c_str());
      }
      std::printf("\n");
    }
  }
  std::printf("cli, srv: CPU of the generator and of the server, each call.\n");
  std::printf("p99.9 is shown only if at least ten calls of a round are above it.\n");
}

// Prints the metered figures. A server without /metrics has no phases, but its row still shows how
// idle the machine was.
void PrintMeters(const RunResults& results) {
  std::printf("\n%-28s", "metered meanwhile (medians)");
  for (const Column& column : kMeters) std::printf("%11s", column.head);
  std::printf("\n");
  for (const std::string& scenario : results.Scenarios("")) {
    if (!results.Median(scenario, "meters.machine idle %").has_value()) continue;
    std::printf("%-28s", scenario.c_str());
    for (const Column& column : kMeters) {
      const auto number = results.Median(scenario, absl::StrCat("meters.", column.path));
      std::printf("%11s", NumberText(number, 2).c_str());
    }
    std::printf("\n");
  }
}

// Prints bench/compare's results: the columns, and beside them the metered figures.
void PrintCompared(const RunResults& results, const std::string& prefix, const char* head,
                   const std::vector<Column>& columns) {
  if (results.Scenarios(prefix).empty()) return;
  std::printf("\n%-28s%6s", head, "runs");
  for (const Column& column : columns) std::printf("%13s", column.head);
  for (const Column& column : kMeters) std::printf("%11s", column.head);
  std::printf("\n");
  for (const std::string& scenario : results.Scenarios(prefix)) {
    std::printf("%-28s%6d", scenario.c_str(), static_cast<int>(results.Rounds(scenario)));
    for (const Column& column : columns) {
      std::printf("%13s", NumberText(results.Median(scenario, column.path), 1).c_str());
    }
    for (const Column& column : kMeters) {
      std::printf("%11s", NumberText(results.Median(scenario, column.path), 2).c_str());
    }
    std::printf("\n");
  }
}

void PrintMemory(const RunResults& results) {
  std::printf("\n%-28s%16s%16s\n", "memory of a live version", "artifact MiB", "resident MiB");
  for (const std::string& scenario : results.Scenarios("memory-")) {
    const double mib = 1 << 20;
    const auto text = [&](const char* path) {
      std::optional<double> bytes = results.Median(scenario, path);
      if (bytes.has_value()) *bytes /= mib;
      return NumberText(bytes, 1);
    };
    std::printf("%-28s%16s%16s\n", scenario.c_str(), text("artifact_bytes").c_str(),
                text("resident_bytes").c_str());
  }
}

const char* Verdict(const Bar& bar, bool quick) {
  if (!bar.Met().has_value()) return "not measured";
  if (quick) return "-";
  return *bar.Met() ? "met" : "MISSED";
}

void PrintBars(const std::vector<Bar>& bars, bool quick) {
  std::printf("\n%-80s%14s%14s  %s\n", "bar", "limit", "measured", "");
  for (const Bar& bar : bars) {
    std::printf("%-80s%14s%14s  %s\n", bar.what.c_str(),
                absl::StrCat(bar.at_most ? "<= " : ">= ", NumberText(bar.limit, 2)).c_str(),
                absl::StrCat(NumberText(bar.measured, 2), bar.unit.empty() ? "" : " ",
                             bar.measured.has_value() ? bar.unit : "")
                    .c_str(),
                Verdict(bar, quick));
  }
  std::printf(
      "That features keep the same bits is not measured here; tests/core/plan and "
      "tests/core/linalg check it.\n");
}

bool WriteSummary(const std::string& path, const RunResults& results, const std::vector<Bar>& bars,
                  bool quick) {
  std::ofstream file(path);
  file << absl::StrFormat("{\"cpu\": \"%s\", \"blas_core\": \"%s\", \"target\": \"%s\",\n",
                          results.EngineText("cpu"), results.EngineText("blas_core"),
                          results.EngineText("target"));
  const auto bar_json = [&](std::string* out, const Bar& bar) {
    absl::StrAppend(
        out, "  {\"bar\": \"", bar.what, "\", \"at_most\": ", bar.at_most ? "true" : "false",
        ", \"limit\": ", JsonNumber(bar.limit), ", \"measured\": ", JsonNumber(bar.measured),
        ", \"unit\": \"", bar.unit, "\", \"verdict\": \"", Verdict(bar, quick), "\"}");
  };
  file << " \"bars\": [\n" << absl::StrJoin(bars, ",\n", bar_json) << "\n ],\n";
  const auto scenario_json = [&](std::string* out, const std::string& scenario) {
    absl::StrAppend(out, "  \"", scenario, "\": {\"rounds\": ", results.Rounds(scenario));
    for (const char* path : kLoadPaths) {
      absl::StrAppend(out, ", \"", path, "\": ", JsonNumber(results.Median(scenario, path)));
    }
    for (const auto* columns : {&kIdle, &kBulk, &kMeters}) {
      for (const Column& column : *columns) {
        std::optional<double> number = results.Median(scenario, column.path);
        if (!number.has_value()) {
          number = results.Median(scenario, absl::StrCat("meters.", column.path));
        }
        if (!number.has_value()) continue;
        absl::StrAppend(out, ", \"", column.path, "\": ", JsonNumber(number));
      }
    }
    absl::StrAppend(out, "}");
  };
  file << " \"scenarios\": {\n"
       << absl::StrJoin(results.Scenarios(""), ",\n", scenario_json) << "\n }}\n";
  return static_cast<bool>(file.flush());
}

int Run(int argc, char** argv) {
  std::string folder;
  bool quick = false;
  CLI::App app("Puts the results of bench/run together.");
  app.add_option("FOLDER", folder)->required();
  app.add_flag("--quick", quick, "No verdicts");
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<RunResults> results = RunResults::Load(folder);
  if (!results.ok()) {
    std::fprintf(stderr, "run_report: %s\n", std::string(results.status().message()).c_str());
    return 1;
  }
  const std::vector<Bar> bars = Bars(*results);
  PrintLoads(*results);
  PrintMeters(*results);
  PrintCompared(*results, "idle-", "after 1.05 s of silence", kIdle);
  PrintCompared(*results, "bulk-", "bulk (medians)", kBulk);
  PrintMemory(*results);
  PrintBars(bars, quick);
  return WriteSummary(folder + "/summary.json", *results, bars, quick) ? 0 : 1;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) { return phimap::bench::Run(argc, argv); }
