#include "bench/engine_tables.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "bench/bench_plans.h"
#include "bench/blas_mapping.h"
#include "bench/normal_matrix.h"
#include "bench/vector_loops.h"
#include "core/engine/engine.h"
#include "core/linalg/panel_product.h"
#include "core/status/check.h"

namespace phimap::bench {
namespace {

// A run of the multiply-add loop with this number of rounds takes about 30 us.
constexpr int64_t kPeakRounds = 1 << 13;
constexpr int64_t kUncachedBytes = int64_t{512} << 20;

// The two limits of the machine, as contenders that run beside the others in each round.
class Limits {
 public:
  explicit Limits(int64_t read_bytes)
      : buffer_(1, std::max<int64_t>(1, read_bytes / static_cast<int64_t>(sizeof(float)))) {}

  Contender Peak() {
    return {"peak", [this] { operations_ = RunMultiplyAdds(kPeakRounds); }};
  }
  Contender Read() {
    return {"read", [this] { sum_ = sum_ + ReadAll(buffer_.data(), buffer_.size()); }};
  }
  double PeakGflops(const Contender& peak) const {
    return static_cast<double>(operations_) / peak.median_us * 1e-3;
  }
  double ReadGigabytesPerSecond(const Contender& read) const {
    return static_cast<double>(bytes()) / read.median_us * 1e-3;
  }
  int64_t bytes() const { return buffer_.size() * static_cast<int64_t>(sizeof(float)); }

 private:
  Matrix<float> buffer_;
  int64_t operations_ = 0;
  volatile float sum_ = 0;
};

// Returns `result` with the times of the contenders, which are in the order phimap, peak, read,
// BLAS, and with the rates that follow from these times.
EngineResult Measured(EngineResult result, const Limits& limits, const TimingOptions& timing,
                      int64_t multiplications, std::vector<Contender> contenders) {
  TimeInterleaved(timing, contenders);
  result.target = LoopTargetName();
  result.phimap_us = contenders[0].median_us;
  result.peak_gflops = limits.PeakGflops(contenders[1]);
  result.read_gigabytes_per_second = limits.ReadGigabytesPerSecond(contenders[2]);
  result.gflops = 2e-3 * static_cast<double>(result.rows * multiplications) / result.phimap_us;
  result.gigabytes_per_second = 1e-3 * static_cast<double>(limits.bytes()) / result.phimap_us;
  result.blas.assign(std::make_move_iterator(contenders.begin() + 3),
                     std::make_move_iterator(contenders.end()));
  return result;
}

EngineResult MeasureProjection(const BenchMapping& mapping, const BenchNumbers& numbers,
                               const PanelMatrix<float>& panels, int64_t rows,
                               const TimingOptions& timing, std::mt19937_64& random) {
  const int64_t d = mapping.landmarks;
  const Matrix<float> z = NormalMatrix<float>(rows, d, 1, random);
  // Stride of the engine's tiles.
  const int64_t stride = SpreadStride<float>(d);
  Matrix<float> spread(rows, stride);
  for (int64_t i = 0; i < rows; ++i) std::copy_n(z.row(i), d, spread.row(i));
  Matrix<float> y(rows, d);
  std::vector<float*> y_rows;
  for (int64_t i = 0; i < rows; ++i) y_rows.push_back(y.row(i));
  BlasMapping blas(mapping, numbers, rows);
  Limits limits(panels.memory_bytes());
  std::vector<Contender> contenders = {
      {"phimap", [&] { panels.Multiply(spread.data(), stride, rows, y_rows.data()); }},
      limits.Peak(),
      limits.Read()};
  for (const BlasWay way : BlasWaysFor(mapping, rows)) {
    contenders.push_back({BlasWayName(way), [&, way] { blas.Project(way, z); }});
  }
  return Measured({.table = "projection", .mapping = "W", .d = d, .outputs = d, .rows = rows},
                  limits, timing, panels.multiplications(), std::move(contenders));
}

// Checks that the engine computes the right features. The bound is wide, because the engine adds
// the d terms of a sum in another order than OpenBLAS, and W has a norm of about 2.
void CheckAgreement(const Matrix<float>& features, const float* expected) {
  for (int64_t i = 0; i < features.size(); ++i) {
    PHIMAP_CHECK(std::abs(features.data()[i] - expected[i]) < 1e-3f);
  }
}

EngineResult MeasureMapping(const BenchMapping& mapping, const BenchNumbers& numbers,
                            const Engine& engine, int64_t rows, const TimingOptions& timing,
                            std::mt19937_64& random) {
  const Matrix<float> x = NormalMatrix<float>(rows, mapping.inputs, 1, random);
  Matrix<float> features(rows, mapping.outputs);
  EngineScratch scratch;
  const auto transform = [&] {
    TransformPart part{.rows = RowsView{reinterpret_cast<const char*>(x.data()),
                                        FloatType::kFloat32, rows, mapping.inputs},
                       .features = features.data()};
    engine.Transform(absl::MakeSpan(&part, 1), scratch);
    PHIMAP_CHECK(part.status.ok());
  };
  BlasMapping blas(mapping, numbers, rows);
  transform();
  CheckAgreement(features, blas.Transform(BlasWay::kGemm, x));
  Limits limits(engine.memory_bytes());
  std::vector<Contender> contenders = {{"phimap", transform}, limits.Peak(), limits.Read()};
  for (const BlasWay way : BlasWaysFor(mapping, rows)) {
    contenders.push_back({BlasWayName(way), [&, way] { blas.Transform(way, x); }});
  }
  return Measured({.table = "mapping",
                   .mapping = mapping.name,
                   .d = mapping.landmarks,
                   .outputs = mapping.outputs,
                   .rows = rows},
                  limits, timing, engine.multiplications_per_row(), std::move(contenders));
}

}  // namespace

const Contender& EngineResult::FastestBlas() const {
  return *std::min_element(blas.begin(), blas.end(), [](const Contender& a, const Contender& b) {
    return a.median_us < b.median_us;
  });
}

void MeasureProjections(const EngineSizes& sizes, const TimingOptions& timing,
                        const ResultSink& sink) {
  std::mt19937_64 random(1);
  for (const int64_t d : sizes.d) {
    const BenchMapping mapping{"W", sizes.inputs, d, d, WKind::kTriangular};
    const BenchNumbers numbers = MakeNumbers(mapping, random);
    const TriangularProjection<float> triangle = PackedTriangle(numbers.w);
    const auto panels = PanelMatrix<float>::PackUpperTriangle(triangle.elements.data(), d);
    for (const int64_t rows : sizes.rows) {
      sink(MeasureProjection(mapping, numbers, panels, rows, timing, random));
    }
  }
}

void MeasureMappings(const EngineSizes& sizes, const TimingOptions& timing,
                     const ResultSink& sink) {
  std::mt19937_64 random(2);
  for (const int64_t d : sizes.d) {
    for (const BenchMapping& mapping : MappingsOf(sizes.inputs, d)) {
      const BenchNumbers numbers = MakeNumbers(mapping, random);
      const auto engine = Engine::Load(MakePlan(mapping, numbers));
      PHIMAP_CHECK(engine.ok());
      for (const int64_t rows : sizes.rows) {
        sink(MeasureMapping(mapping, numbers, **engine, rows, timing, random));
      }
    }
  }
}

double MemoryBandwidth(const TimingOptions& timing) {
  Limits limits(kUncachedBytes);
  std::vector<Contender> read = {limits.Read()};
  TimeInterleaved(timing, read);
  return limits.ReadGigabytesPerSecond(read[0]);
}

}  // namespace phimap::bench
