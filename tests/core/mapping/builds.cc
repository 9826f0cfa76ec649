#include "tests/core/mapping/builds.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/linalg/blas.h"
#include "core/plan/artifact.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "gtest/gtest.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {

absl::Status ThreadedMonitor::Checkpoint(absl::string_view phase, double fraction) {
  if (phases.empty() || phases.back() != phase) phases.emplace_back(phase);
  EXPECT_GE(fraction, last_);
  last_ = fraction;
  return absl::OkStatus();
}

BuildSpec SpecOf(const std::string& mapping, const std::string& kernel, bool standardize,
                 uint64_t seed) {
  const MappingSpec parsed = MappingSpec::Parse(mapping).value();
  BuildSpec spec{.mapping = parsed, .standardize = standardize, .seed = seed};
  const std::optional<RemoteKernel> remote = RemoteKernel::Parse(kernel).value();
  spec.remote = remote;
  if (spec.remote.has_value()) return spec;
  const KernelExpression expression = KernelExpression::Parse(kernel).value();
  spec.kernel = expression;
  return spec;
}

absl::StatusOr<BuiltVersion> Build(const BuildSpec& spec, const ExamplesView& rows,
                                   int64_t block_rows, KernelSource* source) {
  UseOneBlasThread();
  StreamSample sample(spec, SampleColumns(rows), rows.kind());
  const int64_t step = block_rows == 0 ? std::max<int64_t>(rows.rows(), 1) : block_rows;
  for (int64_t first = 0; first < rows.rows(); first += step) {
    PHIMAP_RETURN_IF_ERROR(sample.Add(rows.Slice(first, std::min(step, rows.rows() - first))));
  }
  RecordingMonitor monitor;
  return BuildVersion(spec, std::move(sample), monitor, source);
}

absl::StatusOr<BuiltVersion> Build(const BuildSpec& spec, const Matrix<double>& rows) {
  return Build(spec, WireRows(rows));
}

BuiltVersion MustBuild(const BuildSpec& spec, const Matrix<double>& rows) {
  absl::StatusOr<BuiltVersion> version = Build(spec, rows);
  if (!version.ok()) std::fprintf(stderr, "%s\n", version.status().ToString().c_str());
  PHIMAP_CHECK(version.ok());
  return *std::move(version);
}

Matrix<double> FeaturesFrom(const BuiltVersion& version, const Matrix<double>& rows) {
  const Artifact artifact = DecodeArtifact(version.bytes).value();
  return MustTransformWide(artifact.plan, WireRows(rows));
}

}  // namespace phimap::testing
