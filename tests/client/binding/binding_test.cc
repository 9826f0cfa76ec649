// Tests the plain C interface: a map is built, trained and used through it; wrong arguments are
// errors with their details; and results are written only inside the caller's buffers. The tests of
// the Python client compare its bytes and bits with a server's.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "client/binding/phimap.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "phimap/rpc/error_details.pb.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"
#include "phimap/v1/predict_service.pb.h"

namespace phimap::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int32_t kOk = 0;
constexpr int32_t kCancelled = 1;
constexpr int32_t kInvalid = 3;
constexpr int32_t kExhausted = 8;
constexpr int32_t kPrecondition = 9;
constexpr int32_t kDataLoss = 15;

constexpr int64_t kRows = 200;
constexpr int64_t kColumns = 3;
constexpr int64_t kNoLimit = int64_t{1} << 40;

// Bytes of the library, given back at the end.
class Given {
 public:
  ~Given() { phimap_bytes_free(&bytes_); }
  phimap_bytes* out() {
    phimap_bytes_free(&bytes_);
    return &bytes_;
  }
  std::string text() const { return std::string(bytes_.data, static_cast<size_t>(bytes_.size)); }

 private:
  phimap_bytes bytes_ = {nullptr, 0};
};

// The details of the last error.
class Error {
 public:
  phimap_bytes* out() { return given_.out(); }
  std::string message() const { return status().message(); }
  std::string field() const {
    const rpc::Status known = status();
    for (const auto& detail : known.details()) {
      rpc::BadRequest request;
      if (detail.type_url() == "type.googleapis.com/google.rpc.BadRequest" &&
          request.ParseFromString(detail.value())) {
        return request.field_violations(0).field();
      }
    }
    return "";
  }
  std::string reason() const {
    const rpc::Status known = status();
    for (const auto& detail : known.details()) {
      rpc::ErrorInfo info;
      if (detail.type_url() == "type.googleapis.com/google.rpc.ErrorInfo" &&
          info.ParseFromString(detail.value())) {
        return info.reason();
      }
    }
    return "";
  }

 private:
  rpc::Status status() const {
    rpc::Status status;
    EXPECT_TRUE(status.ParseFromString(given_.text()));
    return status;
  }
  Given given_;
};

std::vector<double> SomeRows(int64_t rows = kRows) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * kColumns; ++i) {
    values.push_back(std::sin(static_cast<double>(i * i % 1009)));
  }
  return values;
}

phimap_rows Dense(const std::vector<double>& values, int64_t columns = kColumns) {
  return {
      1,       8, static_cast<int64_t>(values.size()) / columns, columns, values.data(), nullptr,
      nullptr, 0};
}

std::string BuildSpecOf(const std::string& spec, const std::string& kernel = "rbf(gamma=0.5)") {
  v1::BuildSpec message;
  message.set_spec(spec);
  message.set_kernel(kernel);
  return message.SerializeAsString();
}

// Runs a job over `rows`, and returns its last code.
int32_t RunJob(phimap_job* job, const std::vector<double>& rows, const std::string& known,
               std::string& result, Error& error, phimap_progress progress = nullptr,
               void* context = nullptr) {
  const phimap_rows block = Dense(rows);
  Given out;
  int32_t code = phimap_job_add(job, &block, known.data(), static_cast<int64_t>(known.size()),
                                progress, context, error.out());
  if (code == kOk) code = phimap_job_finish(job, progress, context, out.out(), error.out());
  result = code == kOk ? out.text() : "";
  phimap_job_free(job);
  return code;
}

std::string Built(const std::string& spec = "f2(landmarks=20)") {
  const std::string message = BuildSpecOf(spec);
  phimap_job* job = nullptr;
  Error error;
  std::string artifact;
  EXPECT_EQ(
      phimap_job_build(message.data(), static_cast<int64_t>(message.size()), 1, &job, error.out()),
      kOk);
  EXPECT_EQ(RunJob(job, SomeRows(), "", artifact, error), kOk) << error.message();
  return artifact;
}

class Loaded {
 public:
  explicit Loaded(const std::string& artifact, int64_t max_bytes = kNoLimit,
                  int32_t kernel_values = 0) {
    code_ = phimap_map_load(artifact.data(), static_cast<int64_t>(artifact.size()), max_bytes,
                            kernel_values, &map_, error_.out());
  }
  ~Loaded() { phimap_map_free(map_); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  int32_t code() const { return code_; }
  const phimap_map* map() const { return map_; }
  Error& error() { return error_; }
  v1::Version version() {
    Given described;
    v1::Version version;
    EXPECT_EQ(phimap_map_describe(map_, described.out(), error_.out()), kOk);
    EXPECT_TRUE(version.ParseFromString(described.text()));
    return version;
  }
  int32_t Transform(const phimap_rows& rows, std::vector<float>& features, int32_t threads = 1) {
    return phimap_map_transform(map_, &rows, features.data(), nullptr, nullptr, threads,
                                error_.out());
  }

 private:
  phimap_map* map_ = nullptr;
  Error error_;
  int32_t code_ = 0;
};

TEST(BindingTest, AMapIsBuiltLoadedDescribedAndVerified) {
  const std::string artifact = Built();
  Loaded loaded(artifact);
  ASSERT_EQ(loaded.code(), kOk) << loaded.error().message();
  const v1::Version version = loaded.version();
  EXPECT_EQ(version.input_columns(), kColumns);
  EXPECT_EQ(version.output_columns(), 20);
  EXPECT_EQ(version.artifact_size_bytes(), static_cast<int64_t>(artifact.size()));
  EXPECT_EQ(version.ref().digest().size(), 64u);
  EXPECT_EQ(version.certificate().stream_rows(), kRows);
  int64_t bytes = 0;
  const char* const kept = phimap_map_artifact(loaded.map(), &bytes);
  EXPECT_EQ(std::string(kept, static_cast<size_t>(bytes)), artifact);
  int32_t ran = 0;
  EXPECT_EQ(phimap_map_verify(loaded.map(), &ran, loaded.error().out()), kOk);
  EXPECT_EQ(ran, 1);
}

TEST(BindingTest, TheSameRowsSpecAndSeedGiveTheSameBytes) {
  EXPECT_EQ(Built(), Built());
  EXPECT_NE(Built(), Built("f2(landmarks=21)"));
}

TEST(BindingTest, FeaturesFillWhatWasGivenAndNothingBeyond) {
  Loaded loaded(Built());
  ASSERT_EQ(loaded.code(), kOk);
  const float untouched = -12345.0f;
  std::vector<float> features(3 * 20 + 8, untouched);
  ASSERT_EQ(loaded.Transform(Dense(SomeRows(3)), features), kOk) << loaded.error().message();
  EXPECT_THAT(std::vector<float>(features.end() - 8, features.end()), Each(untouched));
  features.resize(3 * 20);
  EXPECT_THAT(features, Each(::testing::Ne(untouched)));
}

// Rows are cut into tiles, and threads take them in any order.
TEST(BindingTest, BitsDependNeitherOnThreadsNorOnTheRowsBeside) {
  Loaded loaded(Built("f2(landmarks=150)"));
  ASSERT_EQ(loaded.code(), kOk);
  const int64_t rows = 3000;
  const std::vector<double> values = SomeRows(rows);
  const int64_t columns = loaded.version().output_columns();
  std::vector<float> one(rows * columns);
  std::vector<float> many(rows * columns);
  ASSERT_EQ(loaded.Transform(Dense(values), one, 1), kOk);
  ASSERT_EQ(loaded.Transform(Dense(values), many, 4), kOk);
  EXPECT_EQ(one, many);
  std::vector<float> alone(columns);
  const std::vector<double> last(values.end() - kColumns, values.end());
  ASSERT_EQ(loaded.Transform(Dense(last), alone), kOk);
  EXPECT_EQ(alone, std::vector<float>(one.end() - columns, one.end()));
}

TEST(BindingTest, SparseRowsGiveTheBitsOfDenseOnes) {
  Loaded loaded(Built());
  ASSERT_EQ(loaded.code(), kOk);
  const std::vector<double> dense = {0, 0.5, 0, -2, 0, 0};
  const std::vector<int64_t> offsets = {0, 1, 2};
  const std::vector<int32_t> indices = {1, 0};
  const std::vector<double> values = {0.5, -2};
  std::vector<float> expected(2 * 20);
  std::vector<float> features(2 * 20, 7);
  ASSERT_EQ(loaded.Transform(Dense(dense), expected), kOk);
  ASSERT_EQ(loaded.Transform({4, 8, 2, kColumns, values.data(), offsets.data(), indices.data(), 2},
                             features),
            kOk)
      << loaded.error().message();
  EXPECT_EQ(features, expected);
}

// Offsets or column indices that point outside of the arrays. AddressSanitizer would detect a read
// beyond the vectors.
TEST(BindingTest, RowsThatLeadOutOfTheirArraysAreRefused) {
  Loaded loaded(Built());
  ASSERT_EQ(loaded.code(), kOk);
  struct Case {
    const char* claim;
    std::vector<int64_t> offsets;
    std::vector<int32_t> indices;
  };
  const Case kCases[] = {
      {"the last offset is beyond the entries", {0, 1, 3}, {0, 1}},
      {"the last offset is before the end of the entries", {0, 1, 1}, {0, 1}},
      {"the first offset is after the first entry", {1, 1, 2}, {0, 1}},
      {"the first offset is before the first entry", {-1, 1, 2}, {0, 1}},
      {"a middle offset is beyond the entries", {0, 1'000'000, 2}, {0, 1}},
      {"the offsets decrease", {0, 2, 1, 2}, {0, 1}},
      {"a middle offset is below 0", {0, -5, 2}, {0, 1}},
      {"a column index is beyond the last column", {0, 1, 2}, {0, kColumns}},
      {"a column index is before the first column", {0, 1, 2}, {-1, 0}},
      {"a row has the same column twice", {0, 2, 2}, {1, 1}},
  };
  const std::vector<double> values = {1, 1};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.claim);
    const auto rows = static_cast<int64_t>(c.offsets.size()) - 1;
    std::vector<float> features(rows * 20);
    EXPECT_EQ(
        loaded.Transform(
            {4, 8, rows, kColumns, values.data(), c.offsets.data(), c.indices.data(), 2}, features),
        kInvalid);
    EXPECT_NE(loaded.error().message(), "");
    // Strings are bytes between offsets.
    EXPECT_EQ(
        loaded.Transform({3, 0, rows, 0, values.data(), c.offsets.data(), nullptr, 2}, features),
        kInvalid);
  }
}

TEST(BindingTest, RowsOfAnotherShapeAreRefused) {
  Loaded loaded(Built());
  ASSERT_EQ(loaded.code(), kOk);
  const std::vector<double> values(2 * (kColumns + 1));
  std::vector<float> features(2 * 20);
  EXPECT_EQ(loaded.Transform(Dense(values, kColumns + 1), features), kInvalid);
  EXPECT_EQ(loaded.error().field(), "examples.dense.columns");
  EXPECT_EQ(loaded.error().reason(), "COLUMNS_MISMATCH");
  for (const phimap_rows& wrong : std::vector<phimap_rows>{
           {1, 8, -1, kColumns, values.data(), nullptr, nullptr, 0},
           {1, 8, 0, kColumns, values.data(), nullptr, nullptr, 0},
           {1, 8, std::numeric_limits<int64_t>::max(), kColumns, values.data(), nullptr, nullptr,
            0},
           {1, 8, 2, 0, values.data(), nullptr, nullptr, 0},
           {1, 8, 2, std::numeric_limits<int64_t>::max(), values.data(), nullptr, nullptr, 0},
           {1, 2, 2, kColumns, values.data(), nullptr, nullptr, 0},
           {0, 8, 2, kColumns, values.data(), nullptr, nullptr, 0},
           {9, 8, 2, kColumns, values.data(), nullptr, nullptr, 0}}) {
    EXPECT_EQ(loaded.Transform(wrong, features), kInvalid) << wrong.rows << " " << wrong.columns;
  }
}

TEST(BindingTest, AValueThatIsNotFiniteIsNamedByItsRow) {
  Loaded loaded(Built());
  ASSERT_EQ(loaded.code(), kOk);
  std::vector<double> values = SomeRows(2);
  values.back() = std::numeric_limits<double>::infinity();
  std::vector<float> features(2 * 20);
  EXPECT_EQ(loaded.Transform(Dense(values), features), kInvalid);
  EXPECT_EQ(loaded.error().field(), "examples.dense.rows[1].columns[2]");
  EXPECT_EQ(loaded.error().reason(), "VALUE_NOT_FINITE");
}

TEST(BindingTest, DamagedArtifactsAndTooLargeOnesAreErrors) {
  const std::string artifact = Built();
  for (const size_t size : {size_t{0}, size_t{1}, artifact.size() / 2, artifact.size() - 1}) {
    EXPECT_EQ(Loaded(artifact.substr(0, size)).code(), kDataLoss) << size;
  }
  std::string flipped = artifact;
  flipped[flipped.size() / 2] ^= 1;
  EXPECT_EQ(Loaded(flipped).code(), kDataLoss);
  Loaded large(artifact, static_cast<int64_t>(artifact.size()));
  EXPECT_EQ(large.code(), kExhausted);
  EXPECT_EQ(large.error().reason(), "ARTIFACT_TOO_LARGE");
}

TEST(BindingTest, ErrorsOfABuildNameTheParameter) {
  for (const auto& [spec, field] : std::vector<std::pair<std::string, std::string>>{
           {"f2(landmarks=0)", "spec.landmarks"}, {"f9()", "spec.spec"}, {"", "spec.spec"}}) {
    const std::string message = BuildSpecOf(spec);
    phimap_job* job = nullptr;
    Error error;
    EXPECT_EQ(phimap_job_build(message.data(), static_cast<int64_t>(message.size()), 1, &job,
                               error.out()),
              kInvalid)
        << spec;
    EXPECT_EQ(job, nullptr);
    EXPECT_EQ(error.field(), field) << error.message();
  }
  phimap_job* job = nullptr;
  Error error;
  EXPECT_EQ(phimap_job_build("\xff\xff", 2, 1, &job, error.out()), kInvalid);
  const std::string service = BuildSpecOf("f2(landmarks=5)", "service(localhost:1, k)");
  EXPECT_NE(
      phimap_job_build(service.data(), static_cast<int64_t>(service.size()), 1, &job, error.out()),
      kOk);
}

TEST(BindingTest, TooFewRowsAreAnErrorOfTheBuild) {
  const std::string message = BuildSpecOf("f2(landmarks=500)");
  phimap_job* job = nullptr;
  Error error;
  std::string artifact;
  ASSERT_EQ(
      phimap_job_build(message.data(), static_cast<int64_t>(message.size()), 1, &job, error.out()),
      kOk);
  EXPECT_EQ(RunJob(job, SomeRows(), "", artifact, error), kPrecondition);
  EXPECT_EQ(error.reason(), "ROWS_TOO_FEW");
}

std::string LabelsOf(int64_t rows) {
  v1::TrainingExamples known;
  const std::vector<double> values = SomeRows(rows);
  for (int64_t i = 0; i < rows; ++i) known.add_labels(values[i * kColumns] > 0 ? "up" : "down");
  return known.SerializeAsString();
}

std::string Trained(const std::string& features, Error& error, int32_t& code) {
  Loaded loaded(features);
  const std::string spec = v1::TrainingSpec().SerializeAsString();
  phimap_job* job = nullptr;
  std::string artifact;
  code = phimap_job_train(loaded.map(), spec.data(), static_cast<int64_t>(spec.size()), "/tmp",
                          int64_t{1} << 20, 1, &job, error.out());
  if (code == kOk) code = RunJob(job, SomeRows(), LabelsOf(kRows), artifact, error);
  return artifact;
}

TEST(BindingTest, ATrainedMapPredictsAndKeepsItsFeatures) {
  const std::string features = Built();
  Error error;
  int32_t code = -1;
  Loaded model(Trained(features, error, code));
  ASSERT_EQ(code, kOk) << error.message();
  EXPECT_EQ(model.version().head().features_digest(), Loaded(features).version().ref().digest());
  v1::PredictRequest request;
  request.set_scores(true);
  const std::string wanted = request.SerializeAsString();
  const std::vector<double> values = SomeRows();
  const phimap_rows rows = Dense(values);
  Given answer;
  ASSERT_EQ(phimap_map_predict(model.map(), wanted.data(), static_cast<int64_t>(wanted.size()),
                               &rows, 1, answer.out(), error.out()),
            kOk)
      << error.message();
  v1::PredictResponse response;
  ASSERT_TRUE(response.ParseFromString(answer.text()));
  ASSERT_EQ(response.labels_size(), kRows);
  EXPECT_THAT(
      std::vector<std::string>(response.class_names().begin(), response.class_names().end()),
      ::testing::ElementsAre("down", "up"));
  int64_t right = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    right += response.labels(static_cast<int>(i)) == (values[i * kColumns] > 0 ? 1 : 0);
  }
  EXPECT_GT(right, kRows * 8 / 10);
}

TEST(BindingTest, AMapWithoutAHeadPredictsNothing) {
  Loaded loaded(Built());
  const std::vector<double> values = SomeRows(1);
  const phimap_rows rows = Dense(values);
  Given answer;
  EXPECT_EQ(phimap_map_predict(loaded.map(), "", 0, &rows, 1, answer.out(), loaded.error().out()),
            kPrecondition);
  EXPECT_EQ(loaded.error().reason(), "HEAD_MISSING");
}

TEST(BindingTest, AnEvaluationMeasuresTheError) {
  Loaded loaded(Built());
  const std::string spec = v1::EvaluationSpec().SerializeAsString();
  phimap_job* job = nullptr;
  Error error;
  std::string result;
  v1::EvaluationSpec fields;
  fields.set_learner("linear_svm(C=1)");
  const std::string message = fields.SerializeAsString();
  ASSERT_EQ(phimap_job_evaluate(loaded.map(), message.data(), static_cast<int64_t>(message.size()),
                                &job, error.out()),
            kOk)
      << error.message();
  ASSERT_EQ(RunJob(job, SomeRows(), LabelsOf(kRows), result, error), kOk) << error.message();
  v1::Evaluation evaluation;
  ASSERT_TRUE(evaluation.ParseFromString(result));
  EXPECT_EQ(evaluation.rows(), kRows);
  EXPECT_LT(evaluation.error(), 0.3);
}

TEST(BindingTest, ProgressRisesAndACallerMayCancel) {
  struct Seen {
    double last = 0;
    int calls = 0;
    int32_t answer = 0;
  };
  const auto see = [](void* context, const char* phase, double fraction) -> int32_t {
    auto& seen = *static_cast<Seen*>(context);
    EXPECT_GE(fraction, seen.last) << phase;
    EXPECT_LE(fraction, 1);
    seen.last = fraction;
    ++seen.calls;
    return seen.answer;
  };
  for (const int32_t answer : {PHIMAP_GO_ON, 0, 1, -1}) {
    const std::string message = BuildSpecOf("f2(landmarks=20)");
    phimap_job* job = nullptr;
    Error error;
    std::string artifact;
    Seen seen{.answer = answer};
    ASSERT_EQ(phimap_job_build(message.data(), static_cast<int64_t>(message.size()), 1, &job,
                               error.out()),
              kOk);
    EXPECT_EQ(RunJob(job, SomeRows(), "", artifact, error, see, &seen),
              answer == PHIMAP_GO_ON ? kOk : kCancelled);
    EXPECT_GT(seen.calls, 0);
    EXPECT_EQ(seen.calls > 1, answer == PHIMAP_GO_ON);
  }
}

TEST(BindingTest, AJobThatFailedCanOnlyBeFreed) {
  const std::string message = BuildSpecOf("f2(landmarks=20)");
  phimap_job* job = nullptr;
  Error error;
  ASSERT_EQ(
      phimap_job_build(message.data(), static_cast<int64_t>(message.size()), 1, &job, error.out()),
      kOk);
  std::vector<double> values = SomeRows(2);
  values[0] = std::numeric_limits<double>::quiet_NaN();
  const phimap_rows rows = Dense(values);
  EXPECT_EQ(phimap_job_add(job, &rows, "", 0, nullptr, nullptr, error.out()), kInvalid);
  EXPECT_EQ(error.field(), "examples.dense.rows[0].columns[0]");
  Given result;
  EXPECT_EQ(phimap_job_finish(job, nullptr, nullptr, result.out(), error.out()), kPrecondition);
  phimap_job_free(job);
}

TEST(BindingTest, CapabilitiesAreListed) {
  Given listed;
  Error error;
  ASSERT_EQ(phimap_capabilities(listed.out(), error.out()), kOk);
  v1::ListCapabilitiesResponse response;
  ASSERT_TRUE(response.ParseFromString(listed.text()));
  EXPECT_GT(response.families_size(), 5);
  EXPECT_THAT(std::string(phimap_processor()), HasSubstr(", "));
}

}  // namespace
}  // namespace phimap::testing
