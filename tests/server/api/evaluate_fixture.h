// A client of Evaluate, and a server with a version to evaluate.
#ifndef PHIMAP_TESTS_SERVER_API_EVALUATE_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_API_EVALUATE_FIXTURE_H_

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/api/server_fixture.h"

namespace phimap::testing {

// Rows of three uniform numbers. The label of a row is the sign of its first number, except that
// every tenth row has the wrong label.
inline v1::LabeledExamples LabeledRows(int rows, uint64_t seed = 1) {
  v1::LabeledExamples labeled;
  *labeled.mutable_examples() = UniformExamples(rows, 3, seed);
  const std::string& bytes = labeled.examples().dense().float32_le();
  for (int i = 0; i < rows; ++i) {
    float first = 0;
    std::memcpy(&first, bytes.data() + 12 * i, 4);
    labeled.add_labels((first > 0) != (i % 10 == 9) ? "plus" : "minus, or not");
  }
  return labeled;
}

inline v1::EvaluationSpec EvaluationSpecOf(const std::string& learner = "",
                                           const std::string& reference = "letter") {
  v1::EvaluationSpec spec;
  spec.set_reference(reference);
  spec.set_learner(learner);
  return spec;
}

// An Evaluate call, seen from the client, message by message.
class EvaluateStream {
 public:
  explicit EvaluateStream(v1::LearningService::Stub& stub,
                          const std::function<void(grpc::ClientContext&)>& prepare = nullptr) {
    if (prepare) prepare(context_);
    stream_ = stub.Evaluate(&context_);
  }

  bool Send(const v1::EvaluationSpec& spec) {
    v1::EvaluateRequest request;
    *request.mutable_spec() = spec;
    return stream_->Write(request);
  }
  bool Send(const v1::LabeledExamples& examples) {
    v1::EvaluateRequest request;
    *request.mutable_examples() = examples;
    return stream_->Write(request);
  }
  bool SendFinish(int64_t rows) {
    v1::EvaluateRequest request;
    request.mutable_finish()->set_row_count(rows);
    return stream_->Write(request);
  }
  void HalfClose() { stream_->WritesDone(); }
  void Vanish() { context_.TryCancel(); }
  // Await reads until the server reports `state`, and AwaitRows until it reports `rows` received
  // rows. Both return false if the stream ends first.
  bool Await(v1::EvaluateProgress::State state) {
    return AwaitIf([state](const v1::EvaluateProgress& p) { return p.state() == state; });
  }
  bool AwaitRows(int64_t rows) {
    return AwaitIf([rows](const v1::EvaluateProgress& p) { return p.rows_received() == rows; });
  }
  // Reads to the end of the stream. If an evaluation arrives, evaluation() returns it.
  grpc::Status Finish() {
    v1::EvaluateResponse response;
    while (stream_->Read(&response)) Take(response);
    return stream_->Finish();
  }
  const std::optional<v1::Evaluation>& evaluation() const { return evaluation_; }
  const std::vector<v1::EvaluateProgress>& progress() const { return progress_; }

 private:
  bool AwaitIf(const std::function<bool(const v1::EvaluateProgress&)>& wanted) {
    v1::EvaluateResponse response;
    while (stream_->Read(&response)) {
      Take(response);
      if (wanted(response.progress())) return true;
    }
    return false;
  }
  void Take(const v1::EvaluateResponse& response) {
    EXPECT_FALSE(evaluation_.has_value()) << "a message came after the evaluation";
    if (response.has_evaluation()) evaluation_ = response.evaluation();
    if (response.has_progress()) progress_.push_back(response.progress());
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::EvaluateRequest, v1::EvaluateResponse>> stream_;
  std::optional<v1::Evaluation> evaluation_;
  std::vector<v1::EvaluateProgress> progress_;
};

class EvaluateRpcTest : public ServerFixture {
 protected:
  EvaluateRpcTest() {
    Start();
    MustBuild();
  }

  grpc::Status Evaluate(const v1::EvaluationSpec& spec, const v1::LabeledExamples& examples,
                        v1::Evaluation* evaluation = nullptr) {
    EvaluateStream stream(*evaluations_);
    stream.Send(spec);
    stream.Send(examples);
    stream.SendFinish(examples.labels_size());
    stream.HalfClose();
    const grpc::Status status = stream.Finish();
    EXPECT_EQ(status.ok(), stream.evaluation().has_value());
    if (evaluation != nullptr && status.ok()) *evaluation = *stream.evaluation();
    return status;
  }
  v1::Evaluation MustEvaluate(const v1::EvaluationSpec& spec, const v1::LabeledExamples& examples) {
    v1::Evaluation evaluation;
    EXPECT_THAT(Evaluate(spec, examples, &evaluation), IsOk());
    return evaluation;
  }
  void ExpectRefused(const v1::EvaluationSpec& spec, const v1::LabeledExamples& examples,
                     grpc::StatusCode code, const std::string& reason, const std::string& field) {
    ExpectError(Evaluate(spec, examples), code, reason, field);
  }
  static void ExpectError(const grpc::Status& status, grpc::StatusCode code,
                          const std::string& reason, const std::string& field) {
    EXPECT_THAT(status, IsError(code, reason, field));
  }
  // Begins an evaluation that waits at the gate before it learns.
  std::unique_ptr<EvaluateStream> BeginComputing() {
    auto stream = std::make_unique<EvaluateStream>(*evaluations_);
    stream->Send(EvaluationSpecOf());
    stream->Send(LabeledRows(60));
    EXPECT_TRUE(stream->AwaitRows(60));
    build_gate_.Close();
    stream->SendFinish(60);
    EXPECT_TRUE(stream->Await(v1::EvaluateProgress::STATE_COMPUTING));
    build_gate_.AwaitWaiting();
    return stream;
  }
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_API_EVALUATE_FIXTURE_H_
