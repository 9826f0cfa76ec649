#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/bench/bench_load.h"
#include "client/cli/views/text.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

// Latency that a person notices; the report states the share of answers below it.
constexpr int64_t kSoonNs = 5'000'000;
// Share of one processor above which the report warns: a generator that needs a whole processor
// measures mostly itself.
constexpr double kBusyGenerator = 0.9;

double PerSecond(int64_t count, const LoadResult& result) {
  return result.seconds > 0 ? static_cast<double>(count) / result.seconds : 0;
}

double PerCall(double cpu_us, const LoadResult& result) {
  return result.calls > 0 ? cpu_us / static_cast<double>(result.calls) : 0;
}

// Share of all processors.
double CpuShare(double cpu_us, const LoadResult& result, int processors) {
  return result.seconds > 0 ? cpu_us / (1e6 * result.seconds * processors) : 0;
}

double Microseconds(int64_t ns) { return static_cast<double>(ns) * 1e-3; }

std::string JsonString(absl::string_view text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

// Formats the 99.9 % quantile, or returns `none` if too few values lie above it.
std::string TailText(const BenchHistogram& histogram, int digits, absl::string_view none) {
  if (!histogram.Tells(0.999)) return std::string(none);
  return absl::StrFormat("%.*f", digits, Microseconds(histogram.Quantile(0.999)));
}

std::string HistogramJson(const BenchHistogram& histogram) {
  return absl::StrFormat(
      "{\"count\": %d, \"mean\": %.3f, \"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f, "
      "\"p999\": %s, \"max\": %.3f}",
      histogram.count(), histogram.mean() * 1e-3, Microseconds(histogram.Quantile(0.5)),
      Microseconds(histogram.Quantile(0.9)), Microseconds(histogram.Quantile(0.99)),
      TailText(histogram, 3, "null"), Microseconds(histogram.max()));
}

std::string ErrorsJson(const LoadResult& result) {
  const auto entry = [](std::string* out, const auto& error) {
    absl::StrAppend(out, JsonString(error.first), ": ", error.second);
  };
  return absl::StrCat("{", absl::StrJoin(result.errors, ", ", entry), "}");
}

std::string ServerJson(const LoadOptions& options, const LoadResult& result, int processors) {
  if (!result.server.has_value()) return "null";
  return absl::StrFormat(
      "{\"pid\": %d, \"cpu_us_per_call\": %.3f, \"cpu_share\": %.4f, \"resident_bytes\": %d, "
      "\"peak_resident_bytes\": %d}",
      options.server_pid, PerCall(result.server->cpu_us, result),
      CpuShare(result.server->cpu_us, result, processors), result.server->resident_bytes,
      result.server->peak_resident_bytes);
}

void LatencyLine(std::string& out, absl::string_view name, const BenchHistogram& histogram) {
  absl::StrAppendFormat(
      &out, "%-12s%10.1f%10.1f%10.1f%10s%10.1f%12s\n", name, Microseconds(histogram.Quantile(0.5)),
      Microseconds(histogram.Quantile(0.9)), Microseconds(histogram.Quantile(0.99)),
      TailText(histogram, 1, "-"), Microseconds(histogram.max()), WithThousands(histogram.count()));
}

std::string LoadText(const LoadOptions& options) {
  if (options.open_loop()) return absl::StrFormat("%g calls/s, open loop", options.rate);
  return absl::StrCat(CountOf(options.callers, "caller"), ", closed loop");
}

void UseLine(std::string& out, absl::string_view name, double cpu_us, const LoadResult& result,
             int processors) {
  absl::StrAppendFormat(&out, "%-12s%10.1f us of CPU a call, %.0f %% of %d processors\n", name,
                        PerCall(cpu_us, result), 100 * CpuShare(cpu_us, result, processors),
                        processors);
}

}  // namespace

std::string LoadTable(const LoadOptions& options, const LoadResult& result, int processors) {
  std::string out = absl::StrFormat(
      "%s, %d features; %s, %d-row %s calls, %d %s, %g s after %g s of warm-up\n", result.version,
      result.feature_columns, LoadText(options), options.rows, ProtocolName(options.protocol),
      options.channels, NounFor(options.channels, "connection"), result.seconds,
      options.warmup_seconds);
  absl::StrAppendFormat(&out, "%-12s%10.0f calls/s%12.0f rows/s\n", "answered",
                        PerSecond(result.answered, result),
                        PerSecond(result.answered, result) * options.rows);
  for (const auto& [code, count] : result.errors) {
    absl::StrAppendFormat(&out, "%-12s%10.0f calls/s  %s\n", "not answered",
                          PerSecond(count, result), code);
  }
  absl::StrAppendFormat(&out, "%-12s%10s%10s%10s%10s%10s%12s\n", "us", "p50", "p90", "p99", "p99.9",
                        "max", "calls");
  LatencyLine(out, "latency", result.latency);
  if (result.refusal_latency.count() > 0) LatencyLine(out, "refusal", result.refusal_latency);
  if (options.open_loop()) LatencyLine(out, "sent late", result.lateness);
  UseLine(out, "generator", result.generator_cpu_us, result, processors);
  if (result.server.has_value()) {
    UseLine(out, "server", result.server->cpu_us, result, processors);
    absl::StrAppend(&out, "memory      ", SizeText(result.server->resident_bytes), " resident, ",
                    SizeText(result.server->peak_resident_bytes), " at most\n");
  }
  if (result.generator_cpu_us > kBusyGenerator * 1e6 * result.seconds) {
    absl::StrAppend(
        &out, "The load generator used a whole processor, so it may have limited the result.\n");
  }
  return out;
}

std::string LoadJson(const LoadOptions& options, const LoadResult& result, int processors) {
  return absl::StrCat(
      "{\"target\": ", JsonString(options.target),
      ", \"protocol\": ", JsonString(ProtocolName(options.protocol)),
      ", \"reference\": ", JsonString(options.reference),
      ", \"version\": ", JsonString(result.version),
      absl::StrFormat(
          ", \"feature_columns\": %d, \"mode\": \"%s\", \"callers\": %d, "
          "\"offered_calls_per_second\": %.3f, \"rows\": %d, \"columns\": %d, \"channels\": %d, "
          "\"seconds\": %.3f, \"processors\": %d,\n",
          result.feature_columns, options.open_loop() ? "open" : "closed",
          options.open_loop() ? 0 : options.callers, options.rate, options.rows, options.columns,
          options.channels, result.seconds, processors),
      absl::StrFormat(" \"calls\": %d, \"answered\": %d, \"calls_per_second\": %.3f, "
                      "\"rows_per_second\": %.3f,\n",
                      result.calls, result.answered, PerSecond(result.answered, result),
                      PerSecond(result.answered, result) * options.rows),
      " \"latency_us\": ", HistogramJson(result.latency),
      absl::StrFormat(",\n \"share_under_5ms\": %.5f", result.latency.ShareBelow(kSoonNs)),
      ",\n \"refusal_latency_us\": ", HistogramJson(result.refusal_latency),
      ",\n \"lateness_us\": ", HistogramJson(result.lateness),
      ",\n \"errors\": ", ErrorsJson(result),
      absl::StrFormat(", \"generator\": {\"cpu_us_per_call\": %.3f, \"cpu_share\": %.4f}",
                      PerCall(result.generator_cpu_us, result),
                      CpuShare(result.generator_cpu_us, result, processors)),
      ",\n \"server\": ", ServerJson(options, result, processors), "}\n");
}

}  // namespace phimap::cli
