// The calls behind Client, with their retries, and their messages. Includes gRPC: for .cc files
// only.
#ifndef PHIMAP_CLIENT_CPP_CALLS_H_
#define PHIMAP_CLIENT_CPP_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"
#include "client/cpp/example_block.h"
#include "client/cpp/revision_memory.h"
#include "core/status/words.h"
#include "google/protobuf/duration.pb.h"
#include "phimap/v1/examples.pb.h"
#include "phimap/v1/learning_service.grpc.pb.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "phimap/v1/predict_service.grpc.pb.h"
#include "phimap/v1/transform_service.grpc.pb.h"

namespace phimap::client {

// A random UUID (RFC 4122, version 4) in lower case, from the operating system's entropy: it must
// differ between clients, so it has no seed. Thread-safe.
std::string RandomUuid();

// Moves the examples of a block into a message. REQUIRES: the block is not empty.
void ToExamples(ExampleBlock block, v1::Examples& examples);

// Moves the rows of a block and their labels, which the source has, into LabeledExamples or
// TrainingExamples.
template <typename Examples>
absl::Status ToLabeledExamples(ExampleBlock block, LabeledRowSource& source, Examples& examples) {
  std::vector<std::string> labels = source.TakeLabels();
  if (static_cast<int64_t>(labels.size()) != block.rows()) {
    return absl::InternalError(absl::StrCat("the source has ", CountOf(labels.size(), "label"),
                                            " for ", CountOf(block.rows(), "row")));
  }
  examples.Clear();
  ToExamples(std::move(block), *examples.mutable_examples());
  for (std::string& label : labels) examples.add_labels(std::move(label));
  return absl::OkStatus();
}

// Moves the rows of the server's answer into a block. Returns kInternal if they are not
// `expected_rows` well-formed rows.
absl::StatusOr<RowBlock> FromAnswer(v1::DenseRows&& rows, int32_t expected_rows);

// Returns `block` with `column`, the residuals, appended in the type of the block. Returns
// kInternal if there is not one value per row.
absl::StatusOr<RowBlock> WithLastColumn(RowBlock block,
                                        const google::protobuf::RepeatedField<double>& column);

// REQUIRES: `duration` is finite.
void ToProto(absl::Duration duration, google::protobuf::Duration& out);

// Fill `spec` from `options`; `column_names` are those of the rows.
void ToSpec(const BuildOptions& options, v1::BuildSpec& spec);
void ToSpec(const TrainOptions& options, const std::vector<std::string>& column_names,
            v1::TrainingSpec& spec);
void ToSpec(const EvaluateOptions& options, const std::vector<std::string>& column_names,
            v1::EvaluationSpec& spec);
// Adds what is known of rows to their examples. kInvalidArgument for a part without such a name.
absl::Status AddFacts(RowFacts facts, v1::TrainingExamples& examples);

// Implements Client::Build. REQUIRES: options.build_id is set.
absl::StatusOr<v1::Version> CallBuild(v1::MappingService::StubInterface& stub,
                                      RevisionMemory& revisions, const RetryPolicy& retry,
                                      const BuildOptions& options, RowSource& source,
                                      const BuildObserver& observer, CancelToken& cancel);

// Implements Client::Train. REQUIRES: options.build_id is set.
absl::StatusOr<v1::Version> CallTrain(v1::LearningService::StubInterface& stub,
                                      RevisionMemory& revisions, const RetryPolicy& retry,
                                      const TrainOptions& options, LabeledRowSource& source,
                                      const BuildObserver& observer, CancelToken& cancel);

// Sets what the request asks for.
void ToRequest(const WantedOutputs& wanted, v1::PredictRequest& request);
// Returns the predictions of an answer. `classes` are the names that the answer, or the first of
// its stream, has. Returns kInternal if the answer is not about `rows` rows.
absl::StatusOr<Predictions> FromPrediction(v1::PredictResponse&& answer,
                                           const std::vector<std::string>& classes, int32_t rows);

// Implements Client::PredictStream. REQUIRES: window >= 1; rows_per_request >= 0.
absl::StatusOr<PredictStreamResult> CallPredictStream(
    v1::PredictService::StubInterface& stub, RevisionMemory& revisions, const RetryPolicy& retry,
    std::string reference, RowSource& source, const PredictionSink& sink,
    const PredictStreamOptions& options, CancelToken& cancel);

// Implements Client::TransformStream. REQUIRES: window >= 1; rows_per_request >= 0.
absl::StatusOr<TransformStreamResult> CallTransformStream(
    v1::TransformService::StubInterface& stub, RevisionMemory& revisions, const RetryPolicy& retry,
    std::string reference, RowSource& source, const FeatureSink& sink,
    const TransformStreamOptions& options, CancelToken& cancel);

// Implements Client::Evaluate.
absl::StatusOr<v1::Evaluation> CallEvaluate(v1::LearningService::StubInterface& stub,
                                            RevisionMemory& revisions,
                                            const EvaluateOptions& options,
                                            LabeledRowSource& source,
                                            const EvaluateObserver& observer, CancelToken& cancel);

// Implement Client::Export and Client::Import. Both block and hold one chunk in memory at a time.
absl::StatusOr<ExportResult> CallExport(v1::MappingService::StubInterface& stub,
                                        RevisionMemory& revisions, const std::string& reference,
                                        const ArtifactSink& sink, CancelToken& cancel);
absl::StatusOr<v1::Version> CallImport(v1::MappingService::StubInterface& stub,
                                       RevisionMemory& revisions, const std::string& name,
                                       const ArtifactSource& source, CancelToken& cancel);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_CALLS_H_
