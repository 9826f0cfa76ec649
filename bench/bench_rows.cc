// Writes rows of independent standard normal numbers to standard output as npy. bench/run builds
// its versions from them.
//
//   bench_rows ROWS COLUMNS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "client/files/npy_file.h"

int main(int argc, char** argv) {
  const long rows = argc == 3 ? std::atol(argv[1]) : 0;
  const long columns = argc == 3 ? std::atol(argv[2]) : 0;
  if (rows <= 0 || columns <= 0 || columns > 65'536) {
    std::fprintf(stderr, "usage: bench_rows ROWS COLUMNS > FILE.npy\n");
    return 2;
  }
  const std::string head = phimap::NpyHeaderBytes(true, rows, static_cast<int32_t>(columns));
  std::fwrite(head.data(), 1, head.size(), stdout);
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> row(columns);
  for (long i = 0; i < rows; ++i) {
    for (float& value : row) value = normal(random);
    std::fwrite(row.data(), sizeof(float), row.size(), stdout);
  }
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? 0 : 1;
}
