#include "core/mapping/build/build_cost.h"

#include <time.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/certificate/measurement.h"
#include "core/certificate/self_check.h"
#include "core/certificate/spectrum.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_work.h"
#include "core/kernel/string_kernel.h"
#include "core/landmark/count_rule.h"
#include "core/landmark/reservoir.h"
#include "core/landmark/split.h"
#include "core/linalg/blas.h"
#include "core/linalg/matrix.h"
#include "core/mapping/build/drift_step.h"
#include "core/mapping/build/remote_values.h"
#include "core/mapping/sample/gamma.h"
#include "core/mapping/sample/stream_sample.h"
#include "core/plan/plan.h"
#include "core/plan/residual.h"
#include "core/status/check.h"

namespace phimap {
namespace {

constexpr int64_t kDouble = sizeof(double);
// Size of the header, the sections, and the certificate without its lists. 1.3 to 1.6 KB were
// observed.
constexpr int64_t kArtifactFrameBytes = 1500;
// Cost per pair of rows for gamma=median. It includes the distance of the two rows, which are far
// apart in memory, and the pair's share of the cost of sorting.
constexpr double kElementsOfPair = 20;
// Assumed cost of a value from a kernel service, relative to a value that is computed here. The
// true cost is unknown.
constexpr double kWeightOfRemoteValue = 1000;
// Minimum work of any build: 0.3 ms.
constexpr double kFixedElements = 1e5;

// Assumed length of a string in forecasts. The real lengths are not known before the stream
// arrives.
constexpr int64_t kLikelyStringBytes = 256;

// Numbers of rows in the sample of a stream.
struct SampleShape {
  int64_t pool_rows = 0;
  int64_t kept = 0;
  int64_t held_out = 0;
};

SampleShape SampleOf(const BuildSpec& spec, int64_t rows, int64_t columns) {
  const int64_t given = spec.mapping.given_rows();
  // A Gram matrix is square, so its stream has as many rows as columns.
  const int64_t streamed = spec.is_precomputed() ? columns : rows;
  const int64_t sampled = std::max<int64_t>(streamed - given, 0);
  const int64_t wanted = spec.PoolRows(columns);
  SampleShape sample;
  sample.kept = std::min(sampled, ReservoirCapacity(wanted));
  sample.held_out = HeldOutCount(sampled, sample.kept, spec.mapping.least_landmarks() - given);
  if (spec.remote.has_value()) {
    sample.held_out = std::min(sample.held_out, kMaxRemoteHeldOutRows);
  }
  sample.pool_rows = std::min(wanted, sample.kept - sample.held_out);
  sample.held_out = std::min(sample.held_out, spec.MostHeldOutRows());
  return sample;
}

// Returns the number of columns that the kernel is evaluated on.
int64_t SeenColumns(const BuildSpec& spec, int64_t columns) {
  return spec.mapping.input_dimensions > 0 ? spec.mapping.input_dimensions : columns;
}

// Returns the number of entries of the input stage's projection.
int64_t InputProjectionNumbers(const BuildSpec& spec, int64_t columns) {
  return spec.mapping.input_dimensions * columns;
}

MappingCost CostOfMapping(const BuildSpec& spec, int64_t columns, FloatType serving_type,
                          int threads) {
  MappingCost cost = spec.mapping.kind->cost({.spec = spec,
                                              .columns = SeenColumns(spec, columns),
                                              .serving_type = serving_type,
                                              .threads = threads});
  const int64_t projection = InputProjectionNumbers(spec, columns);
  cost.row.product_flops += 2 * static_cast<double>(projection);
  cost.work.product_flops += 2 * static_cast<double>(projection * spec.mapping.landmarks);
  cost.work.elements += 5 * static_cast<double>(projection);
  // Each plan holds the projection. During the build, the task and a copy of the task hold it too.
  cost.kept_bytes += 2 * kDouble * projection;
  cost.build_bytes += 4 * kDouble * projection;
  return cost;
}

bool OfStrings(const BuildSpec& spec) {
  return !spec.remote.has_value() && spec.kernel.TakesStrings();
}

ReferenceShape ReferenceOf(const BuildSpec& spec, const MappingCost& mapping,
                           const SampleShape& sample, int64_t columns) {
  const int64_t drawn =
      spec.mapping.has_landmarks() ? std::min(spec.mapping.landmarks, sample.pool_rows) : 0;
  const bool remote = spec.remote.has_value();
  return {
      .held_out_rows = sample.held_out,
      .pool_rows =
          remote ? 0 : sample.pool_rows - std::max<int64_t>(drawn - spec.mapping.given_rows(), 0),
      .columns = remote || OfStrings(spec) ? 0 : columns,
      .output_columns = mapping.output_columns,
      .has_residual = Residual::IsServedBy(spec.mapping.ToText())};
}

int64_t ArtifactBytes(const BuildSpec& spec, const MappingCost& mapping, const SampleShape& sample,
                      int64_t columns, FloatType serving_type) {
  const int64_t width = FloatTypeBytes(serving_type);
  const bool centred = spec.kernel.IsTranslationInvariant();
  const bool shifted = spec.standardize || centred;
  const int64_t projection = InputProjectionNumbers(spec, columns);
  const bool scaled = spec.standardize || projection > 0;
  const int64_t input = kDouble * (columns * ((shifted ? 1 : 0) + (scaled ? 1 : 0)) + projection);
  const int64_t check = SelfCheckRows(columns, mapping.output_columns) *
                        (4 * columns + width * mapping.output_columns);
  // Pivots, eigenvalues, and five effective dimensions of three numbers each.
  const int64_t pivots = mapping.rank > 0 ? kDouble * (mapping.rank + kMaxEigenvalues + 5 * 3) : 0;
  const int64_t reference = ReferenceBytes(ReferenceOf(spec, mapping, sample, columns));
  const int64_t numbers = kArtifactFrameBytes + width * mapping.plan_numbers + pivots + reference;
  // Strings have no input stage and no reference vectors.
  if (OfStrings(spec)) return numbers + kLikelyStringBytes * spec.mapping.landmarks;
  return numbers + input + check;
}

// Returns the memory of string indexes in bytes: an engine's index of the landmarks' n-grams, and
// for each thread an index of the n-grams of a block.
int64_t StringIndexBytes(const BuildSpec& spec, int threads) {
  if (!OfStrings(spec)) return 0;
  return StringIndex::kBytesPerUnit * (kMaxIndexedBytes + threads * kMaxBlockIndexedBytes);
}

MeasurementShape MeasurementOf(const BuildSpec& spec, const MappingCost& mapping,
                               const SampleShape& sample, int64_t columns) {
  const FloatType type = spec.mapping.serving_type.value_or(FloatType::kFloat32);
  return {.rows = sample.held_out,
          .columns = std::max(columns, SeenColumns(spec, columns)),
          .output_columns = mapping.output_columns,
          .row = mapping.row,
          .plan_numbers = mapping.plan_numbers,
          .value = spec.mapping.kind->approximates_kernel
                       ? std::optional<ValueWork>(WorkOfValue(spec.kernel, columns))
                       : std::nullopt,
          .centre_landmarks = spec.mapping.centres_kernel() ? spec.mapping.landmarks : 0,
          .centre_gram = spec.mapping.input_dimensions > 0,
          .rank = spec.mapping.kind->features_are_projection ? 0 : mapping.rank,
          .is_float32 = type == FloatType::kFloat32};
}

Work MedianWork(const BuildSpec& spec, const SampleShape& sample, int64_t columns) {
  if (!spec.kernel.NeedsMedian()) return {};
  const double pool = static_cast<double>(sample.pool_rows);
  const double pairs = std::min(pool * (pool - 1) / 2, static_cast<double>(kMaxGammaPairs));
  return {.elements = pairs * (static_cast<double>(columns) / 4 + kElementsOfPair)};
}

LandmarkPoolShape PoolShapeOf(const BuildSpec& spec, const SampleShape& sample, int64_t columns) {
  // The pool has at least as many rows as landmarks.
  return {.rows = std::max(sample.pool_rows, spec.mapping.landmarks),
          .landmarks = spec.mapping.landmarks,
          .columns = columns,
          .seen_columns = SeenColumns(spec, columns),
          .value = WorkOfValue(spec.kernel, columns)};
}

CountShape CountShapeOf(const BuildSpec& spec, const SampleShape& sample, int64_t columns) {
  return {.candidates = std::min(spec.mapping.landmarks, sample.pool_rows),
          .deciding = DecidingCount(sample.pool_rows),
          .columns = std::max(columns, SeenColumns(spec, columns)),
          .value = WorkOfValue(spec.kernel, columns)};
}

int64_t ChoosingBytes(const BuildSpec& spec, const SampleShape& sample, int64_t columns) {
  const LandmarkPolicy& policy = *spec.mapping.policy;
  const int64_t policy_bytes =
      policy.bytes == nullptr ? 0 : policy.bytes(PoolShapeOf(spec, sample, columns));
  const CountRule* const rule = spec.mapping.count_rule;
  if (rule == nullptr) return policy_bytes;
  return std::max(policy_bytes, rule->bytes(CountShapeOf(spec, sample, columns)));
}

Work ChoosingWork(const BuildSpec& spec, const SampleShape& sample, int64_t columns) {
  const LandmarkPolicy& policy = *spec.mapping.policy;
  Work work = policy.work == nullptr ? Work{} : policy.work(PoolShapeOf(spec, sample, columns));
  const CountRule* const rule = spec.mapping.count_rule;
  if (rule != nullptr) work += rule->work(CountShapeOf(spec, sample, columns));
  return work;
}

// Returns the number of rows that the spectrum is measured on; 0 for a mapping without a factor.
int64_t SpectrumRows(const MappingCost& mapping, const SampleShape& sample) {
  if (mapping.rank == 0 || sample.held_out < kMinHeldOutRows) return 0;
  return std::min(sample.held_out, kMaxSpectrumRows);
}

// Returns the number of values requested from a remote kernel; 0 for any other kernel.
double RemoteValueCount(const BuildSpec& spec, const SampleShape& sample) {
  if (!spec.remote.has_value()) return 0;
  return CountRemoteValues(spec.mapping, spec.mapping.landmarks, sample.held_out);
}

// Returns the bytes of a GramSample.
int64_t GramSampleBytes(const BuildSpec& spec, int64_t columns) {
  const int64_t kept = std::min(columns, spec.mapping.landmarks + kMaxRemoteHeldOutRows);
  return kDouble * (kept * kept + columns);
}

// Returns the memory of a build besides the sample: landmarks and held-out rows, which are held all
// the time, plus the memory of the step that needs most.
int64_t ComputeBytes(const BuildSpec& spec, const SampleShape& sample, int64_t columns,
                     int threads) {
  const FloatType widest = spec.mapping.serving_type.value_or(FloatType::kFloat64);
  const MappingCost mapping = CostOfMapping(spec, columns, widest, threads);
  const int64_t seen = spec.mapping.input_dimensions;
  const int64_t rows = kDouble * (columns + seen) * (spec.mapping.landmarks + sample.held_out) +
                       kDouble * InputProjectionNumbers(spec, columns);
  const int64_t pairs = spec.kernel.NeedsMedian() ? kDouble * kMaxGammaPairs : 0;
  // Memory for encoding: the artifact's sections, and two copies of the whole artifact while its
  // buffer grows.
  const int64_t encoding = 3 * ArtifactBytes(spec, mapping, sample, columns, widest);
  const int64_t measuring =
      BytesOfMeasurement(MeasurementOf(spec, mapping, sample, columns), threads);
  const int64_t reference = ReferenceMemoryBytes(ReferenceOf(spec, mapping, sample, columns));
  const int64_t spectrum = BytesOfSpectrum(SpectrumRows(mapping, sample), columns, mapping.rank);
  // All values of a remote kernel, and a copy of those columns that the plan uses.
  const auto values = static_cast<int64_t>(2 * kDouble * RemoteValueCount(spec, sample));
  return values + rows + StringIndexBytes(spec, threads) +
         std::max({mapping.kept_bytes + spectrum, ChoosingBytes(spec, sample, columns),
                   mapping.build_bytes, mapping.kept_bytes + measuring,
                   mapping.kept_bytes + encoding, mapping.kept_bytes + reference, pairs,
                   kDouble * columns * spec.mapping.landmarks});
}

}  // namespace

BuildCost CostOfBuild(const BuildSpec& spec, int64_t rows, int64_t columns, int threads) {
  PHIMAP_CHECK(rows >= 1 && columns >= 1 && columns <= kMaxColumns);
  const SampleShape sample = SampleOf(spec, rows, columns);
  const FloatType serving_type = spec.mapping.serving_type.value_or(FloatType::kFloat32);
  const MappingCost mapping = CostOfMapping(spec, columns, serving_type, threads);
  BuildCost cost;
  // Each number of the stream is widened and added to its column's moments. Some numbers are also
  // copied into the sample.
  cost.work.elements =
      kFixedElements + 2 * static_cast<double>(rows) * static_cast<double>(columns);
  cost.work += MedianWork(spec, sample, columns);
  cost.work += ChoosingWork(spec, sample, columns);
  cost.work.elements += RemoteValueCount(spec, sample);
  cost.work += mapping.work;
  cost.work += WorkOfSpectrum(SpectrumRows(mapping, sample), columns, mapping.rank,
                              WorkOfValue(spec.kernel, columns));
  cost.work += WorkOfMeasurement(MeasurementOf(spec, mapping, sample, columns));
  cost.work += ReferenceWork(ReferenceOf(spec, mapping, sample, columns), mapping.row);
  cost.artifact_bytes = ArtifactBytes(spec, mapping, sample, columns, serving_type);
  cost.output_columns = mapping.output_columns;
  const int64_t copies = spec.kernel.NeedsMedian() || spec.mapping.policy->copies_pool ? 3 : 1;
  // The vector of given rows doubles its capacity when it grows.
  const int64_t sample_rows = copies * sample.kept + 3 * spec.mapping.given_rows();
  cost.sample_bytes = spec.is_precomputed() ? GramSampleBytes(spec, columns)
                                            : sample_rows * (columns + 1) * kDouble;
  if (OfStrings(spec)) {
    cost.sample_bytes += StringSampleBytes(sample.kept + spec.mapping.given_rows());
  }
  cost.compute_bytes = ComputeBytes(spec, sample, columns, threads);
  return cost;
}

BuildShares SharesOfBuild(const BuildSpec& spec, int64_t rows, int64_t columns) {
  const SampleShape sample = SampleOf(spec, rows, columns);
  const MappingCost mapping = CostOfMapping(
      spec, columns, spec.mapping.serving_type.value_or(FloatType::kFloat32), /*threads=*/1);
  BuildShares shares;
  shares.choose = ChoosingWork(spec, sample, columns).weight() +
                  kWeightOfRemoteValue * RemoteValueCount(spec, sample);
  shares.mapping = mapping.work.weight();
  shares.spectrum = WorkOfSpectrum(SpectrumRows(mapping, sample), columns, mapping.rank,
                                   WorkOfValue(spec.kernel, columns))
                        .weight();
  shares.measurement = (WorkOfMeasurement(MeasurementOf(spec, mapping, sample, columns)) +
                        ReferenceWork(ReferenceOf(spec, mapping, sample, columns), mapping.row))
                           .weight();
  const double all =
      std::max(1.0, shares.choose + shares.mapping + shares.spectrum + shares.measurement);
  for (double* share : {&shares.choose, &shares.mapping, &shares.spectrum, &shares.measurement}) {
    *share /= all;
  }
  return shares;
}

int64_t ReservedBytes(const BuildSpec& spec, int64_t columns, int threads) {
  return CostOfBuild(spec, Reservoir::kMaxStreamRows, columns, threads).memory_bytes();
}

int64_t ReservedBytes(const BuildSpec& spec, ExampleKind kind, int64_t columns, int threads) {
  const int64_t told = ReservedBytes(spec, columns, threads);
  if (!spec.remote.has_value() || !IsString(kind)) return told;
  const int64_t kept = ReservoirCapacity(spec.PoolRows(columns)) + spec.mapping.given_rows();
  return told + 2 * StringSampleBytes(kept);
}

namespace {

// Time per operation of a blocked pivoted factorization relative to a large product, measured on an
// AVX-512 machine. The factorization's vector products and its search for pivots are slower.
constexpr double kFactorSlowness = 1.7;

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Returns the shortest time of three runs, because the first run may find cold caches.
template <typename Run>
double BestSeconds(const Run& run) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double before = ThreadSeconds();
    run();
    best = std::min(best, ThreadSeconds() - before);
  }
  return std::max(best, 1e-9);
}

Matrix<double> Filled(int64_t rows, int64_t columns) {
  Matrix<double> m = Matrix<double>::Uninit(rows, columns);
  for (int64_t i = 0; i < m.size(); ++i) m.data()[i] = 0.1 * static_cast<double>(i % 13);
  return m;
}

double ProductFlopsPerSecond() {
  const Matrix<double> a = Filled(256, 512);
  const Matrix<double> b = Filled(1024, 512);
  Matrix<double> out(a.rows(), b.rows());
  const double seconds =
      BestSeconds([&] { MultiplyTransposed(1, a.view(), b.view(), 0, out.view()); });
  return 2.0 * static_cast<double>(out.size() * a.cols()) / seconds;
}

// Measures a kernel block like those of the certificate: 256 rows against 2,000 others.
double ElementsPerSecond() {
  const Matrix<double> x = Filled(256, 4);
  const Matrix<double> z = Filled(2000, 4);
  const std::vector<double> x_norms = SquaredNorms(x.view());
  const std::vector<double> z_norms = SquaredNorms(z.view());
  const KernelProgram rbf =
      KernelProgram::Compile(KernelExpression::Parse("rbf(gamma=0.1)").value());
  Matrix<double> out(x.rows(), z.rows());
  const double seconds =
      BestSeconds([&] { KernelBlock(rbf, x.view(), x_norms, z.view(), z_norms, out.view()); });
  return static_cast<double>(out.size()) / seconds;
}

}  // namespace

BuildSpeed MeasureBuildSpeed() {
  return {.product_flops_per_second = ProductFlopsPerSecond(),
          .elements_per_second = ElementsPerSecond()};
}

double SecondsOf(const Work& work, const BuildSpeed& speed) {
  return (work.product_flops + kFactorSlowness * work.factor_flops) /
             speed.product_flops_per_second +
         work.elements / speed.elements_per_second;
}

}  // namespace phimap
