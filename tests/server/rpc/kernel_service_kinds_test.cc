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
#include "tests/server/rpc/server_fixture.h"
#include "tests/server/support/scripted_kernel.h"

namespace phimap::testing {
namespace {

using Code = grpc::StatusCode;
using Kind = v1::Examples::KindCase;

constexpr char kServiceKernel[] = "service(endpoint=here, kernel=rbf)";
constexpr char kBuiltIn[] = "rbf(gamma=0.2)";
constexpr int kRows = 200;
constexpr int kColumns = 3;

template <typename T>
std::vector<T> ArrayOf(const std::string& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

std::vector<double> NumbersOf(const v1::DenseRows& rows) {
  if (!rows.float64_le().empty()) return ArrayOf<double>(rows.float64_le());
  const auto singles = ArrayOf<float>(rows.float32_le());
  return {singles.begin(), singles.end()};
}

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
  ~KernelServiceKindsTest() override {
    hang_.Open();
    Stop();
  }

  void StartWith(const std::string& address) {
    options_.kernel_services = {{.name = "here", .target = address, .tls = false}};
    Start();
  }
  // Random rows in which a third of the numbers are 0.
  static v1::Examples Rows(int rows, int seed) {
    v1::Examples examples = UniformExamples(rows, kColumns, seed);
    std::string& bytes = *examples.mutable_dense()->mutable_float32_le();
    const float zero = 0;
    for (size_t k = 0; k < bytes.size() / sizeof(float); k += kColumns) {
      std::memcpy(bytes.data() + (k + k / kColumns % kColumns) * sizeof(float), &zero,
                  sizeof(float));
    }
    return examples;
  }
  grpc::Status BuildOf(const std::string& mapping, const std::string& text,
                       const std::string& kernel, const v1::Examples& examples) {
    v1::BuildSpec spec =
        Spec(mapping, text, absl::StrCat("00000000-0000-4000-8000-000000000", next_id_++));
    spec.set_kernel(kernel);
    BuildStream stream(*mappings_);
    stream.Send(spec);
    stream.Send(examples);
    stream.SendFinish(kRows);
    const grpc::Status status = stream.Finish();
    if (stream.version().has_value()) version_ = *stream.version();
    return status;
  }
  grpc::Status BuildServed(const std::string& text = "f2(landmarks=10)",
                           const std::string& kernel = kServiceKernel) {
    return BuildOf("served", text, kernel, InForm(GetParam(), Rows(kRows, 1)));
  }
  grpc::Status Ask(const std::string& mapping, const v1::Examples& examples,
                   v1::TransformResponse* response) {
    v1::TransformRequest request;
    request.set_reference(mapping);
    *request.mutable_examples() = examples;
    request.set_residual(true);
    return Transform(request, response);
  }
  grpc::Status AskServed(v1::TransformResponse* response = nullptr) {
    v1::TransformResponse ignored;
    return Ask("served", InForm(GetParam(), Rows(7, 9)), response == nullptr ? &ignored : response);
  }

  // Evaluates a learner. The label of a row says whether its second number is positive.
  grpc::Status Evaluate(const std::string& mapping, const v1::Examples& rows,
                        const v1::Examples& sent, v1::Evaluation* evaluation,
                        const std::string& learner = "linear_svm(C=1)") {
    grpc::ClientContext context;
    const auto stream = evaluations_->Evaluate(&context);
    v1::EvaluateRequest request;
    request.mutable_spec()->set_reference(mapping);
    request.mutable_spec()->set_learner(learner);
    stream->Write(request);
    *request.mutable_examples()->mutable_examples() = sent;
    const auto numbers = ArrayOf<float>(rows.dense().float32_le());
    for (size_t k = 1; k < numbers.size(); k += kColumns) {
      request.mutable_examples()->add_labels(numbers[k] > 0 ? "plus" : "minus");
    }
    for (int block = 0; block < 2; ++block) stream->Write(request);
    request.mutable_finish()->set_row_count(2 * rows.dense().rows());
    stream->Write(request);
    v1::EvaluateResponse response;
    while (stream->Read(&response)) {
      if (response.has_evaluation()) *evaluation = response.evaluation();
    }
    return stream->Finish();
  }

  Gate hang_;
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
  const auto kernel = client::KernelServer::Start(kernels);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  StartWith((*kernel)->address());
  const v1::Examples stream = Rows(kRows, 1);
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
    int64_t before = (*kernel)->calls();
    const grpc::Status built = BuildServed(mapping);
    ASSERT_TRUE(built.ok()) << built.error_message();
    EXPECT_EQ((*kernel)->calls() - before, blocks);
    const bool strings = GetParam() == v1::Examples::kText || GetParam() == v1::Examples::kBytes;
    EXPECT_EQ(version_.input_columns(), strings ? 0 : kColumns);
    ASSERT_TRUE(BuildOf("built-in", mapping, kBuiltIn, stream).ok());
    v1::TransformRequest request;
    request.set_reference("served");
    *request.mutable_examples() = InForm(GetParam(), Rows(7, 9));
    v1::TransformResponse served;
    before = (*kernel)->calls();
    const grpc::Status mapped = Transform(request, &served);
    ASSERT_TRUE(mapped.ok()) << mapped.error_message();
    EXPECT_EQ((*kernel)->calls() - before, 1);
    request.set_reference("built-in");
    *request.mutable_examples() = Rows(7, 9);
    v1::TransformResponse built_in;
    ASSERT_TRUE(Transform(request, &built_in).ok());
    const std::vector<double> a = NumbersOf(served.features());
    const std::vector<double> b = NumbersOf(built_in.features());
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-6);
  }
  EXPECT_FALSE(other_kind);
  // If the service has forgotten the landmarks, phimapd sends them again.
  (*kernel)->Forget();
  int64_t before = (*kernel)->calls();
  const grpc::Status again = AskServed();
  ASSERT_TRUE(again.ok()) << again.error_message();
  EXPECT_EQ((*kernel)->calls() - before, 2);
  // After a restart, phimapd sends the landmarks with its first call.
  Restart();
  before = (*kernel)->calls();
  ASSERT_TRUE(AskServed().ok());
  EXPECT_EQ((*kernel)->calls() - before, 1);
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
    const grpc::Status status = Ask("served", InForm(kind, Rows(7, 9)), &response);
    if (takes(GetParam(), kind)) {
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(response.features().SerializeAsString(), own.features().SerializeAsString());
    } else {
      EXPECT_EQ(status.error_code(), Code::INVALID_ARGUMENT);
      EXPECT_EQ(FactsOf(status).reason, "EXAMPLE_KIND_MISMATCH");
    }
  }
}

TEST_P(KernelServiceKindsTest, ALieHasItsErrorInTransformAndBuild) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildServed().ok());
  const struct {
    const char* what;
    const char* reason;
    std::function<grpc::Status(v1::ComputeBlockResponse&)> tell;
  } kLies[] = {
      {"another number of rows", "KERNEL_SERVICE_ANSWER_INVALID",
       [](v1::ComputeBlockResponse& r) {
         r.mutable_block()->set_rows(r.block().rows() + 1);
         return grpc::Status::OK;
       }},
      {"fewer bytes than it says", "KERNEL_SERVICE_ANSWER_INVALID",
       [](v1::ComputeBlockResponse& r) {
         r.mutable_block()->mutable_float64_le()->pop_back();
         return grpc::Status::OK;
       }},
      {"NaN", "KERNEL_SERVICE_ANSWER_INVALID",
       [](v1::ComputeBlockResponse& r) {
         const double nan = std::numeric_limits<double>::quiet_NaN();
         std::memcpy(r.mutable_block()->mutable_float64_le()->data(), &nan, sizeof(nan));
         return grpc::Status::OK;
       }},
      {"an error", "KERNEL_SERVICE_FAILED",
       [](v1::ComputeBlockResponse&) { return grpc::Status(Code::INTERNAL, "it broke"); }},
  };
  for (const auto& lie : kLies) {
    SCOPED_TRACE(lie.what);
    kernel.Say([&lie](const v1::ComputeBlockRequest&, v1::ComputeBlockResponse& response) {
      return lie.tell(response);
    });
    for (const bool building : {false, true}) {
      const grpc::Status status = building ? BuildServed() : AskServed();
      EXPECT_EQ(status.error_code(), Code::FAILED_PRECONDITION);
      EXPECT_EQ(FactsOf(status).reason, lie.reason) << status.error_message();
    }
    kernel.Say(nullptr);
    EXPECT_TRUE(AskServed().ok());
  }
}

// A service that does not answer has not seen the kind of the examples, so one kind is enough.
class KernelServiceAwayTest : public KernelServiceKindsTest {};
INSTANTIATE_TEST_SUITE_P(Dense, KernelServiceAwayTest, ::testing::Values(v1::Examples::kDense));

TEST_P(KernelServiceAwayTest, AServiceThatHangsIsGoneOrNotListedIsItsOwnError) {
  options_.kernel_service_seconds = 1;
  ScriptedKernel kernel;
  StartWith(kernel.address());
  ASSERT_TRUE(BuildServed().ok());
  const grpc::Status unlisted = BuildServed("f2(landmarks=10)", "service(endpoint=elsewhere)");
  EXPECT_EQ(FactsOf(unlisted).reason, "KERNEL_SERVICE_NOT_LISTED") << unlisted.error_message();
  kernel.Say([this](const v1::ComputeBlockRequest&, v1::ComputeBlockResponse&) {
    hang_.Wait();
    return grpc::Status::OK;
  });
  for (const bool building : {false, true}) {
    const grpc::Status hung = building ? BuildServed() : AskServed();
    EXPECT_EQ(hung.error_code(), Code::UNAVAILABLE);
    EXPECT_EQ(FactsOf(hung).reason, "KERNEL_SERVICE_TIMED_OUT") << hung.error_message();
  }
  hang_.Open();
  kernel.Say(nullptr);
  kernel.Stop();
  for (const bool building : {false, true}) {
    const grpc::Status gone = building ? BuildServed() : AskServed();
    EXPECT_EQ(gone.error_code(), Code::UNAVAILABLE);
    EXPECT_EQ(FactsOf(gone).reason, "KERNEL_SERVICE_UNAVAILABLE") << gone.error_message();
  }
}

TEST_P(KernelServiceKindsTest, EvaluateLearnsWhatItWouldOfTheBuiltInKernel) {
  ScriptedKernel kernel;
  StartWith(kernel.address());
  const std::string f2 = "f2(landmarks=10, serving_type=float64)";
  ASSERT_TRUE(BuildServed(f2).ok());
  ASSERT_TRUE(BuildOf("built-in", f2, kBuiltIn, Rows(kRows, 1)).ok());
  const v1::Examples rows = Rows(100, 4);
  const int before = kernel.calls();
  v1::Evaluation served;
  const grpc::Status asked = Evaluate("served", rows, InForm(GetParam(), rows), &served);
  ASSERT_TRUE(asked.ok()) << asked.error_message();
  EXPECT_EQ(kernel.calls() - before, 2);
  v1::Evaluation built_in;
  ASSERT_TRUE(Evaluate("built-in", rows, rows, &built_in).ok());
  ASSERT_EQ(served.classes_size(), 2);
  EXPECT_EQ(served.error(), built_in.error());
  EXPECT_LT(served.error(), 0.4);

  const grpc::Status on_kernel =
      Evaluate("served", rows, InForm(GetParam(), rows), &served, "kernel_svm(C=1)");
  EXPECT_EQ(on_kernel.error_code(), Code::FAILED_PRECONDITION);
  EXPECT_EQ(FactsOf(on_kernel).reason, "KERNEL_NOT_AVAILABLE") << on_kernel.error_message();

  kernel.Say([](const v1::ComputeBlockRequest&, v1::ComputeBlockResponse& r) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::memcpy(r.mutable_block()->mutable_float64_le()->data(), &nan, sizeof(nan));
    return grpc::Status::OK;
  });
  const grpc::Status lied = Evaluate("served", rows, InForm(GetParam(), rows), &served);
  EXPECT_EQ(lied.error_code(), Code::FAILED_PRECONDITION);
  EXPECT_EQ(FactsOf(lied).reason, "KERNEL_SERVICE_ANSWER_INVALID") << lied.error_message();
  kernel.Stop();
  const grpc::Status gone = Evaluate("served", rows, InForm(GetParam(), rows), &served);
  EXPECT_EQ(gone.error_code(), Code::UNAVAILABLE);
  EXPECT_EQ(FactsOf(gone).reason, "KERNEL_SERVICE_UNAVAILABLE") << gone.error_message();
}

}  // namespace
}  // namespace phimap::testing
