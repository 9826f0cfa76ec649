
#include "server/observe/series.h"

namespace phimap {

const std::vector<double>& LatencyBuckets() {
  static const std::vector<double>* const buckets = new std::vector<double>{
      25e-6, 50e-6, 75e-6, 100e-6, 150e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3,
      10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1,      2.5,  5,      10};
  return *buckets;
}

const std::vector<double>& LongLatencyBuckets() {
  static const std::vector<double>* const buckets = new std::vector<double>{
      1e-3, 5e-3, 25e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60, 300, 1800};
  return *buckets;
}

}  // namespace phimap
