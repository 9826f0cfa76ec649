// Tests that artifacts of released builds still give the features that those builds served, bit for
// bit.
//
// released/NAME.phimap was written by phimap 0.1.0. NAME.npy contains what that server answered:
// the features and, for F2, the residual as the last column. The server got the rows of rows.csv.
// For f2-text it got the lines of rows.txt, and for f2-precomputed the kernel values in
// f2-precomputed-rows.csv. A release that changes artifacts adds a new folder and changes no file
// here.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/engine/engine.h"
#include "core/plan/artifact.h"
#include "core/plan/residual.h"
#include "gtest/gtest.h"
#include "tests/support/source_dir.h"

namespace phimap::testing {
namespace {

std::string ReleasedFile(const std::string& name) {
  std::ifstream file(SourcePath("tests/core/plan/released/" + std::string(name)), std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// Returns the numbers of an npy file, widened to float64 from the type that its header states.
std::vector<double> ReleasedNumbers(const std::string& name) {
  const std::string bytes = ReleasedFile(name);
  const size_t begin =
      10 + static_cast<unsigned char>(bytes.at(8)) + 256 * static_cast<unsigned char>(bytes.at(9));
  const bool wide = bytes.substr(0, begin).find("<f8") != std::string::npos;
  std::vector<double> numbers((bytes.size() - begin) / (wide ? 8 : 4));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (wide) {
      std::memcpy(&numbers[i], &bytes[begin + 8 * i], 8);
    } else {
      float narrow;
      std::memcpy(&narrow, &bytes[begin + 4 * i], 4);
      numbers[i] = narrow;
    }
  }
  return numbers;
}

// Returns the numbers in the lines of a CSV file after its header.
Matrix<double> ReleasedRows(const std::string& name) {
  std::istringstream lines(ReleasedFile(name));
  std::string line;
  std::getline(lines, line);
  const int64_t columns = std::count(line.begin(), line.end(), ',') + 1;
  std::vector<double> numbers;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) numbers.push_back(std::stod(field));
  }
  Matrix<double> rows(static_cast<int64_t>(numbers.size()) / columns, columns);
  std::copy(numbers.begin(), numbers.end(), rows.data());
  return rows;
}

// Returns the features of each example, followed by the bound on its residual, which is the
// residual and its allowance together, if the artifact has one. Releases served this sum. All are
// rounded to float32 if the artifact serves float32.
template <typename T>
std::vector<double> Answered(const Artifact& artifact, const ExamplesView& examples) {
  const auto engine = Engine::Load(artifact.plan).value();
  const int64_t columns = engine->output_columns();
  std::vector<T> features(static_cast<size_t>(examples.rows() * columns));
  TransformPart part{.rows = examples, .features = features.data(), .status = absl::OkStatus()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_TRUE(part.status.ok()) << part.status;
  const std::optional<Residual> residual = Residual::Of(artifact.plan, artifact.provenance);
  std::vector<double> rho(static_cast<size_t>(examples.rows()));
  std::vector<double> allowances(rho.size());
  if (residual.has_value()) {
    residual->Compute(examples, features.data(), rho.data(), allowances.data());
    for (size_t i = 0; i < rho.size(); ++i) rho[i] += allowances[i];
  }
  std::vector<double> answer;
  for (int64_t i = 0; i < examples.rows(); ++i) {
    for (int64_t j = 0; j < columns; ++j) answer.push_back(features[i * columns + j]);
    if (!residual.has_value()) continue;
    // The residual is a bound, so it is rounded up to the type of the features.
    auto bound = static_cast<T>(rho[i]);
    if (bound < rho[i]) bound = std::nextafter(bound, std::numeric_limits<T>::infinity());
    answer.push_back(bound);
  }
  return answer;
}

std::vector<double> AnsweredBy(const Artifact& artifact, const ExamplesView& examples) {
  return artifact.plan.serving_type() == FloatType::kFloat32 ? Answered<float>(artifact, examples)
                                                             : Answered<double>(artifact, examples);
}

TEST(ReleasedArtifactsTest, HaveTheBitsThatTheirReleaseServed) {
  const Matrix<double> rows = ReleasedRows("rows.csv");
  const Matrix<double> values = ReleasedRows("f2-precomputed-rows.csv");
  std::vector<std::string> texts;
  std::istringstream lines(ReleasedFile("rows.txt"));
  for (std::string line; std::getline(lines, line);) texts.push_back(line);
  std::vector<const std::string*> named;
  int64_t bytes = 0;
  for (const std::string& text : texts) {
    named.push_back(&text);
    bytes += static_cast<int64_t>(text.size());
  }
  const auto view = [](const Matrix<double>& m) {
    return RowsView{.data = reinterpret_cast<const char*>(m.data()),
                    .type = FloatType::kFloat64,
                    .rows = m.rows(),
                    .columns = m.cols()};
  };
  for (const std::string name :
       {"f1", "f2-rbf", "f2-rbf-float64", "f2-poly", "f2-linear", "f2-composed", "f2-bilinear",
        "f2-weighted", "f2-text", "f2-precomputed", "f3", "projection", "fourier", "kpca",
        "kpca-rounded", "multiclass", "polynomial"}) {
    SCOPED_TRACE(name);
    const std::string stored = ReleasedFile(name + ".phimap");
    const Artifact artifact = DecodeArtifact(stored).value();
    EXPECT_EQ(*EncodeArtifact(artifact), stored);
    ExamplesView examples = view(rows);
    if (name == "f2-text") {
      examples =
          StringsView{ExampleKind::kText, named.data(), static_cast<int64_t>(named.size()), bytes};
    } else if (name == "f2-precomputed") {
      examples = view(values);
    }
    const std::vector<double> served = ReleasedNumbers(name + ".npy");
    const std::vector<double> answered = AnsweredBy(artifact, examples);
    ASSERT_EQ(answered.size(), served.size());
    const bool has_residual = Residual::Of(artifact.plan, artifact.provenance).has_value();
    const size_t columns = served.size() / static_cast<size_t>(examples.rows());
    // The release rounded the sum of residual and allowance once more, or once less.
    const double rounding = artifact.plan.serving_type() == FloatType::kFloat32 ? 0x1p-22 : 0x1p-50;
    for (size_t i = 0; i < served.size(); ++i) {
      if (has_residual && (i + 1) % columns == 0) {
        ASSERT_NEAR(answered[i], served[i], rounding * served[i]) << i;
      } else {
        ASSERT_EQ(answered[i], served[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace phimap::testing
