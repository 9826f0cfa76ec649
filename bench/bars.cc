#include "bench/bars.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace phimap::bench {
namespace {

using google::protobuf::Struct;
using Number = std::optional<double>;

constexpr double kMiB = 1 << 20;
// Memory that a server under overload may use beyond the memory of an idle server and the memory
// for requests.
constexpr double kOverloadRoomMiB = 64;

Number Ratio(Number over, Number under) {
  if (!over.has_value() || !under.has_value() || *under == 0) return std::nullopt;
  return *over / *under;
}

// Returns factor · number + term; nullopt if `number` or `term` is missing.
Number Affine(Number number, double factor, Number term) {
  if (!number.has_value() || !term.has_value()) return std::nullopt;
  return factor * *number + *term;
}

bool Is(const Struct& entry, const std::string& mapping, double d) {
  return TextAt(entry, "mapping") == mapping && NumberAt(entry, "d") == d;
}

// Returns the worst `value` of all entries: the largest if `at_most`, else the smallest. Skips
// entries without a value; nullopt if no entry has one.
Number Worst(const std::vector<Struct>& entries, bool at_most,
             const std::function<Number(const Struct&)>& value) {
  Number worst;
  for (const Struct& entry : entries) {
    const Number number = value(entry);
    if (!number.has_value()) continue;
    if (!worst.has_value()) worst = number;
    worst = at_most ? std::max(*worst, *number) : std::min(*worst, *number);
  }
  return worst;
}

Number EngineMicroseconds(const std::vector<Struct>& engine, const std::string& mapping, double d,
                          double rows) {
  for (const Struct& entry : engine) {
    if (TextAt(entry, "table") == "mapping" && Is(entry, mapping, d) &&
        NumberAt(entry, "rows") == rows) {
      return NumberAt(entry, "phimap_us");
    }
  }
  return std::nullopt;
}

void AddEngineBars(const std::vector<Struct>& engine, std::vector<Bar>& bars) {
  std::vector<std::string> targets;
  for (const Struct& entry : engine) {
    const std::string target = TextAt(entry, "target");
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) {
      targets.push_back(target);
    }
  }
  for (const std::string& target : targets) {
    const auto share = [&](const Struct& entry) -> Number {
      if (TextAt(entry, "table") != "projection" || TextAt(entry, "target") != target ||
          NumberAt(entry, "d") != 2048 || NumberAt(entry, "rows").value_or(0) < 32) {
        return std::nullopt;
      }
      return NumberAt(entry, "peak_share");
    };
    bars.push_back({absl::StrCat("projection, d = 2048, 32 rows and more, ", target,
                                 ": share of the multiply-add peak"),
                    false, 0.9, Worst(engine, false, share), ""});
  }
  const auto over_blas = [&](const Struct& entry) -> Number {
    if (TextAt(entry, "table") != "mapping") return std::nullopt;
    if (!Is(entry, "F2", 512) && !Is(entry, "F2", 2048)) return std::nullopt;
    return NumberAt(entry, "over_blas");
  };
  bars.push_back({"F2, d = 512 and 2048, all rows: time over the fastest OpenBLAS", true, 1.05,
                  Worst(engine, true, over_blas), ""});
  const auto over_f2 = [&](const Struct& entry) -> Number {
    if (TextAt(entry, "table") != "mapping" || !Is(entry, "F3", 2048)) return std::nullopt;
    const double rows = NumberAt(entry, "rows").value_or(0);
    if (rows < 16) return std::nullopt;
    return Ratio(NumberAt(entry, "phimap_us"), EngineMicroseconds(engine, "F2", 2048, rows));
  };
  bars.push_back({"F3, 2048 to 256, 16 rows and more: time over F2's at d = 2048", true, 0.35,
                  Worst(engine, true, over_f2), ""});
}

void AddOnnxBars(const RunResults& results, std::vector<Bar>& bars) {
  const std::vector<Struct> engine = results.Engine();
  const std::vector<Struct> onnx = results.Onnx();
  for (const bool few : {true, false}) {
    const auto over_onnx = [&](const Struct& entry) -> Number {
      const double rows = NumberAt(entry, "rows").value_or(0);
      const double d = NumberAt(entry, "d").value_or(0);
      if ((rows <= 4) != few || (!Is(entry, "F2", 512) && !Is(entry, "F2", 2048))) {
        return std::nullopt;
      }
      return Ratio(EngineMicroseconds(engine, "F2", d, rows), NumberAt(entry, "onnx_us"));
    };
    bars.push_back({absl::StrCat("F2, d = 512 and 2048, ", few ? "1 and 4 rows" : "more rows",
                                 ": time over ONNX Runtime's"),
                    true, few ? 0.5 : 0.6, Worst(onnx, true, over_onnx), ""});
  }
}

std::string Closed(int d, int callers, const char* server) {
  return absl::StrCat("closed-", d, "-", callers, "-", server);
}

void AddSingleCallerBars(const RunResults& results, std::vector<Bar>& bars) {
  const auto floor_512 = Closed(512, 1, "floor");
  const auto own_512 = Closed(512, 1, "phimap");
  bars.push_back({"one row, one caller, d = 512: p50 over the callback echo's", true, 1.0,
                  results.MedianRatio(own_512, floor_512, "latency_us.p50"), ""});
  bars.push_back({"one row, one caller, d = 512: p99, at most 1.5 floors + 10 us", true,
                  Affine(results.Median(floor_512, "latency_us.p99"), 1.5, 10.0),
                  results.Median(own_512, "latency_us.p99"), "us"});
  const Number engine = EngineMicroseconds(results.Engine(), "F2", 2048, 1);
  bars.push_back({"one row, one caller, d = 2048: p50, at most 1.15 floors + engine + 10 us", true,
                  Affine(results.Median(Closed(2048, 1, "floor"), "latency_us.p50"), 1.15,
                         Affine(engine, 1, 10.0)),
                  results.Median(Closed(2048, 1, "phimap"), "latency_us.p50"), "us"});
}

void AddManyCallersBars(const RunResults& results, std::vector<Bar>& bars) {
  const std::pair<int, double> of_floor[] = {{512, 0.85}, {2048, 0.6}};
  const std::pair<int, double> of_peer[] = {{512, 8.0}, {2048, 15.0}};
  const auto ratio = [&](int d, const char* other, const char* path) {
    return Ratio(results.Median(Closed(d, 16, "phimap"), path),
                 results.Median(Closed(d, 16, other), path));
  };
  for (const auto& [d, limit] : of_floor) {
    bars.push_back({absl::StrCat("one row, 16 callers, d = ", d, ": calls/s over the floor's"),
                    false, limit, ratio(d, "floor", "calls_per_second"), ""});
  }
  for (const auto& [d, limit] : of_peer) {
    bars.push_back({absl::StrCat("one row, 16 callers, d = ", d, ": calls/s over the peer's"),
                    false, limit, ratio(d, "peer", "calls_per_second"), ""});
    bars.push_back({absl::StrCat("one row, 16 callers, d = ", d, ": p99 over the peer's"), true,
                    0.2, ratio(d, "peer", "latency_us.p99"), ""});
  }
}

// Adds the cost of ModelInfer relative to Transform, compared within each round.
void AddInferenceBars(const RunResults& results, std::vector<Bar>& bars) {
  constexpr double kLimit = 1.05;
  const std::pair<const char*, const char*> loads[] = {{"16x1", "one row, 16 callers"},
                                                       {"4x32", "32 rows, 4 callers"}};
  bars.push_back(
      {"Open Inference Protocol, d = 512, one row, one caller: p50 over Transform's", true, kLimit,
       results.MedianRatio("protocol-1x1-inference", "protocol-1x1-native", "latency_us.p50"), ""});
  for (const auto& [load, text] : loads) {
    const std::string scenario = absl::StrCat("protocol-", load);
    bars.push_back(
        {absl::StrCat("Open Inference Protocol, d = 512, ", text,
                      ": Transform's calls/s over its own"),
         true, kLimit,
         results.MedianRatio(scenario + "-native", scenario + "-inference", "calls_per_second"),
         ""});
  }
}

void AddOverloadBars(const RunResults& results, std::vector<Bar>& bars) {
  bars.push_back({"a build beside Transform at 30 % of capacity: p99 / p99 without a build", true,
                  2.0,
                  Ratio(results.Median("build-with", "latency_us.p99"),
                        results.Median("build-without", "latency_us.p99")),
                  ""});
  bars.push_back({"overload, offered load twice the capacity: goodput / capacity", false, 0.9,
                  Ratio(results.Median("overload-offered", "calls_per_second"),
                        results.Median("overload-capacity", "calls_per_second")),
                  ""});
  // If no call was refused, there was no overload, and nothing was measured.
  Number refusal = results.Median("overload-offered", "refusal_latency_us.p99");
  if (results.Median("overload-offered", "refusal_latency_us.count") == 0) refusal = std::nullopt;
  bars.push_back({"overload: p99 of refusals", true, 10'000.0, refusal, "us"});
  bars.push_back({"overload: the generator's share of the CPU", true, 0.2,
                  results.Median("overload-offered", "generator.cpu_share"), ""});
  const Number idle = results.Median("overload-idle", "resident_bytes");
  const Number requests = results.Median("overload-idle", "memory_bytes");
  const Number peak = results.Median("overload-offered", "server.peak_resident_bytes");
  bars.push_back(
      {"overload: resident memory, at most idle + requests + 64 MiB", true,
       Affine(Affine(idle, 1 / kMiB, kOverloadRoomMiB), 1, Affine(requests, 1 / kMiB, 0.0)),
       Affine(peak, 1 / kMiB, 0.0), "MiB"});
}

void AddIdleAndBulkBars(const RunResults& results, std::vector<Bar>& bars) {
  bars.push_back({"after 1.05 s of silence, d = 512: share of calls under 5 ms", false, 99.0,
                  results.Median("idle-512", "under 5 ms %"), "%"});
  bars.push_back({"bulk, F2, d = 2048: the server's CPU a row beyond the engine's", true, 4.0,
                  results.Median("bulk-2048-f2", "server - engine us"), "us"});
}

// Adds the longest gap between two polls of the event loop. During a gap the server reads no
// requests.
void AddGapBar(const RunResults& results, std::vector<Bar>& bars) {
  Number longest;
  for (const std::string& scenario : results.Scenarios("")) {
    for (const char* path : {"meters.longest gap ms", "longest gap ms"}) {
      const Number gap = results.Median(scenario, path);
      if (gap.has_value()) longest = std::max(longest.value_or(0), *gap);
    }
  }
  bars.push_back(
      {"longest time between two polls, the worst of all scenarios", true, 5.0, longest, "ms"});
}

}  // namespace

std::optional<bool> Bar::Met() const {
  if (!limit.has_value() || !measured.has_value()) return std::nullopt;
  return at_most ? *measured <= *limit : *measured >= *limit;
}

std::vector<Bar> Bars(const RunResults& results) {
  std::vector<Bar> bars;
  AddEngineBars(results.Engine(), bars);
  AddOnnxBars(results, bars);
  AddSingleCallerBars(results, bars);
  AddManyCallersBars(results, bars);
  AddInferenceBars(results, bars);
  AddOverloadBars(results, bars);
  AddIdleAndBulkBars(results, bars);
  AddGapBar(results, bars);
  return bars;
}

}  // namespace phimap::bench
