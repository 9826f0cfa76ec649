#include "lab/built_map.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/linalg/blas.h"
#include "core/mapping/build/version_build.h"
#include "core/plan/artifact.h"
#include "core/status/status_macros.h"

namespace phimap::lab {
namespace {

class NobodyWatches final : public BuildMonitor {
 public:
  absl::Status Checkpoint(absl::string_view, double) override { return absl::OkStatus(); }
};

absl::StatusOr<BuildSpec> SpecOf(const MapText& text, uint64_t seed) {
  BuildSpec spec{.standardize = text.standardize, .seed = seed};
  PHIMAP_ASSIGN_OR_RETURN(spec.mapping, MappingSpec::Parse(text.mapping));
  PHIMAP_ASSIGN_OR_RETURN(spec.remote, RemoteKernel::Parse(text.kernel));
  if (!spec.remote.has_value()) {
    PHIMAP_ASSIGN_OR_RETURN(spec.kernel, KernelExpression::Parse(text.kernel));
  }
  PHIMAP_RETURN_IF_ERROR(spec.Validate());
  return spec;
}

// Copies the rows into a contiguous matrix.
Matrix<double> Whole(ConstMatrixView<double> rows) {
  Matrix<double> whole = Matrix<double>::Uninit(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) std::copy_n(rows.row(i), rows.cols(), whole.row(i));
  return whole;
}

RowsView BytesOf(const Matrix<double>& rows) {
  return {.data = reinterpret_cast<const char*>(rows.data()),
          .type = FloatType::kFloat64,
          .rows = rows.rows(),
          .columns = rows.cols()};
}

template <typename T>
absl::StatusOr<Matrix<double>> MapTyped(const Engine& engine, const Matrix<double>& rows) {
  Matrix<T> features = Matrix<T>::Uninit(rows.rows(), engine.output_columns());
  const ExamplesView examples(BytesOf(rows));
  PHIMAP_RETURN_IF_ERROR(engine.CheckTakes(examples));
  std::vector<TransformPart> parts = {{.rows = examples, .features = features.data()}};
  EngineScratch scratch;
  engine.Transform(absl::MakeSpan(parts), scratch);
  PHIMAP_RETURN_IF_ERROR(parts[0].status);
  return Converted<double, T>(features.view());
}

}  // namespace

absl::StatusOr<BuiltMap> BuiltMap::Build(const MapText& text, ConstMatrixView<double> stream,
                                         uint64_t seed) {
  UseOneBlasThread();
  PHIMAP_ASSIGN_OR_RETURN(const BuildSpec spec, SpecOf(text, seed));
  PHIMAP_RETURN_IF_ERROR(spec.CheckColumns(stream.cols()));
  const Matrix<double> rows = Whole(stream);
  StreamSample sample(spec, rows.cols());
  PHIMAP_RETURN_IF_ERROR(sample.Add(ExamplesView(BytesOf(rows))));
  NobodyWatches monitor;
  PHIMAP_ASSIGN_OR_RETURN(const BuiltVersion version,
                          BuildVersion(spec, std::move(sample), monitor));
  PHIMAP_ASSIGN_OR_RETURN(const Artifact artifact, DecodeArtifact(version.bytes));
  BuiltMap map;
  map.certificate_ = version.certificate;
  PHIMAP_ASSIGN_OR_RETURN(map.engine_, Engine::Load(artifact.plan));
  return map;
}

absl::StatusOr<Matrix<double>> BuiltMap::Map(ConstMatrixView<double> rows) const {
  const Matrix<double> whole = Whole(rows);
  return engine_->serving_type() == FloatType::kFloat64 ? MapTyped<double>(*engine_, whole)
                                                        : MapTyped<float>(*engine_, whole);
}

}  // namespace phimap::lab
