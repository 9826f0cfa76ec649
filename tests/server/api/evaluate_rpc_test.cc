// Tests Evaluate over gRPC.
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/api/evaluate_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST_F(EvaluateRpcTest, AnswersWithProgressErrorsAndMargins) {
  EvaluateStream stream(*evaluations_);
  stream.Send(EvaluationSpecOf());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(stream.Send(LabeledRows(100, i)));
  stream.SendFinish(400);
  stream.HalfClose();
  ASSERT_THAT(stream.Finish(), IsOk());
  ASSERT_TRUE(stream.evaluation().has_value());
  const v1::Evaluation& evaluation = *stream.evaluation();
  EXPECT_EQ(evaluation.version().name(), "letter");
  EXPECT_EQ(evaluation.version().number(), 1);
  EXPECT_THAT(evaluation.learner(), HasSubstr("linear_svm(C=1"));
  EXPECT_EQ(evaluation.rows(), 400);
  EXPECT_EQ(evaluation.tested_rows(), 120);
  EXPECT_EQ(evaluation.held_out(), 0.3);
  EXPECT_DOUBLE_EQ(evaluation.error(), static_cast<double>(evaluation.errors()) / 120);
  // A tenth of the labels is wrong, and the sign of a column is easy to learn. Therefore the error
  // is at most 0.1 plus six standard deviations. The standard deviation is 0.03, because 120 rows
  // are tested.
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

// In the kernel's feature space, a row's norm is at least the norm of its features, so margins are
// closer to 0 there. For each α, the margin certified for the received rows is at most the
// α-quantile of their margins, and the margin certified for future rows is at most the α-quantile
// of the tested rows' margins.
TEST_F(EvaluateRpcTest, MarginsInTheKernelsSpaceAreSmallerAndWhatIsCertifiedRises) {
  const v1::Evaluation evaluation =
      MustEvaluate(EvaluationSpecOf("linear_svm(C=1, bias=0)"), LabeledRows(2000));
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
  // A tenth of the labels is wrong. With 600 tested rows, a positive margin is therefore certified
  // at α = 0.2.
  EXPECT_GT(evaluation.certified_margins(6).margin(), 0);
}

TEST_F(EvaluateRpcTest, OnlyF2CertifiesAndEveryMappingHasMargins) {
  MustBuild("similar", "f1(landmarks=5)");
  const v1::Evaluation evaluation = MustEvaluate(EvaluationSpecOf("", "similar"), LabeledRows(100));
  EXPECT_EQ(evaluation.margin_quantiles_size(), 101);
  EXPECT_EQ(evaluation.kernel_margin_quantiles_size(), 0);
  EXPECT_EQ(evaluation.certified_margins_size(), 0);
}

// The version's kernel is exp(−|x − y|²/2), with which the sign of a column is easy to learn. A
// tenth of the labels is wrong. Two strategies that compute the same gradient descent differ only
// by rounding errors.
TEST_F(EvaluateRpcTest, LearnersOnTheKernelTakeTheRowsThemselves) {
  const v1::LabeledExamples rows = LabeledRows(300);
  const auto errors = [&](const std::string& learner) {
    const v1::Evaluation evaluation = MustEvaluate(EvaluationSpecOf(learner), rows);
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
  const v1::LabeledExamples rows = LabeledRows(300);
  for (const char* learner :
       {"perceptron(epochs=20)", "winnow(epochs=20)", "weak_learner(rounds=50)"}) {
    EXPECT_LT(MustEvaluate(EvaluationSpecOf(learner), rows).error(), 0.1 + 6 * 0.032) << learner;
  }
  EXPECT_LT(MustEvaluate(EvaluationSpecOf("one_parameter()", "blocks"), rows).error(),
            0.1 + 6 * 0.032);
  // Five features cannot be divided into blocks of equal length for two classes.
  EXPECT_EQ(FactsOf(Evaluate(EvaluationSpecOf("one_parameter()"), rows)).reason,
            "COLUMNS_MISMATCH");
}

// Sends values of the linear kernel in place of 40 rows: for each row x, the values with the
// landmarks, and K(x, x).
TEST_F(EvaluateRpcTest, KernelValuesThatCameCertifyWhereTheyHoldTheRowsOwn) {
  constexpr int kRows = 40;
  const v1::LabeledExamples labeled = LabeledRows(kRows);
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
  std::optional<v1::Version> version;
  ASSERT_TRUE(Build(spec, gram, kRows, &version).ok());
  const auto values = [&](bool own) {
    v1::LabeledExamples out = labeled;
    v1::DenseRows& dense = *out.mutable_examples()->mutable_dense();
    dense.clear_values();
    const auto& landmarks = version->certificate().landmark_rows();
    dense.set_columns(landmarks.size() + (own ? 1 : 0));
    for (int i = 0; i < kRows; ++i) {
      for (const int64_t j : landmarks) {
        dense.mutable_numbers()->add_values(kernel(i, static_cast<int>(j)));
      }
      if (own) dense.mutable_numbers()->add_values(kernel(i, i));
    }
    return out;
  };
  EXPECT_EQ(MustEvaluate(EvaluationSpecOf("", "gram"), values(true)).certified_margins_size(), 11);
  EXPECT_EQ(MustEvaluate(EvaluationSpecOf("", "gram"), values(false)).certified_margins_size(), 0);
  ExpectRefused(EvaluationSpecOf("kernel_svm()", "gram"), values(true), Code::FAILED_PRECONDITION,
                "KERNEL_NOT_AVAILABLE", "spec.learner");
  EvaluateStream mixed(*evaluations_);
  mixed.Send(EvaluationSpecOf("", "gram"));
  mixed.Send(values(true));
  mixed.Send(values(false));
  mixed.SendFinish(2 * kRows);
  ExpectError(mixed.Finish(), Code::INVALID_ARGUMENT, "COLUMNS_MISMATCH",
              "examples.examples.dense.columns");
}

TEST_F(EvaluateRpcTest, FoldsTestEachRowOnce) {
  v1::EvaluationSpec spec = EvaluationSpecOf("perceptron(epochs=3)");
  spec.set_folds(7);
  const v1::Evaluation evaluation = MustEvaluate(spec, LabeledRows(100));
  EXPECT_EQ(evaluation.tested_rows(), 100);
  EXPECT_EQ(evaluation.folds_size(), 7);
  EXPECT_EQ(evaluation.held_out(), 0);
}

TEST_F(EvaluateRpcTest, HowRowsAreCutIntoBlocksDoesNotMatterAndTheSeedDoes) {
  const v1::LabeledExamples all = LabeledRows(90);
  const v1::Evaluation at_once = MustEvaluate(EvaluationSpecOf(), all);
  EvaluateStream stream(*evaluations_);
  stream.Send(EvaluationSpecOf());
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
  v1::EvaluationSpec other = EvaluationSpecOf();
  other.set_seed(1);
  EXPECT_NE(MustEvaluate(other, all).margin_quantiles(50), at_once.margin_quantiles(50));
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
                        "grpc_service=\"phimap.v1.LearningService\","
                        "grpc_type=\"bidi_stream\"} 1\n"));
}

}  // namespace
}  // namespace phimap::testing
