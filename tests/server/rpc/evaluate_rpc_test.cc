// Evaluate as clients see it.
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/evaluation/evaluate_call.h"
#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using ::testing::HasSubstr;
using Code = grpc::StatusCode;

// Rows of three uniform numbers; their class is the sign of the first but for every tenth.
v1::LabeledExamples Labeled(int rows, uint64_t seed = 1) {
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

v1::EvaluationSpec SpecOf(const std::string& learner = "",
                          const std::string& reference = "letter") {
  v1::EvaluationSpec spec;
  spec.set_reference(reference);
  spec.set_learner(learner);
  return spec;
}

// A client's Evaluate, message by message.
class EvaluateStream {
 public:
  explicit EvaluateStream(v1::EvaluationService::Stub& stub,
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
  bool SendNothing() { return stream_->Write({}); }
  void HalfClose() { stream_->WritesDone(); }
  void Vanish() { context_.TryCancel(); }
  // Each reads until such progress; false if the stream ends first.
  bool Await(v1::EvaluateProgress::State state) {
    return AwaitIf([state](const v1::EvaluateProgress& p) { return p.state() == state; });
  }
  bool AwaitRows(int64_t rows) {
    return AwaitIf([rows](const v1::EvaluateProgress& p) { return p.rows_received() == rows; });
  }
  // Reads to the end; the evaluation, if one came, is in evaluation().
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
    EXPECT_FALSE(evaluation_.has_value()) << "something came after the evaluation";
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
    const grpc::Status status = Evaluate(spec, examples, &evaluation);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return evaluation;
  }
  void ExpectRefused(const v1::EvaluationSpec& spec, const v1::LabeledExamples& examples, Code code,
                     const std::string& reason, const std::string& field) {
    ExpectError(Evaluate(spec, examples), code, reason, field);
  }
  static void ExpectError(const grpc::Status& status, Code code, const std::string& reason,
                          const std::string& field) {
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_EQ(FactsOf(status).reason, reason) << status.error_message();
    EXPECT_EQ(FactsOf(status).field, field) << status.error_message();
  }
  // An evaluation that waits at the gate before it learns.
  std::unique_ptr<EvaluateStream> BeginComputing() {
    auto stream = std::make_unique<EvaluateStream>(*evaluations_);
    stream->Send(SpecOf());
    stream->Send(Labeled(60));
    EXPECT_TRUE(stream->AwaitRows(60));
    build_gate_.Close();
    stream->SendFinish(60);
    EXPECT_TRUE(stream->Await(v1::EvaluateProgress::COMPUTING));
    build_gate_.AwaitWaiting();
    return stream;
  }
};

TEST_F(EvaluateRpcTest, AnswersWithProgressErrorsAndMargins) {
  EvaluateStream stream(*evaluations_);
  stream.Send(SpecOf());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(stream.Send(Labeled(100, i)));
  stream.SendFinish(400);
  stream.HalfClose();
  const grpc::Status status = stream.Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_TRUE(stream.evaluation().has_value());
  const v1::Evaluation& evaluation = *stream.evaluation();
  EXPECT_EQ(evaluation.version().mapping(), "letter");
  EXPECT_EQ(evaluation.version().number(), 1);
  EXPECT_THAT(evaluation.learner(), HasSubstr("linear_svm(C=1"));
  EXPECT_EQ(evaluation.rows(), 400);
  EXPECT_EQ(evaluation.tested_rows(), 120);
  EXPECT_EQ(evaluation.held_out(), 0.3);
  EXPECT_DOUBLE_EQ(evaluation.error(), static_cast<double>(evaluation.errors()) / 120);
  // A tenth of the labels is wrong, and the sign of a column is no harder than that: at most 0.1
  // and six deviations of 120 fair throws of it, 0.03 each.
  EXPECT_LT(evaluation.error(), 0.28);
  ASSERT_EQ(evaluation.classes_size(), 2);
  EXPECT_EQ(evaluation.classes(0).label(), "minus, or not");
  EXPECT_EQ(evaluation.classes(1).label(), "plus");
  EXPECT_EQ(evaluation.classes(0).rows() + evaluation.classes(1).rows(), 400);
  int64_t counted = 0;
  for (const auto& confusion : evaluation.confusion()) counted += confusion.count();
  EXPECT_EQ(counted, 120);
  EXPECT_EQ(evaluation.folds_size(), 1);
  EXPECT_EQ(evaluation.margin_quantiles_size(), 101);
  EXPECT_EQ(evaluation.unnormalised_margin_quantiles_size(), 101);
  EXPECT_EQ(evaluation.kernel_margin_quantiles_size(), 101);
  EXPECT_EQ(evaluation.certified_margins_size(), 11);
  EXPECT_EQ(evaluation.confidence(), 0.95);
  ASSERT_FALSE(stream.progress().empty());
  for (const v1::EvaluateProgress& progress : stream.progress()) {
    EXPECT_EQ(progress.version().digest(), evaluation.version().digest());
  }
}

// The kernel's length of a row is over that of its features, so margins there are closer to 0; what
// is certified of the rows is at most their margins' quantile, and what is certified of rows to
// come no more than the same of those tested.
TEST_F(EvaluateRpcTest, MarginsInTheKernelsSpaceAreSmallerAndWhatIsCertifiedRises) {
  const v1::Evaluation evaluation = MustEvaluate(SpecOf("linear_svm(C=1, bias=0)"), Labeled(2000));
  EXPECT_EQ(evaluation.intercept_scale(), 0);
  EXPECT_LE(evaluation.kernel_margin_quantiles(100), evaluation.margin_quantiles(100));
  EXPECT_GT(evaluation.margin_quantiles(100), 0);
  double last = -2;
  for (const auto& certified : evaluation.certified_margins()) {
    EXPECT_GE(certified.rows_margin(), last);
    last = certified.rows_margin();
    const auto percent = static_cast<int>(std::lround(100 * certified.alpha()));
    if (certified.has_margin()) {
      EXPECT_LE(certified.margin(), evaluation.kernel_margin_quantiles(percent));
    }
  }
  EXPECT_FALSE(evaluation.certified_margins(0).has_margin());
  // The labels are wrong for a tenth: at α = 0.2 of 600 tested rows a margin is certain.
  EXPECT_GT(evaluation.certified_margins(6).margin(), 0);
}

TEST_F(EvaluateRpcTest, OnlyF2CertifiesAndEveryMappingHasMargins) {
  MustBuild("similar", "f1(landmarks=5)");
  const v1::Evaluation evaluation = MustEvaluate(SpecOf("", "similar"), Labeled(100));
  EXPECT_EQ(evaluation.margin_quantiles_size(), 101);
  EXPECT_EQ(evaluation.kernel_margin_quantiles_size(), 0);
  EXPECT_EQ(evaluation.certified_margins_size(), 0);
}

// The version's kernel is exp(−|x − y|²/2), for which the sign of a column is easy; a tenth of the
// labels is wrong. Ways of the same gradient descent differ by round-off.
TEST_F(EvaluateRpcTest, LearnersOnTheKernelTakeTheRowsThemselves) {
  const v1::LabeledExamples rows = Labeled(300);
  const auto errors = [&](const std::string& learner) {
    const v1::Evaluation evaluation = MustEvaluate(SpecOf(learner), rows);
    EXPECT_EQ(evaluation.tested_rows(), 90) << learner;
    EXPECT_LT(evaluation.error(), 0.1 + 6 * 0.032) << learner;
    EXPECT_EQ(evaluation.margin_quantiles_size(), 0) << learner;
    EXPECT_EQ(evaluation.certified_margins_size(), 0) << learner;
    return evaluation.errors();
  };
  errors("kernel_svm(C=10)");
  EXPECT_EQ(errors("kernel_sgd(strategy=gram)"), errors("kernel_sgd(strategy=kernel)"));
  EXPECT_EQ(errors("kernel_sgd(strategy=features)"),
            errors("kernel_sgd(strategy=stored_features)"));
}

TEST_F(EvaluateRpcTest, EveryLearnerOfFeaturesLearns) {
  v1::BuildSpec blocks = Spec("blocks", "multiclass(classes=2, dimensions=3)");
  blocks.set_kernel("linear()");
  ASSERT_TRUE(Build(blocks).ok());
  const v1::LabeledExamples rows = Labeled(300);
  for (const char* learner :
       {"perceptron(epochs=20)", "winnow(epochs=20)", "weak_learner(rounds=50)"}) {
    EXPECT_LT(MustEvaluate(SpecOf(learner), rows).error(), 0.1 + 6 * 0.032) << learner;
  }
  EXPECT_LT(MustEvaluate(SpecOf("one_parameter()", "blocks"), rows).error(), 0.1 + 6 * 0.032);
  // Five features are not a block of equal length for each of two classes.
  EXPECT_EQ(FactsOf(Evaluate(SpecOf("one_parameter()"), rows)).reason, "WRONG_COLUMNS");
}

// Of the linear kernel of 40 rows, as numbers: a row's values with the landmarks, and K(x, x).
TEST_F(EvaluateRpcTest, KernelValuesThatCameCertifyWhereTheyHoldTheRowsOwn) {
  constexpr int kRows = 40;
  const v1::LabeledExamples labeled = Labeled(kRows);
  std::vector<float> x(3 * kRows);
  std::memcpy(x.data(), labeled.examples().dense().float32_le().data(), 12 * kRows);
  const auto kernel = [&x](int i, int j) {
    double sum = 0;
    for (int k = 0; k < 3; ++k) sum += double{x[3 * i + k]} * x[3 * j + k];
    return sum;
  };
  v1::Examples gram;
  gram.mutable_dense()->set_rows(kRows);
  gram.mutable_dense()->set_columns(kRows);
  for (int i = 0; i < kRows * kRows; ++i) {
    gram.mutable_dense()->mutable_numbers()->add_values(kernel(i / kRows, i % kRows));
  }
  v1::BuildSpec spec = Spec("gram", "f2(landmarks=3)");
  spec.set_kernel("precomputed()");
  BuildStream build(*mappings_);
  build.Send(spec);
  build.Send(gram);
  build.SendFinish(kRows);
  ASSERT_TRUE(build.Finish().ok());
  const auto values = [&](bool own) {
    v1::LabeledExamples out = labeled;
    v1::DenseRows& dense = *out.mutable_examples()->mutable_dense();
    dense.clear_values();
    const auto& landmarks = build.version()->certificate().landmark_rows();
    dense.set_columns(landmarks.size() + (own ? 1 : 0));
    for (int i = 0; i < kRows; ++i) {
      for (const int64_t j : landmarks) {
        dense.mutable_numbers()->add_values(kernel(i, static_cast<int>(j)));
      }
      if (own) dense.mutable_numbers()->add_values(kernel(i, i));
    }
    return out;
  };
  EXPECT_EQ(MustEvaluate(SpecOf("", "gram"), values(true)).certified_margins_size(), 11);
  EXPECT_EQ(MustEvaluate(SpecOf("", "gram"), values(false)).certified_margins_size(), 0);
  ExpectRefused(SpecOf("kernel_svm()", "gram"), values(true), Code::FAILED_PRECONDITION,
                "NO_KERNEL", "spec.learner");
  EvaluateStream mixed(*evaluations_);
  mixed.Send(SpecOf("", "gram"));
  mixed.Send(values(true));
  mixed.Send(values(false));
  mixed.SendFinish(2 * kRows);
  ExpectError(mixed.Finish(), Code::INVALID_ARGUMENT, "WRONG_COLUMNS",
              "examples.examples.dense.columns");
}

TEST_F(EvaluateRpcTest, FoldsTestEachRowOnce) {
  v1::EvaluationSpec spec = SpecOf("perceptron(epochs=3)");
  spec.set_folds(7);
  const v1::Evaluation evaluation = MustEvaluate(spec, Labeled(100));
  EXPECT_EQ(evaluation.tested_rows(), 100);
  EXPECT_EQ(evaluation.folds_size(), 7);
  EXPECT_EQ(evaluation.held_out(), 0);
}

TEST_F(EvaluateRpcTest, HowRowsAreCutIntoBlocksDoesNotMatterAndTheSeedDoes) {
  const v1::LabeledExamples all = Labeled(90);
  const v1::Evaluation at_once = MustEvaluate(SpecOf(), all);
  EvaluateStream stream(*evaluations_);
  stream.Send(SpecOf());
  for (int i = 0; i < 90; i += 9) {
    v1::LabeledExamples part;
    part.mutable_examples()->mutable_dense()->set_rows(9);
    part.mutable_examples()->mutable_dense()->set_columns(3);
    part.mutable_examples()->mutable_dense()->set_float32_le(
        all.examples().dense().float32_le().substr(12 * i, 12 * 9));
    for (int j = i; j < i + 9; ++j) part.add_labels(all.labels(j));
    stream.Send(part);
  }
  stream.SendFinish(90);
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_EQ(stream.evaluation()->SerializeAsString(), at_once.SerializeAsString());
  v1::EvaluationSpec other = SpecOf();
  other.set_seed(1);
  EXPECT_NE(MustEvaluate(other, all).margin_quantiles(50), at_once.margin_quantiles(50));
}

TEST_F(EvaluateRpcTest, ABadSpecIsRefusedByField) {
  const v1::LabeledExamples rows = Labeled(20);
  constexpr Code kInvalid = Code::INVALID_ARGUMENT;
  ExpectRefused(SpecOf("", "M"), rows, kInvalid, "BAD_REFERENCE", "spec.reference");
  EXPECT_EQ(Evaluate(SpecOf("", "other"), rows).error_code(), Code::NOT_FOUND);
  ExpectRefused(SpecOf("svm"), rows, kInvalid, "BAD_EXPRESSION", "spec.learner");
  ExpectRefused(SpecOf("linear_svm(C=-1)"), rows, kInvalid, "OUT_OF_RANGE", "spec.learner.C");
  v1::EvaluationSpec spec = SpecOf();
  spec.set_expected_digest(std::string(64, '0'));
  ExpectRefused(spec, rows, Code::FAILED_PRECONDITION, "DIGEST_MISMATCH", "spec.expected_digest");
  spec = SpecOf();
  spec.set_folds(1);
  ExpectRefused(spec, rows, kInvalid, "OUT_OF_RANGE", "spec.folds");
  spec.set_folds(21);  // of 20 rows
  ExpectRefused(spec, rows, kInvalid, "TOO_MANY_FOLDS", "spec.folds");
  spec.set_held_out(0.5);
  ExpectRefused(spec, rows, kInvalid, "CONTRADICTION", "spec.held_out");
  for (const double bad : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    spec = SpecOf();
    spec.set_held_out(bad);
    ExpectRefused(spec, rows, kInvalid, "OUT_OF_RANGE", "spec.held_out");
    spec = SpecOf();
    spec.set_confidence(bad);
    ExpectRefused(spec, rows, kInvalid, "OUT_OF_RANGE", "spec.confidence");
  }
}

TEST_F(EvaluateRpcTest, BadExamplesAreRefusedByField) {
  constexpr Code kInvalid = Code::INVALID_ARGUMENT;
  v1::LabeledExamples rows = Labeled(20);
  rows.mutable_labels()->RemoveLast();
  ExpectRefused(SpecOf(), rows, kInvalid, "WRONG_LENGTH", "examples.labels");
  rows = Labeled(20);
  *rows.mutable_examples() = UniformExamples(20, 4);
  EXPECT_EQ(FactsOf(Evaluate(SpecOf(), rows)).reason, "WRONG_COLUMNS");
  rows = Labeled(20);
  auto* const bytes = rows.mutable_examples()->mutable_dense()->mutable_float32_le();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes->data() + 12 * 7 + 4, &nan, 4);
  ExpectRefused(SpecOf(), rows, kInvalid, "NOT_FINITE",
                "examples.examples.dense.rows[7].columns[1]");
  EvaluateStream later(*evaluations_);
  later.Send(SpecOf());
  later.Send(Labeled(100));
  later.Send(rows);
  EXPECT_EQ(FactsOf(later.Finish()).metadata["stream_row"], "107");
  rows = Labeled(20);
  rows.set_labels(3, std::string(257, 'x'));
  ExpectRefused(SpecOf(), rows, kInvalid, "LABEL_TOO_LONG", "examples.labels");
  rows = Labeled(1001);
  for (int i = 0; i < 1001; ++i) rows.set_labels(i, absl::StrCat(i));
  ExpectRefused(SpecOf(), rows, kInvalid, "TOO_MANY_CLASSES", "examples.labels");
  rows = Labeled(20);
  for (std::string& label : *rows.mutable_labels()) label = "one";
  ExpectRefused(SpecOf(), rows, kInvalid, "ONE_CLASS", "examples.labels");
  rows.clear_examples();
  EXPECT_EQ(FactsOf(Evaluate(SpecOf(), rows)).reason, "MISSING_FIELD");
}

TEST_F(EvaluateRpcTest, MessagesOutOfOrderAndStreamsWithoutAnEndAreRefused) {
  constexpr Code kInvalid = Code::INVALID_ARGUMENT;
  const auto run = [this](const std::function<void(EvaluateStream&)>& send) {
    EvaluateStream stream(*evaluations_);
    send(stream);
    stream.HalfClose();
    return stream.Finish();
  };
  ExpectError(run([](auto&) {}), kInvalid, "UNEXPECTED_MESSAGE", "spec");
  ExpectError(run([](auto& s) { s.Send(Labeled(3)); }), kInvalid, "UNEXPECTED_MESSAGE", "spec");
  ExpectError(run([](auto& s) { s.SendFinish(0); }), kInvalid, "UNEXPECTED_MESSAGE", "spec");
  ExpectError(run([](auto& s) { s.SendNothing(); }), kInvalid, "UNEXPECTED_MESSAGE", "message");
  ExpectError(run([](auto& s) {
                s.Send(SpecOf());
                s.Send(SpecOf());
              }),
              kInvalid, "UNEXPECTED_MESSAGE", "spec");
  ExpectError(run([](auto& s) {
                s.Send(SpecOf());
                s.Send(Labeled(10));
              }),
              kInvalid, "NO_FINISH", "finish");
  ExpectError(run([](auto& s) {
                s.Send(SpecOf());
                s.Send(Labeled(10));
                s.SendFinish(11);
              }),
              Code::DATA_LOSS, "ROW_COUNT", "finish.row_count");
  ExpectError(run([](auto& s) {
                s.Send(SpecOf());
                s.SendFinish(0);
              }),
              kInvalid, "ONE_CLASS", "examples.labels");
}

TEST_F(EvaluateRpcTest, RowsThatDoNotFitIntoTheBuildsMemoryAreRefusedAndTheServerServesOn) {
  Stop();
  options_.build_memory_bytes = 200'000;
  Start();
  // 5 features, 7 numbers and 24 bytes of each row: more than evaluations may take, half of all.
  const grpc::Status status = Evaluate(SpecOf(), Labeled(2000));
  ExpectError(status, Code::RESOURCE_EXHAUSTED, "BUILD_MEMORY", "");
  EXPECT_EQ(FactsOf(status).metadata.at("limit"), "100000");
  // Rows that fit and a learner that needs more, after some of them were taken.
  ExpectError(Evaluate(SpecOf("kernel_svm()"), Labeled(100)), Code::RESOURCE_EXHAUSTED,
              "BUILD_MEMORY", "");
  // What they held is given back in the server's own time.
  while (!Evaluate(SpecOf(), Labeled(60)).ok()) {
  }
}

TEST_F(EvaluateRpcTest, AClientThatVanishesStopsTheWork) {
  std::unique_ptr<EvaluateStream> stream = BeginComputing();
  EvaluateStream waiting(*evaluations_);  // one learns at a time
  waiting.Send(SpecOf());
  stream->Vanish();
  EXPECT_EQ(stream->Finish().error_code(), Code::CANCELLED);
  build_gate_.Open();
  waiting.Send(Labeled(60));
  waiting.SendFinish(60);
  EXPECT_TRUE(waiting.Finish().ok());
}

TEST_F(EvaluateRpcTest, ADeadlineEndsIt) {
  EvaluateStream stream(*evaluations_, [](grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  });
  build_gate_.Close();
  stream.Send(SpecOf());
  stream.Send(Labeled(60));
  stream.SendFinish(60);
  EXPECT_EQ(stream.Finish().error_code(), Code::DEADLINE_EXCEEDED);
  build_gate_.Open();
  EXPECT_TRUE(Evaluate(SpecOf(), Labeled(60)).ok());
}

TEST_F(EvaluateRpcTest, TooManyAtOnceAreRefusedWithTheLimit) {
  std::vector<std::unique_ptr<EvaluateStream>> open;
  for (int i = 0; i < kMaxEvaluations; ++i) {
    open.push_back(std::make_unique<EvaluateStream>(*evaluations_));
    open.back()->Send(SpecOf());
    ASSERT_TRUE(open.back()->Await(v1::EvaluateProgress::RECEIVING));
  }
  const grpc::Status refused = Evaluate(SpecOf(), Labeled(20));
  ExpectError(refused, Code::RESOURCE_EXHAUSTED, "TOO_MANY_EVALUATIONS", "");
  EXPECT_EQ(FactsOf(refused).metadata.at("limit"), absl::StrCat(kMaxEvaluations));
  EXPECT_TRUE(FactsOf(refused).retry_ms.has_value());
  for (const auto& stream : open) {
    stream->HalfClose();
    EXPECT_EQ(stream->Finish().error_code(), Code::INVALID_ARGUMENT);
  }
  // Each place is free once its call is gone.
  while (!Evaluate(SpecOf(), Labeled(20)).ok()) {
  }
}

TEST_F(EvaluateRpcTest, ASilentClientIsEnded) {
  Stop();
  options_.build_idle_seconds = 1;
  Start();
  EvaluateStream silent(*evaluations_);
  silent.Send(SpecOf());
  ExpectError(silent.Finish(), Code::DEADLINE_EXCEEDED, "IDLE_STREAM", "");
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
  EXPECT_TRUE(Evaluate(SpecOf(), Labeled(40)).ok());
  EXPECT_THAT(Scrape(),
              HasSubstr("grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Evaluate\","
                        "grpc_service=\"phimap.v1.EvaluationService\","
                        "grpc_type=\"bidi_stream\"} 1\n"));
}

}  // namespace
}  // namespace phimap::testing
