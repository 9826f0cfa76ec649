// Measures the engine beside OpenBLAS and beside what the machine can do.
#ifndef PHIMAP_BENCH_ENGINE_TABLES_H_
#define PHIMAP_BENCH_ENGINE_TABLES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/interleaved.h"

namespace phimap::bench {

// One line of a table: one size, everything timed in the same rounds.
struct EngineResult {
  // "projection" (the triangle alone) or "mapping" (a whole plan).
  std::string table;
  // The vector unit of the engine and of the multiply-add loop.
  std::string target;
  std::string mapping;
  int64_t d = 0;
  int64_t outputs = 0;
  int64_t rows = 0;
  double phimap_us = 0;
  // Ways of OpenBLAS and their times; never empty.
  std::vector<Contender> blas;
  // Rate of phimap, counting the elements that its panels store, and rate of a loop in registers.
  double gflops = 0;
  double peak_gflops = 0;
  // Memory that phimap reads at least, and the rate of a loop over memory of equal size.
  double gigabytes_per_second = 0;
  double read_gigabytes_per_second = 0;

  const Contender& FastestBlas() const;
};

struct EngineSizes {
  // Columns of a row.
  int64_t inputs = 64;
  std::vector<int64_t> d = {512, 2048, 4096};
  std::vector<int64_t> rows = {1, 4, 16, 32, 256, 1024};
};

// Called with each result as it comes.
using ResultSink = std::function<void(const EngineResult&)>;

// y = z·W with W an upper triangle, PanelMatrix against OpenBLAS.
void MeasureProjections(const EngineSizes& sizes, const TimingOptions& timing,
                        const ResultSink& sink);
// Whole plans, the engine against OpenBLAS. Ends the program if their features differ.
void MeasureMappings(const EngineSizes& sizes, const TimingOptions& timing, const ResultSink& sink);

// Gigabytes per second that one thread reads from memory that no cache holds.
double MemoryBandwidth(const TimingOptions& timing);

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_ENGINE_TABLES_H_
