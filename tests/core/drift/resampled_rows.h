// Rows of a data set, drawn with replacement, as the test for drift sees them.
#ifndef PHIMAP_TESTS_CORE_DRIFT_RESAMPLED_ROWS_H_
#define PHIMAP_TESTS_CORE_DRIFT_RESAMPLED_ROWS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/drift/drift_monitor.h"
#include "core/drift/drift_reference.h"
#include "core/drift/reference_making.h"
#include "core/engine/engine.h"
#include "core/linalg/blas.h"
#include "core/plan/artifact.h"
#include "core/plan/residual.h"
#include "core/random/random_stream.h"
#include "core/status/check.h"
#include "tests/core/mapping/builds.h"
#include "tests/core/mapping/csv_rows.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {

// A version that was built from a data set, and the scores of the data set's rows.
class BuiltData {
 public:
  BuiltData(const std::string& file, const std::string& mapping, const std::string& kernel)
      : rows(CsvRows(file)) {
    UseOneBlasThread();
    const BuiltVersion built = MustBuild(SpecOf(mapping, kernel, /*standardize=*/true), rows);
    absl::StatusOr<Artifact> artifact = DecodeArtifact(built.bytes);
    PHIMAP_CHECK(artifact.ok() && !artifact->drift_reference.empty());
    DriftReference decoded = DecodeDriftReference(artifact->drift_reference).value();
    reference = std::make_shared<const DriftReference>(std::move(decoded));
    residual = Residual::Of(artifact->plan, artifact->provenance);
    engine = *Engine::Load(artifact->plan);
    scores = ScoresOf(rows);
  }

  // Returns the scores of any rows.
  Matrix<double> ScoresOf(const Matrix<double>& of) const {
    Matrix<double> out = Matrix<double>::Uninit(of.rows(), reference->scores.count());
    const auto score = [&](const auto& features) {
      ComputeScores(reference->scores, WireRows(of), WireRows(features),
                    residual.has_value() ? &*residual : nullptr, out.view());
    };
    if (engine->serving_type() == FloatType::kFloat32) {
      score(MustTransform<float>(*engine, WireRows(of)));
    } else {
      score(MustTransform<double>(*engine, WireRows(of)));
    }
    return out;
  }

  // Returns the reference with new histograms, over `count` rows of the data set that are drawn
  // with replacement. With these, reference and new rows are exchangeable exactly.
  DriftReference Redrawn(int64_t count, RandomCursor& random) const {
    DriftReference drawn = *DecodeDriftReference(EncodeDriftReference(*reference));
    drawn.rows = count;
    for (ScoreHistogram& histogram : drawn.histograms) {
      std::fill(histogram.counts.begin(), histogram.counts.end(), uint16_t{0});
    }
    for (int64_t i = 0; i < count; ++i) {
      const double* const row = scores.row(Draw(random));
      for (size_t s = 0; s < drawn.histograms.size(); ++s) {
        ++drawn.histograms[s].counts[static_cast<size_t>(drawn.histograms[s].BinOf(row[s]))];
      }
    }
    return drawn;
  }
  int64_t Draw(RandomCursor& random) const {
    return static_cast<int64_t>(random.UniformBelow(static_cast<uint64_t>(rows.rows())));
  }

  const Matrix<double> rows;
  std::shared_ptr<const DriftReference> reference;
  std::optional<Residual> residual;
  std::unique_ptr<const Engine> engine;
  Matrix<double> scores;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_DRIFT_RESAMPLED_ROWS_H_
