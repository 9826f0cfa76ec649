// Tests Train and Predict over gRPC, on a real server.
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "inference/inference_service.grpc.pb.h"
#include "phimap/v1/predict_service.grpc.pb.h"
#include "tests/server/api/evaluate_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr char kFirstId[] = "00000000-0000-4000-8000-00000000000a";

v1::TrainingExamples ToTrain(const v1::LabeledExamples& labeled) {
  v1::TrainingExamples out;
  *out.mutable_examples() = labeled.examples();
  *out.mutable_labels() = labeled.labels();
  return out;
}

// Rows whose target is 10 + 3·x₀ − 2·x₁ + noise of uniform numbers in (−.5, .5).
v1::LabeledExamples NumberRows(int rows, uint64_t seed) {
  v1::LabeledExamples out;
  *out.mutable_examples() = UniformExamples(rows, 3, seed);
  const std::vector<float> x = ArrayOf<float>(out.examples().dense().float32_le());
  const std::vector<float> noise =
      ArrayOf<float>(UniformExamples(rows, 1, seed + 1000).dense().float32_le());
  for (int i = 0; i < rows; ++i) {
    out.add_labels(absl::StrCat(10 + 3 * x[3 * i] - 2 * x[3 * i + 1] + noise[i] / 2));
  }
  return out;
}

class TrainRpcTest : public EvaluateRpcTest {
 protected:
  TrainRpcTest() : predicts_(v1::PredictService::NewStub(channel_)) {}

  grpc::Status Train(const v1::TrainingSpec& spec, const v1::TrainingExamples& examples,
                     v1::Version* version = nullptr) {
    const auto stream = evaluations_->Train(NewContext());
    v1::TrainRequest request;
    *request.mutable_spec() = spec;
    stream->Write(request);
    *request.mutable_examples() = examples;
    stream->Write(request);
    request.mutable_finish()->set_row_count(examples.labels_size());
    stream->Write(request);
    stream->WritesDone();
    v1::TrainResponse response;
    while (stream->Read(&response)) {
      if (response.has_version() && version != nullptr) *version = response.version();
    }
    return stream->Finish();
  }
  static v1::TrainingSpec SpecOf(const std::string& learner = "",
                                 const std::string& reference = "letter@1",
                                 const std::string& id = kFirstId) {
    v1::TrainingSpec spec;
    spec.set_reference(reference);
    spec.set_build_id(id);
    spec.set_learner(learner);
    return spec;
  }
  v1::Version MustTrain(const v1::LabeledExamples& rows, const std::string& learner = "",
                        const std::string& id = kFirstId) {
    v1::Version version;
    EXPECT_THAT(Train(SpecOf(learner, "letter@1", id), ToTrain(rows), &version), IsOk());
    return version;
  }
  grpc::Status Predict(const v1::PredictRequest& request, v1::PredictResponse* response) {
    return predicts_->Predict(NewContext(), request, response);
  }
  v1::PredictResponse MustPredict(const v1::PredictRequest& request) {
    v1::PredictResponse response;
    EXPECT_THAT(Predict(request, &response), IsOk());
    return response;
  }
  static v1::PredictRequest RequestFor(const v1::Examples& examples,
                                       const std::string& reference = "letter") {
    v1::PredictRequest request;
    request.set_reference(reference);
    *request.mutable_examples() = examples;
    return request;
  }

  const std::unique_ptr<v1::PredictService::Stub> predicts_;
};

TEST_F(TrainRpcTest, TheNextVersionHasTheSameFeaturesAndAHead) {
  v1::GetVersionRequest get;
  get.set_reference("letter@1");
  const v1::Version before = Answer(&MappingStub::GetVersion, get);
  EXPECT_FALSE(before.has_head());
  const v1::Version version = MustTrain(LabeledRows(2000));
  EXPECT_EQ(version.ref().number(), 2);
  EXPECT_NE(version.ref().digest(), before.ref().digest());
  EXPECT_EQ(version.certificate().SerializeAsString(), before.certificate().SerializeAsString());
  EXPECT_EQ(version.head().features_digest(), before.ref().digest());
  EXPECT_EQ(version.head().task(), v1::HEAD_TASK_CLASSES);
  EXPECT_THAT(version.head().learner(), HasSubstr("ridge(alpha="));
  EXPECT_THAT(version.head().learner(), ::testing::Not(HasSubstr("auto")));
  ASSERT_EQ(version.head().class_names_size(), 2);
  EXPECT_EQ(version.head().class_names(0), "minus, or not");
  EXPECT_EQ(version.head().class_names(1), "plus");
  get.set_reference("letter@2");
  EXPECT_EQ(Answer(&MappingStub::GetVersion, get).head().SerializeAsString(),
            version.head().SerializeAsString());
  v1::TransformResponse first, second;
  const v1::Examples rows = UniformExamples(64, 3, 9);
  ASSERT_THAT(Transform(TransformOf("letter@1", rows), &first), IsOk());
  ASSERT_THAT(Transform(TransformOf("letter@2", rows), &second), IsOk());
  EXPECT_EQ(first.features().SerializeAsString(), second.features().SerializeAsString());
}

TEST_F(TrainRpcTest, LearnsAndAnswersWithWhatIsAskedFor) {
  MustTrain(LabeledRows(3000));
  const v1::LabeledExamples rows = LabeledRows(1000, 77);
  v1::PredictRequest request = RequestFor(rows.examples());
  const v1::PredictResponse plain = MustPredict(request);
  EXPECT_EQ(plain.version().number(), 2);
  ASSERT_EQ(plain.labels_size(), 1000);
  EXPECT_FALSE(plain.has_scores());
  EXPECT_FALSE(plain.has_probabilities());
  EXPECT_EQ(plain.sets_size(), 0);
  int errors = 0;
  for (int i = 0; i < 1000; ++i) {
    if (plain.class_names(plain.labels(i)) != rows.labels(i)) ++errors;
  }
  // A tenth of the labels is wrong, so that 100 errors remain if all is learned; 60 more are six
  // standard deviations.
  EXPECT_LT(errors, 160);
  request.set_scores(true);
  request.set_probabilities(true);
  request.set_confidence(0.95);
  const v1::PredictResponse full = MustPredict(request);
  ASSERT_EQ(full.sets_size(), 1000);
  const std::vector<double> scores = NumbersOf(full.scores());
  const std::vector<double> probabilities = NumbersOf(full.probabilities());
  ASSERT_EQ(scores.size(), 1000);
  ASSERT_EQ(probabilities.size(), 2000);
  int covered = 0;
  double log_loss = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(full.labels(i), plain.labels(i));
    EXPECT_EQ(full.labels(i), scores[i] > 0 ? 1 : 0);
    EXPECT_NEAR(probabilities[2 * i] + probabilities[2 * i + 1], 1, 1e-12);
    const int truth = rows.labels(i) == "plus" ? 1 : 0;
    log_loss -= std::log(probabilities[2 * i + truth]) / 1000;
    const auto& set = full.sets(i).classes();
    if (std::find(set.begin(), set.end(), truth) != set.end()) ++covered;
  }
  // With one label in ten wrong, the least log loss is −.9·ln .9 − .1·ln .1 = .325; without
  // knowledge it is ln 2 = .693.
  EXPECT_LT(log_loss, 0.5);
  // The coverage given the calibration rows has a standard deviation of about √(.95·.05/150) = .018
  // beside that of 1,000 rows, .007: six of both are .11.
  EXPECT_GT(covered, 840);
}

TEST_F(TrainRpcTest, ARowHasTheSameAnswerAloneAndAmongOthers) {
  MustTrain(LabeledRows(1000));
  v1::PredictRequest request = RequestFor(UniformExamples(100, 3, 5));
  request.set_scores(true);
  const std::vector<double> together = NumbersOf(MustPredict(request).scores());
  const std::string bytes = request.examples().dense().float32_le();
  for (const int i : {0, 41, 99}) {
    v1::DenseRows& one = *request.mutable_examples()->mutable_dense();
    one.set_rows(1);
    one.set_columns(3);
    one.set_float32_le(bytes.substr(12 * i, 12));
    EXPECT_EQ(NumbersOf(MustPredict(request).scores()), std::vector<double>{together[i]});
  }
}

TEST_F(TrainRpcTest, NumbersHaveIntervalsAndDeviations) {
  const v1::Version version = MustTrain(NumberRows(3000, 1));
  EXPECT_EQ(version.head().task(), v1::HEAD_TASK_NUMBERS);
  EXPECT_TRUE(version.head().has_deviations());
  const v1::LabeledExamples rows = NumberRows(1000, 50);
  v1::PredictRequest request = RequestFor(rows.examples());
  request.set_confidence(0.9);
  request.set_deviations(true);
  const v1::PredictResponse response = MustPredict(request);
  ASSERT_EQ(response.values_size(), 1000);
  ASSERT_EQ(response.deviations_size(), 1000);
  double squares = 0, standardised = 0;
  int covered = 0;
  for (int i = 0; i < 1000; ++i) {
    const double truth = std::stod(rows.labels(i));
    const double error = response.values(i) - truth;
    squares += error * error / 1000;
    standardised += error * error / (response.deviations(i) * response.deviations(i)) / 1000;
    if (response.interval_lows(i) <= truth && truth <= response.interval_highs(i)) ++covered;
    EXPECT_NEAR(response.interval_lows(i) + response.interval_highs(i), 2 * response.values(i),
                1e-9);
  }
  // The noise is uniform in (−.5, .5), whose deviation is .289; the targets' is 2.1.
  EXPECT_LT(std::sqrt(squares), 1.0);
  EXPECT_GT(covered, 790);
  EXPECT_LT(covered, 980);
  EXPECT_GT(std::sqrt(standardised), 0.5);
  EXPECT_LT(std::sqrt(standardised), 1.6);
  // A value has the same bits whether deviations are asked for or not.
  const v1::PredictResponse plain = MustPredict(RequestFor(rows.examples()));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(plain.values(i), response.values(i));
}

TEST_F(TrainRpcTest, TrainingTwiceWithOneIdIsOneTraining) {
  const v1::LabeledExamples rows = LabeledRows(500);
  const v1::Version first = MustTrain(rows);
  const v1::Version second = MustTrain(rows);
  EXPECT_EQ(second.ref().number(), first.ref().number());
  EXPECT_THAT(Train(SpecOf("logistic(C=1)"), ToTrain(rows)),
              IsError(Code::ALREADY_EXISTS, "BUILD_SPEC_MISMATCH"));
  // With another id, the same rows give the same bytes.
  const v1::Version third = MustTrain(rows, "", "00000000-0000-4000-8000-00000000000b");
  EXPECT_EQ(third.ref().number(), 3);
  EXPECT_EQ(third.ref().digest(), first.ref().digest());
}

TEST_F(TrainRpcTest, EveryLearnerOfHeadsTrains) {
  int id = 10;
  for (const char* learner : {"ridge(alpha=1)", "ridge(class_weight=balanced)", "logistic(C=1)",
                              "linear_svm(C=1)", "perceptron(epochs=3)"}) {
    SCOPED_TRACE(learner);
    const v1::Version version = MustTrain(LabeledRows(1000), learner,
                                          absl::StrCat("00000000-0000-4000-8000-0000000000", id++));
    const v1::LabeledExamples rows = LabeledRows(500, 3);
    const v1::PredictResponse response =
        MustPredict(RequestFor(rows.examples(), absl::StrCat("letter@", version.ref().number())));
    int errors = 0;
    for (int i = 0; i < 500; ++i) {
      if (response.class_names(response.labels(i)) != rows.labels(i)) ++errors;
    }
    EXPECT_LT(errors, 150);
  }
}

TEST_F(TrainRpcTest, AStreamNamesItsVersionAndClassesOnce) {
  MustTrain(LabeledRows(500));
  const auto stream = predicts_->PredictStream(NewContext());
  v1::PredictRequest request = RequestFor(UniformExamples(7, 3, 2));
  stream->Write(request);
  request.clear_reference();
  stream->Write(request);
  stream->WritesDone();
  v1::PredictResponse first, second;
  ASSERT_TRUE(stream->Read(&first));
  ASSERT_TRUE(stream->Read(&second));
  EXPECT_THAT(stream->Finish(), IsOk());
  EXPECT_EQ(first.version().number(), 2);
  EXPECT_EQ(first.class_names_size(), 2);
  EXPECT_FALSE(second.has_version());
  EXPECT_EQ(second.class_names_size(), 0);
  ASSERT_EQ(second.labels_size(), 7);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(first.labels(i), second.labels(i));
}

TEST_F(TrainRpcTest, AnAliasReleasesFeaturesAndHeadTogether) {
  MustTrain(LabeledRows(500));
  v1::SetAliasRequest set;
  set.set_reference("letter@2");
  set.set_alias("prod");
  EXPECT_EQ(Answer(&MappingStub::SetAlias, set).version(), 2);
  const v1::Examples rows = UniformExamples(3, 3, 8);
  EXPECT_EQ(MustPredict(RequestFor(rows, "letter@prod")).version().number(), 2);
  v1::TransformResponse features;
  EXPECT_THAT(Transform(TransformOf("letter@prod", rows), &features), IsOk());
  EXPECT_EQ(features.version().number(), 2);
}

TEST_F(TrainRpcTest, AnExportedHeadAnswersAlikeUnderAnotherName) {
  const v1::Version trained = MustTrain(LabeledRows(500));
  v1::PredictRequest request = RequestFor(UniformExamples(3, 3, 8), "letter@2");
  request.set_scores(true);
  const std::string scores = MustPredict(request).scores().float64_le();
  v1::ExportRequest wanted;
  wanted.set_reference("letter@2");
  const auto exported = mappings_->Export(NewContext(), wanted);
  v1::Version imported;
  const auto importer = mappings_->Import(NewContext(), &imported);
  v1::ImportRequest part;
  part.set_name("copy");
  importer->Write(part);
  while (exported->Read(part.mutable_chunk())) importer->Write(part);
  part.set_digest(trained.ref().digest());
  importer->Write(part);
  importer->WritesDone();
  ASSERT_THAT(importer->Finish(), IsOk());
  EXPECT_EQ(imported.head().SerializeAsString(), trained.head().SerializeAsString());
  request.set_reference("copy");
  EXPECT_EQ(MustPredict(request).scores().float64_le(), scores);
}

TEST_F(TrainRpcTest, ATrainingThatFailsStoresNothing) {
  v1::TrainingExamples rows = ToTrain(LabeledRows(50));
  for (std::string& label : *rows.mutable_labels()) label = "same";
  EXPECT_THAT(Train(SpecOf(), rows),
              IsError(Code::INVALID_ARGUMENT, "CLASSES_TOO_FEW", "examples.labels"));
  v1::GetMappingRequest get;
  get.set_name("letter");
  EXPECT_EQ(Answer(&MappingStub::GetMapping, get).version_count(), 1);
}

TEST_F(TrainRpcTest, NumbersHaveNoLabelInTheOpenInferenceProtocol) {
  MustTrain(NumberRows(500, 1));
  const auto inference = ::inference::GRPCInferenceService::NewStub(channel_);
  ::inference::ModelInferRequest request;
  request.set_model_name("letter");
  auto& input = *request.add_inputs();
  input.set_name("x");
  input.set_datatype("FP32");
  input.add_shape(1);
  input.add_shape(3);
  request.add_raw_input_contents(UniformExamples(1, 3).dense().float32_le());
  request.add_outputs()->set_name("label");
  ::inference::ModelInferResponse response;
  EXPECT_THAT(inference->ModelInfer(NewContext(), request, &response),
              IsError(Code::FAILED_PRECONDITION, "OUTPUT_NOT_AVAILABLE", "outputs[label]"));
}

TEST_F(TrainRpcTest, TheOpenInferenceProtocolOffersLabelScoreAndProbability) {
  MustTrain(LabeledRows(1000));
  const auto inference = ::inference::GRPCInferenceService::NewStub(channel_);
  ::inference::ModelInferRequest request;
  request.set_model_name("letter");
  auto& input = *request.add_inputs();
  input.set_name("x");
  input.set_datatype("FP32");
  input.add_shape(5);
  input.add_shape(3);
  const v1::Examples rows = UniformExamples(5, 3, 4);
  request.add_raw_input_contents(rows.dense().float32_le());
  for (const char* name : {"label", "features", "score", "probability"}) {
    request.add_outputs()->set_name(name);
  }
  ::inference::ModelInferResponse response;
  ASSERT_THAT(inference->ModelInfer(NewContext(), request, &response), IsOk());
  ASSERT_EQ(response.outputs_size(), 4);
  v1::PredictRequest predict = RequestFor(rows);
  predict.set_scores(true);
  predict.set_probabilities(true);
  const v1::PredictResponse expected = MustPredict(predict);
  std::string labels;
  for (const int label : expected.labels()) {
    const std::string& name = expected.class_names(label);
    const auto size = static_cast<uint32_t>(name.size());
    labels.append(reinterpret_cast<const char*>(&size), 4).append(name);
  }
  EXPECT_EQ(response.outputs(0).datatype(), "BYTES");
  EXPECT_EQ(response.raw_output_contents(0), labels);
  v1::TransformResponse features;
  ASSERT_THAT(Transform(TransformOf("letter", rows), &features), IsOk());
  EXPECT_EQ(response.raw_output_contents(1), features.features().float32_le());
  EXPECT_EQ(response.raw_output_contents(2), expected.scores().float64_le());
  EXPECT_EQ(response.raw_output_contents(3), expected.probabilities().float64_le());
  ::inference::ModelMetadataRequest metadata;
  metadata.set_name("letter");
  ::inference::ModelMetadataResponse described;
  ASSERT_THAT(inference->ModelMetadata(NewContext(), metadata, &described), IsOk());
  std::set<std::string> names;
  for (const auto& output : described.outputs()) names.insert(output.name());
  EXPECT_EQ(names,
            (std::set<std::string>{"features", "residual", "label", "score", "probability"}));
}

}  // namespace
}  // namespace phimap::testing
