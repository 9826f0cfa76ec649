// Compares the engine with OpenBLAS and with the machine's limits.
#ifndef PHIMAP_BENCH_ENGINE_TABLES_H_
#define PHIMAP_BENCH_ENGINE_TABLES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/interleaved.h"

namespace phimap::bench {

// One line of a table: one size, with all contenders timed in the same rounds.
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
  // gflops: phimap's rate, which counts the matrix elements that its panels store. peak_gflops: the
  // rate of a multiply-add loop that works in registers only.
  double gflops = 0;
  double peak_gflops = 0;
  // gigabytes_per_second: the rate at which phimap reads memory, which counts only the bytes that
  // phimap cannot avoid reading. read_gigabytes_per_second: the rate of a loop that only reads as
  // many bytes.
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

// Called with each result as soon as it is measured.
using ResultSink = std::function<void(const EngineResult&)>;

// Measures y = z·W, where W is an upper triangle: PanelMatrix against OpenBLAS.
void MeasureProjections(const EngineSizes& sizes, const TimingOptions& timing,
                        const ResultSink& sink);
// Measures whole plans: the engine against OpenBLAS. Ends the program if their features differ.
void MeasureMappings(const EngineSizes& sizes, const TimingOptions& timing, const ResultSink& sink);

// Returns the gigabytes per second that one thread reads from memory that is too large for any
// cache.
double MemoryBandwidth(const TimingOptions& timing);

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_ENGINE_TABLES_H_
