// Tests evaluations that are refused or that end early.
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/evaluation/evaluation_service.h"
#include "tests/server/rpc/evaluate_fixture.h"

namespace phimap::testing {
namespace {

using ::testing::HasSubstr;
using Code = grpc::StatusCode;

TEST_F(EvaluateRpcTest, ABadSpecIsRefusedByField) {
  const v1::LabeledExamples rows = LabeledRows(20);
  constexpr Code kInvalid = Code::INVALID_ARGUMENT;
  ExpectRefused(EvaluationSpecOf("", "M"), rows, kInvalid, "REFERENCE_INVALID", "spec.reference");
  EXPECT_EQ(Evaluate(EvaluationSpecOf("", "other"), rows).error_code(), Code::NOT_FOUND);
  ExpectRefused(EvaluationSpecOf("svm"), rows, kInvalid, "EXPRESSION_INVALID", "spec.learner");
  ExpectRefused(EvaluationSpecOf("linear_svm(C=-1)"), rows, kInvalid, "EXPRESSION_INVALID",
                "spec.learner");
  v1::EvaluationSpec spec = EvaluationSpecOf();
  spec.set_expected_digest(std::string(64, '0'));
  ExpectRefused(spec, rows, Code::FAILED_PRECONDITION, "DIGEST_MISMATCH", "spec.expected_digest");
  spec = EvaluationSpecOf();
  spec.set_folds(1);
  ExpectRefused(spec, rows, kInvalid, "FIELD_OUT_OF_RANGE", "spec.folds");
  spec.set_folds(21);  // there are 20 rows
  ExpectRefused(spec, rows, kInvalid, "FOLDS_TOO_MANY", "spec.folds");
  spec.set_held_out(0.5);
  ExpectRefused(spec, rows, kInvalid, "FIELDS_CONTRADICTORY", "spec.held_out");
  for (const double bad : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    spec = EvaluationSpecOf();
    spec.set_held_out(bad);
    ExpectRefused(spec, rows, kInvalid, "FIELD_OUT_OF_RANGE", "spec.held_out");
    spec = EvaluationSpecOf();
    spec.set_confidence(bad);
    ExpectRefused(spec, rows, kInvalid, "FIELD_OUT_OF_RANGE", "spec.confidence");
  }
}

TEST_F(EvaluateRpcTest, BadExamplesAreRefusedByField) {
  constexpr Code kInvalid = Code::INVALID_ARGUMENT;
  v1::LabeledExamples rows = LabeledRows(20);
  rows.mutable_labels()->RemoveLast();
  ExpectRefused(EvaluationSpecOf(), rows, kInvalid, "LENGTH_MISMATCH", "examples.labels");
  rows = LabeledRows(20);
  *rows.mutable_examples() = UniformExamples(20, 4);
  EXPECT_EQ(FactsOf(Evaluate(EvaluationSpecOf(), rows)).reason, "COLUMNS_MISMATCH");
  rows = LabeledRows(20);
  auto* const bytes = rows.mutable_examples()->mutable_dense()->mutable_float32_le();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes->data() + 12 * 7 + 4, &nan, 4);
  ExpectRefused(EvaluationSpecOf(), rows, kInvalid, "VALUE_NOT_FINITE",
                "examples.examples.dense.rows[7].columns[1]");
  EvaluateStream later(*evaluations_);
  later.Send(EvaluationSpecOf());
  later.Send(LabeledRows(100));
  later.Send(rows);
  EXPECT_EQ(FactsOf(later.Finish()).metadata["stream_row"], "107");
  rows = LabeledRows(20);
  rows.set_labels(3, std::string(257, 'x'));
  ExpectRefused(EvaluationSpecOf(), rows, kInvalid, "LABEL_TOO_LONG", "examples.labels");
  rows = LabeledRows(20);
  rows.set_labels(3, "");
  ExpectRefused(EvaluationSpecOf(), rows, kInvalid, "LABEL_MISSING", "examples.labels");
  rows = LabeledRows(400);
  for (int i = 0; i < 400; ++i) rows.set_labels(i, absl::StrCat(i * 0.25));
  ExpectRefused(EvaluationSpecOf(), rows, kInvalid, "LABELS_NOT_CLASSES", "examples.labels");
  rows = LabeledRows(1001);
  for (int i = 0; i < 1001; ++i) rows.set_labels(i, absl::StrCat(i));
  ExpectRefused(EvaluationSpecOf(), rows, kInvalid, "CLASSES_TOO_MANY", "examples.labels");
  rows = LabeledRows(20);
  for (std::string& label : *rows.mutable_labels()) label = "one";
  ExpectRefused(EvaluationSpecOf(), rows, kInvalid, "CLASSES_TOO_FEW", "examples.labels");
  rows.clear_examples();
  EXPECT_EQ(FactsOf(Evaluate(EvaluationSpecOf(), rows)).reason, "FIELD_MISSING");
}

TEST_F(EvaluateRpcTest, MessagesOutOfOrderAndStreamsWithoutAnEndAreRefused) {
  constexpr Code kInvalid = Code::INVALID_ARGUMENT;
  const auto run = [this](const std::function<void(EvaluateStream&)>& send) {
    EvaluateStream stream(*evaluations_);
    send(stream);
    stream.HalfClose();
    return stream.Finish();
  };
  ExpectError(run([](auto&) {}), kInvalid, "MESSAGE_UNEXPECTED", "spec");
  ExpectError(run([](auto& s) { s.Send(LabeledRows(3)); }), kInvalid, "MESSAGE_UNEXPECTED", "spec");
  ExpectError(run([](auto& s) { s.SendFinish(0); }), kInvalid, "MESSAGE_UNEXPECTED", "spec");
  ExpectError(run([](auto& s) { s.SendNothing(); }), kInvalid, "MESSAGE_UNEXPECTED", "message");
  ExpectError(run([](auto& s) {
                s.Send(EvaluationSpecOf());
                s.Send(EvaluationSpecOf());
              }),
              kInvalid, "MESSAGE_UNEXPECTED", "spec");
  ExpectError(run([](auto& s) {
                s.Send(EvaluationSpecOf());
                s.Send(LabeledRows(10));
              }),
              kInvalid, "FINISH_MISSING", "finish");
  ExpectError(run([](auto& s) {
                s.Send(EvaluationSpecOf());
                s.Send(LabeledRows(10));
                s.SendFinish(11);
              }),
              Code::DATA_LOSS, "ROW_COUNT_MISMATCH", "finish.row_count");
  ExpectError(run([](auto& s) {
                s.Send(EvaluationSpecOf());
                s.SendFinish(0);
              }),
              kInvalid, "CLASSES_TOO_FEW", "examples.labels");
}

TEST_F(EvaluateRpcTest, RowsThatDoNotFitIntoTheBuildsMemoryAreRefusedAndTheServerServesOn) {
  Stop();
  options_.build_memory_bytes = 200'000;
  Start();
  // A row takes the memory of 5 features and 7 numbers, and another 24 bytes. The 2,000 rows exceed
  // the limit of evaluations, which is half of the builds' memory.
  const grpc::Status status = Evaluate(EvaluationSpecOf(), LabeledRows(2000));
  ExpectError(status, Code::RESOURCE_EXHAUSTED, "BUILD_MEMORY_FULL", "");
  EXPECT_EQ(FactsOf(status).metadata.at("limit"), "100000");
  // These rows fit, but the learner needs more memory than the limit. The call is refused after
  // some rows were accepted.
  ExpectError(Evaluate(EvaluationSpecOf("kernel_svm()"), LabeledRows(100)),
              Code::RESOURCE_EXHAUSTED, "BUILD_MEMORY_FULL", "");
  // It takes a moment until the server releases the memory of the refused evaluations.
  while (!Evaluate(EvaluationSpecOf(), LabeledRows(60)).ok()) {
  }
}

TEST_F(EvaluateRpcTest, AClientThatVanishesStopsTheWork) {
  std::unique_ptr<EvaluateStream> stream = BeginComputing();
  EvaluateStream waiting(*evaluations_);  // waits: only one evaluation learns at a time
  waiting.Send(EvaluationSpecOf());
  stream->Vanish();
  EXPECT_EQ(stream->Finish().error_code(), Code::CANCELLED);
  build_gate_.Open();
  waiting.Send(LabeledRows(60));
  waiting.SendFinish(60);
  EXPECT_TRUE(waiting.Finish().ok());
}

TEST_F(EvaluateRpcTest, ADeadlineEndsIt) {
  EvaluateStream stream(*evaluations_, [](grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  });
  build_gate_.Close();
  stream.Send(EvaluationSpecOf());
  stream.Send(LabeledRows(60));
  stream.SendFinish(60);
  EXPECT_EQ(stream.Finish().error_code(), Code::DEADLINE_EXCEEDED);
  build_gate_.Open();
  EXPECT_TRUE(Evaluate(EvaluationSpecOf(), LabeledRows(60)).ok());
}

TEST_F(EvaluateRpcTest, TooManyAtOnceAreRefusedWithTheLimit) {
  std::vector<std::unique_ptr<EvaluateStream>> open;
  for (int i = 0; i < kMaxEvaluations; ++i) {
    open.push_back(std::make_unique<EvaluateStream>(*evaluations_));
    open.back()->Send(EvaluationSpecOf());
    ASSERT_TRUE(open.back()->Await(v1::EvaluateProgress::RECEIVING));
  }
  const grpc::Status refused = Evaluate(EvaluationSpecOf(), LabeledRows(20));
  ExpectError(refused, Code::RESOURCE_EXHAUSTED, "EVALUATION_LIMIT_REACHED", "");
  EXPECT_EQ(FactsOf(refused).metadata.at("limit"), absl::StrCat(kMaxEvaluations));
  EXPECT_TRUE(FactsOf(refused).retry_ms.has_value());
  for (const auto& stream : open) {
    stream->HalfClose();
    EXPECT_EQ(stream->Finish().error_code(), Code::INVALID_ARGUMENT);
  }
  // A call makes room for another one only when it is completely gone, which takes a moment.
  while (!Evaluate(EvaluationSpecOf(), LabeledRows(20)).ok()) {
  }
}

TEST_F(EvaluateRpcTest, ASilentClientIsEnded) {
  Stop();
  options_.build_idle_seconds = 1;
  Start();
  EvaluateStream silent(*evaluations_);
  silent.Send(EvaluationSpecOf());
  ExpectError(silent.Finish(), Code::DEADLINE_EXCEEDED, "STREAM_IDLE", "");
}

TEST_F(EvaluateRpcTest, AServerThatShutsDownEndsThoseUnderWay) {
  std::unique_ptr<EvaluateStream> stream = BeginComputing();
  Stop();
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(EvaluateRpcTest, CallsAreCountedLikeOthers) {
  Stop();
  options_.http = "127.0.0.1:0";
  Start();
  EXPECT_TRUE(Evaluate(EvaluationSpecOf(), LabeledRows(40)).ok());
  EXPECT_THAT(Scrape(),
              HasSubstr("grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Evaluate\","
                        "grpc_service=\"phimap.v1.EvaluationService\","
                        "grpc_type=\"bidi_stream\"} 1\n"));
}

}  // namespace
}  // namespace phimap::testing
