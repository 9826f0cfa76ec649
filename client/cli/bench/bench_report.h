// Output of `phimap bench`.
#ifndef PHIMAP_CLIENT_CLI_BENCH_BENCH_REPORT_H_
#define PHIMAP_CLIENT_CLI_BENCH_BENCH_REPORT_H_

#include <string>

#include "client/cli/bench/bench_load.h"

namespace phimap::cli {

// Formats the result for people. Ends with a newline. Pure.
std::string LoadTable(const LoadOptions& options, const LoadResult& result, int processors);

// Formats the result as one JSON object: every field is always present, `server` is null if
// unknown, numbers are numbers, names end with their units, and later releases only add fields.
// Ends with a newline. Pure.
std::string LoadJson(const LoadOptions& options, const LoadResult& result, int processors);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BENCH_BENCH_REPORT_H_
