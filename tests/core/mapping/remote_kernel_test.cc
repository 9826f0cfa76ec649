// Remote kernels: the values come with the stream, or from a source that stands
// for a service.
#include "core/kernel/remote_kernel.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/certificate/artifact_review.h"
#include "core/mapping/build/build_cost.h"
#include "core/mapping/build/remote_values.h"
#include "core/mapping/sample/gram_sample.h"
#include "core/plan/artifact.h"
#include "core/plan/example_block.h"
#include "core/plan/residual.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"
#include "tests/support/sparse_rows.h"

namespace phimap {
namespace {

using testing::Build;
using testing::FeaturesFrom;
using testing::MustBuild;
using testing::MustParseKernel;
using testing::NaiveKernelMatrix;
using testing::NormalRows;
using testing::RecordingMonitor;
using testing::SpecOf;
using testing::WireRows;

constexpr char kRbf[] = "rbf(gamma=0.2)";
constexpr char kService[] = "service(endpoint=here, kernel=rbf)";
constexpr int64_t kRows = 300;
constexpr int64_t kColumns = 5;

std::string ReasonOf(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail.has_value() ? detail->reason : status.ToString();
}

Matrix<double> Rows(int64_t rows = kRows, uint64_t seed = 1) {
  return NormalRows({.rows = rows, .cols = kColumns, .seed = seed});
}

Matrix<double> Gram(const Matrix<double>& x, const char* kernel = kRbf) {
  return NaiveKernelMatrix(MustParseKernel(kernel), x, x);
}

Matrix<double> Picked(const Matrix<double>& rows, const std::vector<int64_t>& which) {
  Matrix<double> picked = Matrix<double>::Uninit(static_cast<int64_t>(which.size()), rows.cols());
  for (size_t i = 0; i < which.size(); ++i) {
    std::copy_n(rows.row(which[i]), rows.cols(), picked.row(static_cast<int64_t>(i)));
  }
  return picked;
}

// K(x, ·) of the version's landmarks, in its order.
Matrix<double> ValuesFor(const BuiltVersion& version, const Matrix<double>& stream,
                         const Matrix<double>& x) {
  return NaiveKernelMatrix(MustParseKernel(kRbf), x,
                           Picked(stream, version.certificate.landmark_rows));
}

double LargestDifference(const Matrix<double>& a, const Matrix<double>& b) {
  EXPECT_EQ(a.rows(), b.rows());
  EXPECT_EQ(a.cols(), b.cols());
  double largest = 0;
  for (int64_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a.data()[i] - b.data()[i]));
  }
  return largest;
}

struct Named {
  const char* name;
  const char* mapping;
};
constexpr Named kMappings[] = {
    {"F1", "f1(landmarks=24, serving_type=float64)"},
    {"F2", "f2(landmarks=24, serving_type=float64)"},
    {"F3", "f3(landmarks=24, dimensions=12, serving_type=float64)"},
    {"KPCA", "kpca(landmarks=24, dimensions=6, serving_type=float64)"},
};
// Its landmarks without a weight are dropped.
constexpr Named kRounded = {
    "rounded KPCA",
    "kpca(landmarks=24, dimensions=4, centred=false, rounding=6, serving_type=float64)"};

// The built-in kernel on the version's landmarks in the version's order: pivots that were chosen
// greedily are chosen again, components have one sign, and what is drawn depends on the seed alone.
// A Gram matrix of 24 rows of an rbf in 5 columns has a condition number of about 1e4, by which
// last bits of kernel values can grow.
TEST(PrecomputedTest, FeaturesAreThoseOfTheKernelThatMadeTheGramMatrix) {
  const Matrix<double> stream = Rows();
  const Matrix<double> x = Rows(50, 9);
  for (const Named& c : kMappings) {
    SCOPED_TRACE(c.name);
    const BuiltVersion version = MustBuild(SpecOf(c.mapping, "precomputed()"), Gram(stream));
    const std::vector<int64_t>& landmarks = version.certificate.landmark_rows;
    EXPECT_EQ(version.input_columns, static_cast<int64_t>(landmarks.size()));
    EXPECT_EQ(version.provenance.kernel_text, "precomputed()");

    // Landmarks first, as given, then rows to measure on.
    Matrix<double> given =
        Matrix<double>::Uninit(static_cast<int64_t>(landmarks.size()) + kRows, kColumns);
    std::copy_n(Picked(stream, landmarks).data(), landmarks.size() * kColumns, given.data());
    std::copy_n(stream.data(), stream.size(), given.row(static_cast<int64_t>(landmarks.size())));
    std::string text = c.mapping;
    text.insert(text.find("serving"), "policy=given, ");
    BuildSpec spec = SpecOf(text, kRbf);
    spec.mapping.landmarks = static_cast<int64_t>(landmarks.size());
    const BuiltVersion same = MustBuild(spec, given);
    EXPECT_LE(LargestDifference(FeaturesFrom(version, ValuesFor(version, stream, x)),
                                FeaturesFrom(same, x)),
              1e-9);
  }
}

TEST(PrecomputedTest, CertificateIsThatOfTheKernel) {
  const Matrix<double> stream = Rows(600);
  const BuiltVersion version = MustBuild(SpecOf("f2(landmarks=60)", "precomputed()"), Gram(stream));
  const Certificate& certificate = version.certificate;
  EXPECT_EQ(certificate.stream_rows, 600);
  EXPECT_EQ(certificate.held_out_rows, 60);
  EXPECT_EQ(certificate.pool_rows, 540);
  EXPECT_EQ(certificate.rank, 60);
  EXPECT_EQ(certificate.landmark_rows.size(), 60u);
  // No pair is off by more than √(ρ(x)ρ(y)) <= 1, and of a span of 60 the mean is far below.
  ASSERT_TRUE(certificate.kernel_error.has_value());
  EXPECT_GT(certificate.kernel_error->max, certificate.kernel_error->mean);
  EXPECT_LE(certificate.kernel_error->max, 1);
  EXPECT_EQ(certificate.kernel_error->scale, 1);
  EXPECT_LT(certificate.kernel_error->mean, 0.05);
  ASSERT_TRUE(certificate.spectrum.has_value());
  EXPECT_EQ(certificate.spectrum->rows, kMaxRemoteSpectrumRows);
  EXPECT_NEAR(certificate.spectrum->trace, 1, 1e-12);
  EXPECT_GT(*certificate.held_out_trace_residual, 0);
  EXPECT_LT(*certificate.held_out_trace_residual, 1);
  EXPECT_LT(certificate.serving_error->max, 1e-3);
  ASSERT_TRUE(certificate.self_check.has_value());
  const absl::StatusOr<ReviewedArtifact> review = ReviewArtifact(version.bytes);
  ASSERT_TRUE(review.ok()) << review.status();
  EXPECT_EQ(review->certificate.landmark_rows, certificate.landmark_rows);
  EXPECT_NE(review->reference_vectors, ReferenceVectors::kAbsent);
}

// Five components span φ of a linear kernel: about its landmarks' mean nothing but rounding is
// left.
TEST(PrecomputedTest, CentredKernelPcaIsMeasuredAgainstTheCentredKernel) {
  Matrix<double> stream = Rows(600);
  for (int64_t i = 0; i < stream.size(); ++i) stream.data()[i] += 2;
  const Certificate certificate =
      MustBuild(SpecOf("kpca(landmarks=40, dimensions=5)", "precomputed()"),
                Gram(stream, "linear()"))
          .certificate;
  ASSERT_TRUE(certificate.kernel_error.has_value());
  EXPECT_LT(certificate.kernel_error->max, 1e-4);
  EXPECT_GT(certificate.kernel_error->scale, 5);
}

// rbf: K(x, x) = 1.
TEST(PrecomputedTest, ResidualIsWhatTheFeaturesLackOfTheLastColumn) {
  const Matrix<double> stream = Rows();
  const Matrix<double> x = Rows(20, 5);
  const BuiltVersion version = MustBuild(SpecOf("f2(landmarks=30)", "precomputed()"), Gram(stream));
  const absl::StatusOr<Artifact> artifact = DecodeArtifact(version.bytes);
  ASSERT_TRUE(artifact.ok());
  const std::optional<Residual> residual = Residual::Of(artifact->plan, artifact->provenance);
  ASSERT_TRUE(residual.has_value());
  EXPECT_TRUE(residual->is_remote());
  const Matrix<double> values = ValuesFor(version, stream, x);
  Matrix<double> rows = Matrix<double>::Uninit(x.rows(), values.cols() + 1);
  for (int64_t i = 0; i < x.rows(); ++i) {
    std::copy_n(values.row(i), values.cols(), rows.row(i));
    rows(i, values.cols()) = 1;
  }
  const Matrix<double> features = FeaturesFrom(version, values);
  const Matrix<float> served = Converted<float, double>(features.view());
  std::vector<double> rho(static_cast<size_t>(x.rows()));
  residual->Compute(WireRows(rows), served.data(), rho.data());
  // η at K(x, x) = 1, and what is added to ρ for it.
  const double eta = residual->FeatureError(nullptr, 0, 1);
  const double allowance = 4 * eta + 2 * eta * eta;
  EXPECT_GT(eta, 0);
  std::vector<double> self(rho.size());
  std::vector<double> rounding(rho.size());
  residual->Lengths(WireRows(rows), self.data(), rounding.data());
  EXPECT_EQ(self, std::vector<double>(rho.size(), 1.0));
  EXPECT_EQ(rounding, std::vector<double>(rho.size(), eta));
  for (int64_t i = 0; i < x.rows(); ++i) {
    double kept = 0;
    for (int64_t j = 0; j < features.cols(); ++j) kept += features(i, j) * features(i, j);
    EXPECT_NEAR(rho[i], std::max(0.0, 1 - kept) + allowance, 1e-12);
  }
  // Nothing is promised for a K(x, x) that the other values show to be wrong.
  for (const double self : {-1.0, 0.0, 1e-3}) {
    for (int64_t i = 0; i < x.rows(); ++i) rows(i, values.cols()) = self;
    residual->Compute(WireRows(rows), served.data(), rho.data());
    EXPECT_EQ(rho, std::vector<double>(rho.size(), std::numeric_limits<double>::infinity()));
  }
}

TEST(PrecomputedTest, TheSameStreamInOtherBlocksGivesTheSameBytes) {
  const Matrix<double> gram = Gram(Rows());
  const BuildSpec spec = SpecOf("f2(landmarks=30)", "precomputed()");
  const BuiltVersion version = MustBuild(spec, gram);
  for (const int64_t block : {1, 7, 299}) {
    const absl::StatusOr<BuiltVersion> again = Build(spec, WireRows(gram), block);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->bytes, version.bytes);
  }
  EXPECT_NE(MustBuild(SpecOf("f2(landmarks=30)", "precomputed()", false, 2), gram).bytes,
            version.bytes);
}

TEST(PrecomputedTest, GivenLandmarksAreTheFirstRows) {
  const BuiltVersion version =
      MustBuild(SpecOf("f1(landmarks=12, policy=given)", "precomputed()"), Gram(Rows()));
  std::vector<int64_t> first;
  for (int64_t i = 0; i < 12; ++i) first.push_back(i);
  EXPECT_EQ(version.certificate.landmark_rows, first);
}

// Values of a smooth kernel in float32 are a Gram matrix whose lowest eigenvalues are noise of
// either sign.
TEST(PrecomputedTest, ValuesInFloat32AreNotTakenForMoreThanTheyAre) {
  const Matrix<double> gram = Gram(Rows(400), "rbf(gamma=0.001)");
  const Matrix<float> rounded = Converted<float, double>(gram.view());
  for (const char* type : {"float32", "float64"}) {
    const BuildSpec spec =
        SpecOf(std::string("f2(landmarks=200, serving_type=") + type + ")", "precomputed()");
    const absl::StatusOr<BuiltVersion> version = Build(spec, WireRows(rounded));
    ASSERT_TRUE(version.ok()) << version.status();
    EXPECT_LT(*version->certificate.rank, 100);
    EXPECT_GE(*version->certificate.tolerance, 200 * 0x1p-24 * 0.99);
    EXPECT_LT(version->certificate.kernel_error->max, 1e-3);
  }
}

TEST(PrecomputedTest, AStreamThatIsNotSquareIsRefused) {
  const Matrix<double> gram = Gram(Rows());
  const BuildSpec spec = SpecOf("f2(landmarks=30)", "precomputed()");
  const absl::Status few = Build(spec, WireRows(gram).Slice(0, 299)).status();
  EXPECT_EQ(few.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(few), "MATRIX_NOT_SQUARE");
  EXPECT_EQ(DetailOf(few)->metadata.at("actual"), "299");
  Matrix<double> tall = Matrix<double>(kRows + 1, kRows);
  const absl::Status many = Build(spec, tall).status();
  EXPECT_EQ(many.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(many), "MATRIX_NOT_SQUARE");
}

TEST(PrecomputedTest, WhatIsNoKernelIsRefusedByF2AndNamedByF1) {
  struct Fault {
    const char* reason;
    std::function<void(Matrix<double>&)> apply;
  };
  const Fault kFaults[] = {
      {"KERNEL_NOT_SYMMETRIC",
       [](Matrix<double>& m) {
         for (int64_t i = 0; i < m.rows(); ++i) {
           for (int64_t j = 0; j < i; ++j) m(i, j) *= 1.001;
         }
       }},
      {"KERNEL_NOT_POSITIVE_SEMIDEFINITE",
       [](Matrix<double>& m) {
         for (int64_t i = 0; i < m.rows(); ++i) m(i, i) = 0.1;
       }},
  };
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.reason);
    Matrix<double> gram = Gram(Rows());
    fault.apply(gram);
    for (const char* mapping : {"f2(landmarks=30)", "f3(landmarks=30, dimensions=9)",
                                "kpca(landmarks=30, dimensions=3)"}) {
      const absl::Status status = Build(SpecOf(mapping, "precomputed()"), gram).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(ReasonOf(status), fault.reason);
    }
    const BuiltVersion similarity = MustBuild(SpecOf("f1(landmarks=30)", "precomputed()"), gram);
    ASSERT_EQ(similarity.certificate.warnings.size(), 1u);
    EXPECT_NE(similarity.certificate.warnings[0].find("It is a similarity"), std::string::npos);
    EXPECT_EQ(similarity.certificate.theorem.substr(0, 5), "none:");
  }
}

// Rows of five digits, and the words that they make.
Matrix<double> Digits(int64_t rows, uint64_t seed) {
  Matrix<double> digits = testing::UniformRows({.rows = rows, .cols = kColumns, .seed = seed});
  for (int64_t k = 0; k < digits.size(); ++k) {
    digits.data()[k] = std::floor(10 * std::abs(digits.data()[k]));
  }
  return digits;
}
std::vector<std::string> WordsOf(const Matrix<double>& digits) {
  std::vector<std::string> words;
  for (int64_t i = 0; i < digits.rows(); ++i) {
    std::string& word = words.emplace_back();
    for (int64_t j = 0; j < digits.cols(); ++j) {
      word.push_back(static_cast<char>('0' + digits(i, j)));
    }
  }
  return words;
}

// The numbers that a service reads from examples of any kind; from a word its digits.
Matrix<double> NumbersOf(const ExamplesView& examples) {
  Matrix<double> numbers = Matrix<double>::Uninit(examples.rows(), kColumns);
  for (int64_t i = 0; i < numbers.rows(); ++i) {
    if (examples.strings() == nullptr) {
      examples.CopyRow(i, numbers.row(i));
      continue;
    }
    for (int64_t j = 0; j < kColumns; ++j) {
      numbers(i, j) = (*examples.strings())[i][static_cast<size_t>(j)] - '0';
    }
  }
  return numbers;
}

// Computes the kernel where a service would, and keeps count.
class LocalSource final : public KernelSource {
 public:
  absl::Status Block(const ExamplesView& left, const ExamplesView& right, MatrixView<double> out,
                     double* diagonal, Alive alive) override {
    ++calls;
    kinds.insert(left.kind());
    kinds.insert(right.kind());
    values += left.rows() * right.rows();
    largest_call = std::max(largest_call, left.rows() * right.rows());
    if (absl::Status status = alive(); !status.ok()) return status;
    if (calls == fails_at) return absl::UnavailableError("the service is gone");
    const KernelExpression kernel = MustParseKernel(kRbf);
    const Matrix<double> x = NumbersOf(left);
    const Matrix<double> block = NaiveKernelMatrix(kernel, x, NumbersOf(right));
    for (int64_t i = 0; i < block.rows(); ++i) {
      std::copy_n(block.row(i), block.cols(), out.row(i));
      if (diagonal != nullptr)
        diagonal[i] = self_factor * NaiveKernel(kernel.root(), x.row(i), x.row(i), x.cols());
    }
    return absl::OkStatus();
  }
  double unit() const override { return 0x1p-53; }

  int64_t calls = 0;
  std::set<ExampleKind> kinds;
  int64_t values = 0;
  int64_t largest_call = 0;
  int64_t fails_at = -1;
  // Factor of K(x, x) where it is asked for by itself.
  double self_factor = 1;

 private:
  static double NaiveKernel(const KernelNode& node, const double* x, const double* y,
                            int64_t cols) {
    return static_cast<double>(testing::NaiveKernel(node, x, y, cols));
  }
};

Matrix<double> LandmarksOf(const RemoteFeatures& block) {
  ExampleBlock examples(KindOf(block.kind), block.of_strings() ? 0 : kColumns);
  for (const std::string& example : block.examples) examples.AddBytes(example);
  return NumbersOf(examples.view());
}

TEST(ServiceKernelTest, PlanHoldsTheLandmarksAndTheNameOfTheService) {
  const Matrix<double> stream = Rows();
  const Matrix<double> x = Rows(40, 8);
  std::vector<Named> mappings(std::begin(kMappings), std::end(kMappings));
  mappings.push_back(kRounded);
  for (const Named& c : mappings) {
    SCOPED_TRACE(c.name);
    LocalSource source;
    const BuildSpec spec = SpecOf(c.mapping, kService);
    const absl::StatusOr<BuiltVersion> version = Build(spec, WireRows(stream), 0, &source);
    ASSERT_TRUE(version.ok()) << version.status();
    EXPECT_EQ(version->input_columns, kColumns);
    EXPECT_TRUE(version->certificate.landmark_rows.empty());
    const absl::StatusOr<Artifact> artifact = DecodeArtifact(version->bytes);
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    const auto& block = std::get<RemoteFeatures>(std::get<1>(artifact->plan.stages).features);
    EXPECT_EQ(block.endpoint, "here");
    EXPECT_EQ(block.kernel, "rbf");
    // Equal landmarks, drawn from equal streams, give equal features but for round-off.
    const Matrix<double> features =
        FeaturesFrom(*version, NaiveKernelMatrix(MustParseKernel(kRbf), x, LandmarksOf(block)));
    const BuiltVersion built_in = MustBuild(SpecOf(c.mapping, kRbf), stream);
    EXPECT_LE(LargestDifference(features, FeaturesFrom(built_in, x)), 1e-9);
    EXPECT_EQ(static_cast<double>(source.values), CountRemoteValues(spec.mapping, 24, 30, 256));
    EXPECT_LE(source.largest_call, kValuesOfCall);
  }
}

// One stream in each form: the service is asked about what came, and the features are those of the
// built-in kernel on the numbers.
TEST(ServiceKernelTest, ExamplesOfEveryKindGiveTheFeaturesOfTheBuiltInKernel) {
  const Matrix<double> stream = testing::Thinned(Digits(kRows, 1), 2);
  const Matrix<double> x = Digits(40, 8);
  const auto sparse = testing::SparseOf(stream);
  const std::vector<std::string> words = WordsOf(stream);
  std::vector<const std::string*> pointers;
  for (const std::string& word : words) pointers.push_back(&word);
  const int64_t word_bytes = kRows * kColumns;
  const struct {
    ExamplesView stream;
    ExampleKind kind;
    int64_t columns;
  } kForms[] = {
      {WireRows(stream), ExampleKind::kDense, kColumns},
      {sparse.view(), ExampleKind::kSparse, kColumns},
      {StringsView{ExampleKind::kText, pointers.data(), kRows, word_bytes}, ExampleKind::kText, 0},
      {StringsView{ExampleKind::kBytes, pointers.data(), kRows, word_bytes}, ExampleKind::kBytes,
       0},
  };
  std::vector<Named> mappings(std::begin(kMappings), std::end(kMappings));
  mappings.push_back(kRounded);
  mappings.push_back({"given", "f2(landmarks=24, policy=given, serving_type=float64)"});
  for (const Named& c : mappings) {
    SCOPED_TRACE(c.name);
    const BuiltVersion built_in = MustBuild(SpecOf(c.mapping, kRbf), stream);
    for (const auto& form : kForms) {
      SCOPED_TRACE(std::string(ExampleKindName(form.kind)));
      LocalSource source;
      const absl::StatusOr<BuiltVersion> version =
          Build(SpecOf(c.mapping, kService), form.stream, 7, &source);
      ASSERT_TRUE(version.ok()) << version.status();
      EXPECT_EQ(source.kinds, std::set<ExampleKind>{form.kind});
      EXPECT_EQ(version->input_columns, form.columns);
      const absl::StatusOr<Artifact> artifact = DecodeArtifact(version->bytes);
      ASSERT_TRUE(artifact.ok()) << artifact.status();
      const auto& block = std::get<RemoteFeatures>(std::get<1>(artifact->plan.stages).features);
      EXPECT_EQ(KindOf(block.kind), form.kind);
      const Matrix<double> features =
          FeaturesFrom(*version, NaiveKernelMatrix(MustParseKernel(kRbf), x, LandmarksOf(block)));
      EXPECT_LE(LargestDifference(features, FeaturesFrom(built_in, x)), 1e-9);
      // Measurements do not depend on the form.
      EXPECT_EQ(version->certificate.held_out_rows, built_in.certificate.held_out_rows);
      EXPECT_LT(version->certificate.serving_error->max, 1e-12);
    }
  }
}

TEST(ServiceKernelTest, SelfValuesThatNoKernelHasAreRefusedButByF1) {
  for (const double factor : {-1.0, 0.5}) {
    for (const char* mapping : {"f2(landmarks=24)", "kpca(landmarks=24, dimensions=3)"}) {
      LocalSource source;
      source.self_factor = factor;
      const absl::Status status =
          Build(SpecOf(mapping, kService), WireRows(Rows()), 0, &source).status();
      EXPECT_EQ(ReasonOf(status), "KERNEL_NOT_POSITIVE_SEMIDEFINITE") << status;
    }
    LocalSource source;
    source.self_factor = factor;
    EXPECT_TRUE(Build(SpecOf("f1(landmarks=24)", kService), WireRows(Rows()), 0, &source).ok());
  }
}

TEST(ServiceKernelTest, ErrorsOfTheServiceAndOfTheMonitorEndTheBuild) {
  const Matrix<double> stream = Rows();
  const BuildSpec spec = SpecOf("f2(landmarks=24)", kService);
  LocalSource counted;
  ASSERT_TRUE(Build(spec, WireRows(stream), 0, &counted).ok());
  for (int64_t call = 1; call <= counted.calls; ++call) {
    LocalSource source;
    source.fails_at = call;
    EXPECT_EQ(Build(spec, WireRows(stream), 0, &source).status(),
              absl::UnavailableError("the service is gone"));
    EXPECT_EQ(source.calls, call);
  }
  StreamSample sample(spec, kColumns);
  ASSERT_TRUE(sample.Add(WireRows(stream)).ok());
  RecordingMonitor monitor(/*stop_at=*/3);
  LocalSource source;
  EXPECT_EQ(BuildVersion(spec, std::move(sample), monitor, &source).status(),
            absl::CancelledError("stop"));
  EXPECT_EQ(monitor.phases.back(), "kernel");
}

TEST(RemoteKernelTest, TextHasOneForm) {
  const std::pair<const char*, const char*> kTexts[] = {
      {"precomputed()", "precomputed()"},
      {" service( endpoint = edit )", "service(endpoint=edit, kernel=edit)"},
      {"service(kernel=words, endpoint=edit)", "service(endpoint=edit, kernel=words)"},
  };
  for (const auto& [text, canonical] : kTexts) {
    const auto parsed = RemoteKernel::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_TRUE(parsed->has_value()) << text;
    EXPECT_EQ((*parsed)->ToText(), canonical);
  }
  for (const char* text : {"rbf(gamma=1)", "", "0.5*precomputed()", "(service(endpoint=a))"}) {
    const auto parsed = RemoteKernel::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_FALSE(parsed->has_value()) << text;
  }
  for (const char* text : {"precomputed(", "precomputed(n=1)", "precomputed() + rbf()", "service()",
                           "service(endpoint=1)", "service(endpoint=a, kernel=2)",
                           "service(endpoint=a, host=b)", "service(endpoint=a)*2"}) {
    EXPECT_EQ(ReasonOf(RemoteKernel::Parse(text).status()), "EXPRESSION_INVALID") << text;
  }
  for (const char* text : {"rbf() + precomputed()", "2*service(endpoint=a)"}) {
    const absl::Status status = KernelExpression::Parse(text).status();
    EXPECT_NE(status.message().find("cannot be part of an expression"), std::string::npos)
        << status;
  }
}

TEST(RemoteKernelTest, SpecsThatAskForMoreThanTheValuesAreRefused) {
  const std::pair<const char*, const char*> kSpecs[] = {
      {"fourier(dimensions=8)", "kernel"},
      {"random_projection(dimensions=8)", "kernel"},
      {"f2(landmarks=8, policy=rpcholesky)", "spec.policy"},
      {"f2(landmarks=8, input_dimensions=2)", "spec.input_dimensions"},
      {"kpca(landmarks=8, dimensions=2, sparsify=2)", "spec.sparsify"},
      {"kpca(landmarks=8, dimensions=2, quantise=true)", "spec.quantise"},
  };
  for (const char* kernel : {"precomputed()", kService}) {
    for (const auto& [mapping, field] : kSpecs) {
      const absl::Status status = SpecOf(mapping, kernel).Validate();
      EXPECT_EQ(ReasonOf(status), "KERNEL_NOT_APPLICABLE") << mapping;
      EXPECT_EQ(DetailOf(status)->field, field);
    }
    EXPECT_EQ(DetailOf(SpecOf("f2(landmarks=8)", kernel, /*standardize=*/true).Validate())->field,
              "standardize");
    EXPECT_TRUE(SpecOf("kpca(landmarks=8, dimensions=2, rounding=5)", kernel).Validate().ok());
  }
}

// Memory in use does not grow with the stream.
TEST(RemoteKernelTest, MemoryOfAGramMatrixIsBounded) {
  const BuildSpec spec = SpecOf("f2(landmarks=100)", "precomputed()");
  const int64_t kept = 100 + kMaxRemoteHeldOutRows + kMaxRemoteSpectrumRows;
  EXPECT_LE(StreamSample(spec, kMaxColumns).memory_bound_bytes(), 8 * kept * kept);
  EXPECT_LE(StreamSample(spec, kMaxColumns).memory_bound_bytes(),
            CostOfBuild(spec, kMaxColumns, kMaxColumns).sample_bytes);
}

// The sample, and as many bytes again for what the service is asked about.
TEST(RemoteKernelTest, MemoryOfStringsIsReservedOnceTheyAreKnownToBeStrings) {
  const BuildSpec spec = SpecOf("f2(landmarks=24)", kService);
  for (const ExampleKind kind : {ExampleKind::kText, ExampleKind::kBytes}) {
    EXPECT_GE(ReservedBytes(spec, kind, 1, 1),
              StreamSample(spec, 1, kind).memory_bound_bytes() + kMaxSampledStringBytes);
  }
  for (const ExampleKind kind : {ExampleKind::kDense, ExampleKind::kSparse}) {
    EXPECT_EQ(ReservedBytes(spec, kind, 5, 1), ReservedBytes(spec, 5));
  }
}

}  // namespace
}  // namespace phimap
