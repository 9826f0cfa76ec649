#include "server/registry/version_loader.h"

#include <new>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/drift/drift_reference.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kNoMemoryRetryDelayMs = 500;

// Returns the artifact's drift reference, or null if it has none.
absl::StatusOr<std::shared_ptr<const DriftReference>> ReferenceOf(const Artifact& artifact,
                                                                  bool has_residual) {
  if (artifact.drift_reference.empty()) return nullptr;
  PHIMAP_ASSIGN_OR_RETURN(DriftReference reference, DecodeDriftReference(artifact.drift_reference));
  PHIMAP_RETURN_IF_ERROR(CheckReferenceFits(reference, artifact.plan, has_residual));
  return std::make_shared<const DriftReference>(std::move(reference));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LiveVersion>> VersionLoader::Load(
    const VersionRecord& record) const {
  try {
    return Unpack(record);
  } catch (const std::bad_alloc&) {
    return MakeError(absl::StatusCode::kResourceExhausted, "MACHINE_MEMORY_FULL", "",
                     absl::StrCat("not enough memory to load version ", record.number, " of \"",
                                  record.mapping, "\""),
                     {}, kNoMemoryRetryDelayMs);
  }
}

absl::StatusOr<std::shared_ptr<const LiveVersion>> VersionLoader::Unpack(
    const VersionRecord& record) const {
  auto version = std::make_shared<LiveVersion>();
  version->record = record;
  PHIMAP_ASSIGN_OR_RETURN(std::string bytes, store_.ReadArtifactOf(record));
  PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(bytes));
  bytes = std::string();  // Freed before packing, which needs as much again.
  version->certificate = std::move(artifact.certificate);
  version->standardize = artifact.provenance.standardize;
  version->seed = artifact.provenance.seed;
  version->columns = NamedColumns(std::move(artifact.provenance.column_names));
  PHIMAP_ASSIGN_OR_RETURN(version->engine, Engine::Load(artifact.plan));
  version->residual = Residual::Of(artifact.plan, artifact.provenance);
  PHIMAP_ASSIGN_OR_RETURN(version->drift_reference,
                          ReferenceOf(artifact, version->residual.has_value()));
  PHIMAP_ASSIGN_OR_RETURN(version->kernel, KernelOf(artifact.plan, version->residual.has_value()));
  version->series = metrics_.versions->Open(record.mapping, record.number);
  return version;
}

absl::StatusOr<std::shared_ptr<KernelQueue>> VersionLoader::KernelOf(const Plan& plan,
                                                                     bool want_diagonal) const {
  const auto* const block =
      std::visit([](const auto& stages) { return std::get_if<RemoteFeatures>(&stages.features); },
                 plan.stages);
  if (block == nullptr || block->kind == RemoteFeatures::StoredKind::kRowNumbers) {
    return nullptr;
  }
  PHIMAP_ASSIGN_OR_RETURN(KernelService* const service,
                          FindKernelService(kernels_, block->endpoint, ""));
  return std::make_shared<KernelQueue>(*service, *block, plan.input_columns(), want_diagonal);
}

}  // namespace phimap
