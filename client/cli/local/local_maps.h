// Maps in this process: a reference is the path of an artifact, and what is built or trained is an
// artifact that Save writes.
#ifndef PHIMAP_CLIENT_CLI_LOCAL_LOCAL_MAPS_H_
#define PHIMAP_CLIENT_CLI_LOCAL_LOCAL_MAPS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/client.h"
#include "core/feature_map/feature_map.h"
#include "core/train/row_spool.h"

namespace phimap::cli {

// Whether a reference means a file: names of mappings have no '.' and no '/'.
bool IsArtifactPath(absl::string_view reference);

// Reads a whole artifact; "-" is standard input. Memory is allocated for bytes that were read,
// never for a size that the file claims. Errors: those of opening and reading; INVALID_ARGUMENT for
// a file with more bytes than its head states.
absl::StatusOr<std::string> ReadArtifactFile(const std::string& path);

// Returns the ONNX model of an artifact (client/local/onnx_model.h): "features", "answers", or, if
// `outputs` is empty, answers if there is a head.
absl::StatusOr<std::string> OnnxModelOfArtifact(std::string artifact, absl::string_view outputs);

// Errors are those of the same calls to a server, but for those of connections. Not thread-safe.
class LocalMaps final : public client::RowCalls {
 public:
  LocalMaps();

  // The versions have no name, number or time; Save gives them a file.
  absl::StatusOr<v1::Version> Build(const client::BuildOptions& options, client::RowSource& source,
                                    const client::BuildObserver& observer,
                                    client::CancelToken* cancel) override;
  // Leaves out what a server holds and allows.
  absl::StatusOr<v1::EstimateBuildResponse> EstimateBuild(const client::BuildOptions& options,
                                                          int64_t rows, int32_t columns) override;
  absl::StatusOr<v1::Version> Train(const client::TrainOptions& options,
                                    client::LabeledRowSource& source,
                                    const client::BuildObserver& observer,
                                    client::CancelToken* cancel) override;
  absl::StatusOr<v1::Version> Tune(const client::TrainOptions& options,
                                   client::LabeledRowSource& source,
                                   const client::BuildObserver& observer,
                                   client::CancelToken* cancel) override;
  absl::StatusOr<client::TransformStreamResult> TransformStream(
      absl::string_view reference, client::RowSource& source, const client::FeatureSink& sink,
      const client::TransformStreamOptions& options, client::CancelToken* cancel) override;
  absl::StatusOr<client::PredictStreamResult> PredictStream(
      absl::string_view reference, client::RowSource& source, const client::PredictionSink& sink,
      const client::PredictStreamOptions& options, client::CancelToken* cancel) override;
  absl::StatusOr<v1::Evaluation> Evaluate(const client::EvaluateOptions& options,
                                          client::LabeledRowSource& source,
                                          const client::EvaluateObserver& observer,
                                          client::CancelToken* cancel) override;
  absl::StatusOr<v1::Version> GetVersion(absl::string_view reference, bool wait) override;
  absl::StatusOr<client::ExportResult> Export(absl::string_view reference,
                                              const client::ArtifactSink& sink,
                                              client::CancelToken* cancel) override;

  // Writes the artifact that was built or trained last, and names `version` by its path. REQUIRES:
  // there is one.
  absl::Status Save(const std::string& path, v1::Version& version) const;

 private:
  using Map = std::shared_ptr<const FeatureMap>;

  absl::StatusOr<Map> Load(absl::string_view reference);
  absl::StatusOr<v1::Version> Keep(std::string artifact);

  const int threads_;
  SpoolSpace space_;
  std::map<std::string, Map> loaded_;
  Map made_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_LOCAL_LOCAL_MAPS_H_
