// Output of `phimap bench`.
#ifndef PHIMAP_CLIENT_CLI_BENCH_BENCH_REPORT_H_
#define PHIMAP_CLIENT_CLI_BENCH_BENCH_REPORT_H_

#include <string>

#include "client/cli/bench/bench_load.h"

namespace phimap::cli {

// For people. Ends with a newline. Pure.
std::string LoadTable(const LoadOptions& options, const LoadResult& result, int processors);

// One JSON object, for programs: every field is always there, `server` is null if unknown, numbers
// are numbers, names carry their units, and fields are only ever added. Ends with a newline. Pure.
std::string LoadJson(const LoadOptions& options, const LoadResult& result, int processors);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BENCH_BENCH_REPORT_H_
