// Tests service(), where the kernel values come from a local source in place of a remote service.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/mapping/build/remote_values.h"
#include "core/plan/artifact.h"
#include "core/plan/example_block.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/core/mapping/remote_rows.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"
#include "tests/support/sparse_rows.h"

namespace phimap::testing {
namespace {

// Returns rows of five digits each.
Matrix<double> Digits(int64_t rows, uint64_t seed) {
  Matrix<double> digits = UniformRows({.rows = rows, .cols = kStreamColumns, .seed = seed});
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

// Returns the numbers that a service reads from examples of any kind. The numbers of a word are its
// digits.
Matrix<double> NumbersOf(const ExamplesView& examples) {
  Matrix<double> numbers = Matrix<double>::Uninit(examples.rows(), kStreamColumns);
  for (int64_t i = 0; i < numbers.rows(); ++i) {
    if (examples.strings() == nullptr) {
      examples.CopyRow(i, numbers.row(i));
      continue;
    }
    for (int64_t j = 0; j < kStreamColumns; ++j) {
      numbers(i, j) = (*examples.strings())[i][static_cast<size_t>(j)] - '0';
    }
  }
  return numbers;
}

// Computes the kernel in place of a service, and counts calls and values.
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
        diagonal[i] = self_factor *
                      static_cast<double>(NaiveKernel(kernel.root(), x.row(i), x.row(i), x.cols()));
    }
    return absl::OkStatus();
  }
  double unit() const override { return 0x1p-53; }

  int64_t calls = 0;
  std::set<ExampleKind> kinds;
  int64_t values = 0;
  int64_t largest_call = 0;
  int64_t fails_at = -1;
  // Factor by which the K(x, x) returned as the diagonal are multiplied.
  double self_factor = 1;
};

Matrix<double> LandmarksOf(const RemoteFeatures& block) {
  ExampleBlock examples(KindOf(block.kind), block.of_strings() ? 0 : kStreamColumns);
  for (const std::string& example : block.examples) examples.AddBytes(example);
  return NumbersOf(examples.view());
}

TEST(ServiceKernelTest, PlanHoldsTheLandmarksAndTheNameOfTheService) {
  const Matrix<double> stream = StreamRows();
  const Matrix<double> x = StreamRows(40, 8);
  std::vector<Named> mappings(std::begin(kFamilies), std::end(kFamilies));
  mappings.push_back(kRounded);
  for (const Named& c : mappings) {
    SCOPED_TRACE(c.name);
    LocalSource source;
    const BuildSpec spec = SpecOf(c.mapping, kService);
    const BuiltVersion version = Build(spec, WireRows(stream), 0, &source).value();
    EXPECT_EQ(version.input_columns, kStreamColumns);
    EXPECT_TRUE(version.certificate.landmark_rows.empty());
    const Artifact artifact = DecodeArtifact(version.bytes).value();
    const auto& block = std::get<RemoteFeatures>(std::get<1>(artifact.plan.stages).features);
    EXPECT_EQ(block.endpoint, "here");
    EXPECT_EQ(block.kernel, "rbf");
    // Both builds draw the same landmarks from equal streams, so their features are equal up to
    // round-off.
    const Matrix<double> features =
        FeaturesFrom(version, NaiveKernelMatrix(MustParseKernel(kRbf), x, LandmarksOf(block)));
    const BuiltVersion built_in = MustBuild(SpecOf(c.mapping, kRbf), stream);
    EXPECT_LE(LargestDifference(features, FeaturesFrom(built_in, x)), 1e-9);
    EXPECT_EQ(static_cast<double>(source.values), CountRemoteValues(spec.mapping, 24, 30));
    EXPECT_LE(source.largest_call, kValuesOfCall);
  }
}

// Streams the same rows in each form of examples. The service gets the examples in that form, and
// the features are those of the built-in kernel on the numbers.
TEST(ServiceKernelTest, ExamplesOfEveryKindGiveTheFeaturesOfTheBuiltInKernel) {
  const Matrix<double> stream = Thinned(Digits(kStreamRows, 1), 2);
  const Matrix<double> x = Digits(40, 8);
  const auto sparse = SparseOf(stream);
  const std::vector<std::string> words = WordsOf(stream);
  std::vector<const std::string*> pointers;
  for (const std::string& word : words) pointers.push_back(&word);
  const int64_t word_bytes = kStreamRows * kStreamColumns;
  const struct {
    ExamplesView stream;
    ExampleKind kind;
    int64_t columns;
  } kForms[] = {
      {WireRows(stream), ExampleKind::kDense, kStreamColumns},
      {sparse.view(), ExampleKind::kSparse, kStreamColumns},
      {StringsView{ExampleKind::kText, pointers.data(), kStreamRows, word_bytes},
       ExampleKind::kText, 0},
      {StringsView{ExampleKind::kBytes, pointers.data(), kStreamRows, word_bytes},
       ExampleKind::kBytes, 0},
  };
  std::vector<Named> mappings(std::begin(kFamilies), std::end(kFamilies));
  mappings.push_back(kRounded);
  mappings.push_back({"given", "f2(landmarks=24, policy=given, serving_type=float64)"});
  for (const Named& c : mappings) {
    SCOPED_TRACE(c.name);
    const BuiltVersion built_in = MustBuild(SpecOf(c.mapping, kRbf), stream);
    for (const auto& form : kForms) {
      SCOPED_TRACE(std::string(ExampleKindName(form.kind)));
      LocalSource source;
      const BuiltVersion version =
          Build(SpecOf(c.mapping, kService), form.stream, 7, &source).value();
      EXPECT_EQ(source.kinds, std::set<ExampleKind>{form.kind});
      EXPECT_EQ(version.input_columns, form.columns);
      const Artifact artifact = DecodeArtifact(version.bytes).value();
      const auto& block = std::get<RemoteFeatures>(std::get<1>(artifact.plan.stages).features);
      EXPECT_EQ(KindOf(block.kind), form.kind);
      const Matrix<double> features =
          FeaturesFrom(version, NaiveKernelMatrix(MustParseKernel(kRbf), x, LandmarksOf(block)));
      EXPECT_LE(LargestDifference(features, FeaturesFrom(built_in, x)), 1e-9);
      // Measurements do not depend on the form of the examples.
      EXPECT_EQ(version.certificate.held_out_rows, built_in.certificate.held_out_rows);
      EXPECT_LT(version.certificate.serving_error->max, 1e-12);
    }
  }
}

TEST(ServiceKernelTest, SelfValuesThatNoKernelHasAreRefusedButByF1) {
  for (const double factor : {-1.0, 0.5}) {
    for (const char* mapping : {"f2(landmarks=24)", "kpca(landmarks=24, dimensions=3)"}) {
      LocalSource source;
      source.self_factor = factor;
      const absl::Status status =
          Build(SpecOf(mapping, kService), WireRows(StreamRows()), 0, &source).status();
      EXPECT_EQ(ReasonOf(status), "KERNEL_NOT_POSITIVE_SEMIDEFINITE") << status;
    }
    LocalSource source;
    source.self_factor = factor;
    EXPECT_TRUE(
        Build(SpecOf("f1(landmarks=24)", kService), WireRows(StreamRows()), 0, &source).ok());
  }
}

TEST(ServiceKernelTest, ErrorsOfTheServiceAndOfTheMonitorEndTheBuild) {
  const Matrix<double> stream = StreamRows();
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
  StreamSample sample(spec, kStreamColumns);
  ASSERT_TRUE(sample.Add(WireRows(stream)).ok());
  RecordingMonitor monitor(/*stop_at=*/3);
  LocalSource source;
  EXPECT_EQ(BuildVersion(spec, std::move(sample), monitor, &source).status(),
            absl::CancelledError("stop"));
  EXPECT_EQ(monitor.phases.back(), "kernel");
}

}  // namespace
}  // namespace phimap::testing
