// Tests text and bytes in Build, Transform, TransformStream and Evaluate.
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/api/evaluate_fixture.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Returns a sentence. Even and odd sentences use different halves of the words; only the first word
// may occur in both.
std::string Sentence(int i) {
  static const char* const words[] = {"sun", "sea", "sand", "ship", "snow", "ice", "frost", "ski"};
  std::string sentence = i % 5 == 0 ? "the" : "a";
  for (int k = 0; k < 4; ++k) {
    absl::StrAppend(&sentence, " ", words[(i % 2) * 4 + (i * 7 + k * (i / 3 + 1)) % 4]);
  }
  return sentence;
}

v1::Examples Text(int count, int first = 0) {
  v1::Examples examples;
  for (int i = 0; i < count; ++i) examples.mutable_text()->add_values(Sentence(first + i));
  return examples;
}

v1::Examples Bytes(int count) {
  v1::Examples examples;
  for (int i = 0; i < count; ++i) {
    examples.mutable_bytes()->add_values(absl::StrCat(Sentence(i), std::string("\xff\x00\x80", 3)));
  }
  return examples;
}

class TextRpcTest : public ServerFixture {
 protected:
  TextRpcTest() { Start(); }

  static v1::BuildSpec SpecOf(const std::string& kernel, const std::string& mapping) {
    v1::BuildSpec spec = Spec("words", mapping);
    spec.set_kernel(kernel);
    return spec;
  }
  grpc::Status BuildOf(const v1::Examples& examples, const std::string& kernel,
                       const std::string& mapping = "f2(landmarks=8)",
                       std::optional<v1::Version>* version = nullptr) {
    v1::BuildSpec spec = SpecOf(kernel, mapping);
    spec.set_build_id(absl::StrCat("00000000-0000-4000-8000-000000000", next_id_++));
    return Build(spec, examples, examples.text().values_size() + examples.bytes().values_size(),
                 version);
  }
  static v1::TransformRequest Request(v1::Examples examples) {
    return TransformOf("words", std::move(examples));
  }
  // Reads a float32 feature of a version with the mapping f1. Such a feature is the value of the
  // kernel itself.
  static float FeatureAt(const v1::TransformResponse& response, int row, int column) {
    float value = 0;
    const v1::DenseRows& rows = response.features();
    const size_t at = sizeof(value) * static_cast<size_t>(row * rows.columns() + column);
    std::memcpy(&value, rows.float32_le().data() + at, sizeof(value));
    return value;
  }
};

TEST_F(TextRpcTest, TextIsBuiltAndMappedWithResiduals) {
  std::optional<v1::Version> version;
  ASSERT_THAT(BuildOf(Text(200), "normalize(spectrum(n=3))", "f2(landmarks=8)", &version), IsOk());
  EXPECT_EQ(version->input_columns(), 0);
  EXPECT_EQ(version->kernel_text(), "normalize(spectrum(n=3, unit=character))");
  EXPECT_EQ(version->certificate().stream_rows(), 200);
  v1::TransformRequest request = Request(Text(30, 1000));
  request.set_residual(true);
  v1::TransformResponse response = Mapped(request);
  EXPECT_EQ(response.features().rows(), 30);
  EXPECT_EQ(response.features().columns(), version->output_columns());
  ASSERT_EQ(response.residuals_size(), 30);
  for (const double residual : response.residuals()) EXPECT_GE(residual, 0);
  Restart();
  v1::TransformResponse again = Mapped(request);
  EXPECT_EQ(again.SerializeAsString(), response.SerializeAsString());
}

TEST_F(TextRpcTest, FeaturesOfF1AreSharedNgrams) {
  v1::Examples landmarks;
  for (const char* text : {"banana", "bandana", "x", "", "nab", "an"}) {
    landmarks.mutable_text()->add_values(text);
  }
  ASSERT_TRUE(BuildOf(landmarks, "spectrum(n=2)", "f1(landmarks=5, policy=given)").ok());
  v1::Examples examples;
  examples.mutable_text()->add_values("banana");  // ba once, an twice, na twice
  examples.mutable_text()->add_values("");
  v1::TransformResponse response = Mapped(Request(examples));
  const float expected[] = {9, 1 + 4 + 2, 0, 0, 2 + 0};
  for (int j = 0; j < 5; ++j) {
    EXPECT_EQ(FeatureAt(response, 0, j), j == 4 ? 2 : expected[j]) << j;
    EXPECT_EQ(FeatureAt(response, 1, j), 0) << j;
  }
}

TEST_F(TextRpcTest, BytesThatAreNoTextAreMappedByKernelsOfBytes) {
  ASSERT_TRUE(BuildOf(Bytes(100), "jaccard(n=2, unit=byte)").ok());
  v1::TransformResponse bytes, text;
  ASSERT_TRUE(Transform(Request(Bytes(10)), &bytes).ok());
  EXPECT_EQ(bytes.features().rows(), 10);
  ASSERT_TRUE(Transform(Request(Text(10)), &text).ok()) << "text should be accepted as bytes";
}

TEST_F(TextRpcTest, StreamsOfTextHaveTheFeaturesOfOneCall) {
  ASSERT_TRUE(BuildOf(Text(100), "jaccard(n=1, unit=word)").ok());
  v1::TransformResponse whole = Mapped(Request(Text(40)));
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  std::string features;
  v1::TransformRequest request;
  request.set_reference("words");
  for (int first = 0; first < 40; first += 8) {
    *request.mutable_examples() = Text(8, first);
    v1::TransformResponse response;
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    features += response.features().float32_le();
    request.clear_reference();
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(features, whole.features().float32_le());
}

TEST_F(TextRpcTest, EvaluatesLearnersOfFeaturesAndRefusesThoseOfTheKernel) {
  ASSERT_TRUE(BuildOf(Text(100), "jaccard(n=1, unit=word)").ok());
  for (const char* learner : {"", "kernel_svm()", "kernel_sgd()"}) {
    v1::LabeledExamples labeled;
    *labeled.mutable_examples() = Text(100);
    for (int i = 0; i < 100; ++i) labeled.add_labels(i % 2 == 0 ? "summer" : "winter");
    EvaluateStream stream(*evaluations_);
    stream.Send(EvaluationSpecOf(learner, "words"));
    stream.Send(labeled);
    stream.SendFinish(100);
    const grpc::Status status = stream.Finish();
    if (*learner == '\0') {
      ASSERT_TRUE(status.ok()) << status.error_message();
      ASSERT_TRUE(stream.evaluation().has_value());
      EXPECT_LE(stream.evaluation()->error(), 0.1);  // only the first word occurs in both kinds
    } else {
      EXPECT_THAT(status, IsError(Code::FAILED_PRECONDITION, "KERNEL_NOT_AVAILABLE"));
    }
  }
}

TEST_F(TextRpcTest, EstimatesNeedNoColumns) {
  v1::EstimateBuildRequest request;
  *request.mutable_spec() = SpecOf("spectrum(n=3)", "f2(landmarks=50)");
  request.set_rows(100'000);
  v1::EstimateBuildResponse response = Answer(&MappingStub::EstimateBuild, request);
  EXPECT_GT(response.seconds(), 0);
  EXPECT_LT(response.seconds(), 60);
  EXPECT_LT(response.peak_memory_bytes(), int64_t{2} << 30);
}

}  // namespace
}  // namespace phimap::testing
