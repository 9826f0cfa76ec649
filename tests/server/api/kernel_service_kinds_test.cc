// Tests kernels that a user's own service computes, on examples of every kind: dense rows, sparse
// rows, text and bytes.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cpp/kernel_server.h"
#include "tests/server/api/evaluate_fixture.h"
#include "tests/server/api/server_fixture.h"
#include "tests/server/support/scripted_kernel.h"

namespace phimap::testing {
namespace {

using Kind = v1::Examples::KindCase;

constexpr char kServiceKernel[] = "service(endpoint=here, kernel=rbf)";
constexpr char kBuiltIn[] = "rbf(gamma=0.2)";
constexpr int kKindRows = 200;
constexpr int kKindColumns = 3;

// Converts rows to examples of the kind `kind`. A text or bytes example holds the numbers of its
// row in decimal.
v1::Examples InForm(Kind kind, const v1::Examples& rows) {
  const v1::DenseRows& dense = rows.dense();
  if (kind == v1::Examples::kDense) return rows;
  if (kind == v1::Examples::kSparse) return SparseExamples(dense);
  const auto numbers = ArrayOf<float>(dense.float32_le());
  v1::Examples examples;
  for (int i = 0; i < dense.rows(); ++i) {
    std::string string;
    for (int j = 0; j < dense.columns(); ++j) {
      absl::StrAppendFormat(&string, "%.17g ", numbers[i * dense.columns() + j]);
    }
    if (kind == v1::Examples::kText) {
      examples.mutable_text()->add_values(string);
    } else {
      examples.mutable_bytes()->add_values(string);
    }
  }
  return examples;
}

// The numbers of row i in a batch of any kind.
std::vector<double> RowOf(const client::Batch& batch, size_t i) {
  std::vector<double> row;
  if (batch.columns() == 0) {
    std::istringstream words{std::string(batch[i])};
    for (double number = 0; words >> number;) row.push_back(number);
  }
  for (int64_t j = 0; j < batch.columns(); ++j) row.push_back(batch.number(i, j));
  return row;
}

double Rbf(const std::vector<double>& x, const std::vector<double>& y) {
  return ScriptedKernel::Kernel(x.data(), y.data(), static_cast<int>(x.size()));
}

class KernelServiceKindsTest : public ServerFixture, public ::testing::WithParamInterface<Kind> {
 protected:
  KernelServiceKindsTest() { options_.kernel_service_seconds = 60; }

  void StartWith(const std::string& address) {
    options_.kernel_services = {{.name = "here", .target = address, .tls = false}};
    Start();
  }
  // Random rows in which a third of the numbers are 0.
  static v1::Examples Rows(int rows, int seed) {
    v1::Examples examples = UniformExamples(rows, kKindColumns, seed);
    for (int i = 0; i < rows; ++i) {
      Put(0.0f, kKindColumns * i + i % kKindColumns,
          examples.mutable_dense()->mutable_float32_le());
    }
    return examples;
  }
  grpc::Status BuildOf(const std::string& mapping, const std::string& text,
                       const std::string& kernel, const v1::Examples& examples) {
    v1::BuildSpec spec =
        Spec(mapping, text, absl::StrCat("00000000-0000-4000-8000-000000000", next_id_++));
    spec.set_kernel(kernel);
    std::optional<v1::Version> version;
    const grpc::Status status = Build(spec, examples, kKindRows, &version);
    if (version.has_value()) version_ = *version;
    return status;
  }
  grpc::Status BuildServed(const std::string& text = "f2(landmarks=10)",
                           const std::string& kernel = kServiceKernel) {
    return BuildOf("served", text, kernel, InForm(GetParam(), Rows(kKindRows, 1)));
  }
  grpc::Status AskFor(const std::string& mapping, const v1::Examples& examples,
                      v1::TransformResponse* response) {
    v1::TransformRequest request = TransformOf(mapping, examples);
    request.set_residual(true);
    return Transform(request, response);
  }
  grpc::Status AskServed(v1::TransformResponse* response = nullptr) {
    v1::TransformResponse ignored;
    return AskFor("served", InForm(GetParam(), Rows(7, 9)),
                  response == nullptr ? &ignored : response);
  }

  // Evaluates a learner. The label of a row says whether its second number is positive.
  grpc::Status Evaluate(const std::string& mapping, const v1::Examples& rows,
                        const v1::Examples& sent, v1::Evaluation* evaluation,
                        const std::string& learner = "linear_svm(C=1)") {
    v1::LabeledExamples labeled;
    *labeled.mutable_examples() = sent;
    const auto numbers = ArrayOf<float>(rows.dense().float32_le());
    for (size_t k = 1; k < numbers.size(); k += kKindColumns) {
      labeled.add_labels(numbers[k] > 0 ? "plus" : "minus");
    }
    EvaluateStream stream(*evaluations_);
    stream.Send(EvaluationSpecOf(learner, mapping));
    for (int block = 0; block < 2; ++block) stream.Send(labeled);
    stream.SendFinish(2 * rows.dense().rows());
    const grpc::Status status = stream.Finish();
    if (stream.evaluation().has_value()) *evaluation = *stream.evaluation();
    return status;
  }

  v1::Version version_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, KernelServiceKindsTest,
                         ::testing::Values(v1::Examples::kDense, v1::Examples::kSparse,
                                           v1::Examples::kBytes, v1::Examples::kText),
                         [](const ::testing::TestParamInfo<Kind>& kind) {
                           return std::string(
                               v1::Examples::descriptor()->FindFieldByNumber(kind.param)->name());
                         });

// The kernel service is written with phimap's C++ helper, client::KernelServer.
TEST_P(KernelServiceKindsTest, FeaturesAreThoseOfTheBuiltInKernelAtOneRoundTripATransform) {
  std::atomic<bool> other_kind{false};
  const std::pair<Kind, client::Batch::Kind> kKinds[] = {
      {v1::Examples::kDense, client::Batch::Kind::kDense},
      {v1::Examples::kSparse, client::Batch::Kind::kSparse},
      {v1::Examples::kBytes, client::Batch::Kind::kBytes},
      {v1::Examples::kText, client::Batch::Kind::kText}};
  const auto expected = std::find_if(std::begin(kKinds), std::end(kKinds), [](const auto& pair) {
                          return pair.first == GetParam();
                        })->second;
  client::KernelServer::Options kernels;
  kernels.kernels["rbf"] = [&](const client::Batch& left, const client::Batch& right,
                               double* block) {
    if (left.kind() != expected || right.kind() != expected) other_kind = true;
    for (size_t i = 0; i < left.size(); ++i) {
      for (size_t j = 0; j < right.size(); ++j) *block++ = Rbf(RowOf(left, i), RowOf(right, j));
    }
    return absl::OkStatus();
  };
  const auto kernel = client::KernelServer::Start(kernels).value();
  StartWith(kernel->address());
  const v1::Examples stream = Rows(kKindRows, 1);
  // The number beside each mapping is how many blocks of kernel values its build requests. With
  // landmarks S, there are at most four: K(S, S); the held-out rows with S; pairs of held-out rows;
  // and for the spectrum all held-out rows with each other. Not every mapping needs all blocks.
  // With given landmarks, 17 rows are held out, too few to measure on.
  const std::pair<const char*, int64_t> kMappings[] = {
      {"f1(landmarks=24, serving_type=float64)", 2},
      {"f3(landmarks=24, dimensions=12, serving_type=float64)", 4},
      {"kpca(landmarks=24, dimensions=5, serving_type=float64)", 3},
      {"f2(landmarks=24, policy=given, serving_type=float64)", 2},
      {"f2(landmarks=24, serving_type=float64)", 4},
  };
  for (const auto& [mapping, blocks] : kMappings) {
    SCOPED_TRACE(mapping);
    int64_t before = kernel->calls();
    const grpc::Status built = BuildServed(mapping);
    ASSERT_TRUE(built.ok()) << built.error_message();
    EXPECT_EQ(kernel->calls() - before, blocks);
    const bool strings = GetParam() == v1::Examples::kText || GetParam() == v1::Examples::kBytes;
    EXPECT_EQ(version_.input_columns(), strings ? 0 : kKindColumns);
    ASSERT_TRUE(BuildOf("built-in", mapping, kBuiltIn, stream).ok());
    v1::TransformRequest request = TransformOf("served", InForm(GetParam(), Rows(7, 9)));
    v1::TransformResponse served;
    before = kernel->calls();
    ASSERT_THAT(Transform(request, &served), IsOk());
    EXPECT_EQ(kernel->calls() - before, 1);
    request.set_reference("built-in");
    *request.mutable_examples() = Rows(7, 9);
    v1::TransformResponse built_in = Mapped(request);
    const std::vector<double> a = NumbersOf(served.features());
    const std::vector<double> b = NumbersOf(built_in.features());
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-6);
  }
  EXPECT_FALSE(other_kind);
  // The last mapping has residuals.
  v1::TransformResponse served, built_in;
  ASSERT_THAT(AskServed(&served), IsOk());
  ASSERT_THAT(AskFor("built-in", Rows(7, 9), &built_in), IsOk());
  ASSERT_EQ(served.residuals_size(), 7);
  EXPECT_EQ(served.residual_allowances_size(), 7);
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(served.residuals(i), built_in.residuals(i), 1e-5);
  // If the service has forgotten the landmarks, phimapd sends them again. A transform then takes
  // one more call. A build takes two more, because its blocks have two different sets of columns,
  // the landmarks and the held-out rows.
  kernel->Forget();
  int64_t before = kernel->calls();
  ASSERT_THAT(AskServed(), IsOk());
  EXPECT_EQ(kernel->calls() - before, 2);
  kernel->Forget();
  before = kernel->calls();
  ASSERT_THAT(BuildServed("f2(landmarks=24, serving_type=float64)"), IsOk());
  EXPECT_EQ(kernel->calls() - before, 4 + 2);
  // After a restart, phimapd sends the landmarks with its first call.
  Restart();
  before = kernel->calls();
  ASSERT_TRUE(AskServed().ok());
  EXPECT_EQ(kernel->calls() - before, 1);
}

TEST_P(KernelServiceKindsTest, AVersionTakesWhatItsServiceCanBeAskedAbout) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildServed().ok());
  v1::TransformResponse own;
  ASSERT_TRUE(AskServed(&own).ok());
  // A version built from rows accepts dense and sparse rows. A version built from bytes also
  // accepts text.
  const auto takes = [](Kind version, Kind request) {
    const bool rows = version == v1::Examples::kDense || version == v1::Examples::kSparse;
    if (request == v1::Examples::kDense || request == v1::Examples::kSparse) return rows;
    return request == version || (!rows && request == v1::Examples::kText);
  };
  for (const Kind kind :
       {v1::Examples::kDense, v1::Examples::kSparse, v1::Examples::kBytes, v1::Examples::kText}) {
    SCOPED_TRACE(kind);
    v1::TransformResponse response;
    const grpc::Status status = AskFor("served", InForm(kind, Rows(7, 9)), &response);
    if (takes(GetParam(), kind)) {
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(response.features().SerializeAsString(), own.features().SerializeAsString());
    } else {
      EXPECT_THAT(status, IsError(Code::INVALID_ARGUMENT, "EXAMPLE_KIND_MISMATCH"));
    }
  }
}

// kernel_service_rpc_test.cc has the other lies: they do not depend on the kind.
TEST_P(KernelServiceKindsTest, ALieHasItsErrorInTransformAndBuild) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildServed().ok());
  kernel.Say([](const v1::ComputeBlockRequest&, v1::ComputeBlockResponse& r) {
    Put(std::numeric_limits<double>::quiet_NaN(), 0, r.mutable_block()->mutable_float64_le());
    return grpc::Status::OK;
  });
  for (const bool building : {false, true}) {
    EXPECT_THAT(building ? BuildServed() : AskServed(),
                IsError(Code::FAILED_PRECONDITION, "KERNEL_SERVICE_ANSWER_INVALID"));
  }
  kernel.Say(nullptr);
  EXPECT_TRUE(AskServed().ok());
}

TEST_P(KernelServiceKindsTest, EvaluateLearnsWhatItWouldOfTheBuiltInKernel) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  const std::string f2 = "f2(landmarks=10, serving_type=float64)";
  ASSERT_TRUE(BuildServed(f2).ok());
  ASSERT_TRUE(BuildOf("built-in", f2, kBuiltIn, Rows(kKindRows, 1)).ok());
  const v1::Examples rows = Rows(100, 4);
  const int before = kernel.calls();
  v1::Evaluation served;
  ASSERT_THAT(Evaluate("served", rows, InForm(GetParam(), rows), &served), IsOk());
  EXPECT_EQ(kernel.calls() - before, 2);
  v1::Evaluation built_in;
  ASSERT_TRUE(Evaluate("built-in", rows, rows, &built_in).ok());
  ASSERT_EQ(served.classes_size(), 2);
  EXPECT_EQ(served.error(), built_in.error());
  EXPECT_LT(served.error(), 0.4);

  EXPECT_THAT(Evaluate("served", rows, InForm(GetParam(), rows), &served, "kernel_svm(C=1)"),
              IsError(Code::FAILED_PRECONDITION, "KERNEL_NOT_AVAILABLE"));

  kernel.Say([](const v1::ComputeBlockRequest&, v1::ComputeBlockResponse& r) {
    Put(std::numeric_limits<double>::quiet_NaN(), 0, r.mutable_block()->mutable_float64_le());
    return grpc::Status::OK;
  });
  EXPECT_THAT(Evaluate("served", rows, InForm(GetParam(), rows), &served),
              IsError(Code::FAILED_PRECONDITION, "KERNEL_SERVICE_ANSWER_INVALID"));
  kernel.Stop();
  EXPECT_THAT(Evaluate("served", rows, InForm(GetParam(), rows), &served),
              IsError(Code::UNAVAILABLE, "KERNEL_SERVICE_UNAVAILABLE"));
}

}  // namespace
}  // namespace phimap::testing
