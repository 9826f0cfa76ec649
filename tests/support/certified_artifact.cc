#include "tests/support/certified_artifact.h"

#include <memory>
#include <utility>

#include "core/engine/engine.h"
#include "core/status/check.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

SelfCheck ReferenceVectors(const Plan& plan) {
  const Matrix<float> rows = UniformFloatRows({.rows = 2, .cols = plan.input_columns(), .seed = 9});
  const RowsView view = WireRows(rows);
  const std::unique_ptr<const Engine> engine = *Engine::Load(plan);
  SelfCheck check{.rows = 2,
                  .rows_float32_le = std::string(view.data, 2 * view.RowBytes()),
                  .features_le = std::string(
                      2 * engine->output_columns() * FloatTypeBytes(engine->serving_type()), '\0')};
  TransformPart part{
      .rows = view, .features = check.features_le.data(), .status = absl::OkStatus()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  PHIMAP_CHECK(part.status.ok());
  return check;
}

}  // namespace

std::string CertifiedArtifact(const PlanShape& shape, const ArtifactEdits& edits) {
  Artifact artifact;
  artifact.plan = MakePlan(shape);
  artifact.provenance = {.spec_text = "f2(landmarks=7, policy=uniform)",
                         .kernel_text = "rbf(gamma=0.5)",
                         .standardize = true,
                         .seed = 3};
  Certificate certificate{.stream_rows = 100,
                          .pool_rows = 80,
                          .held_out_rows = 20,
                          .landmarks = 7,
                          .policy = "uniform",
                          .theorem = "d ≥ (8/ε)(1/γ² + ln 1/δ)",
                          .self_check = ReferenceVectors(artifact.plan)};
  if (edits.provenance) edits.provenance(artifact.provenance);
  if (edits.certificate) edits.certificate(certificate);
  artifact.certificate = EncodeCertificate(certificate);
  return *EncodeArtifact(artifact);
}

}  // namespace phimap::testing
