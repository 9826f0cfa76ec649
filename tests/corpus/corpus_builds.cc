#include "tests/corpus/corpus_builds.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/kernel/remote_kernel.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "tests/support/random_rows.h"
#include "tests/support/sparse_rows.h"

namespace phimap::testing {
namespace {

// All products and sums here are exact, so the result does not depend on the order of additions.
Matrix<double> ProductsOf(ConstMatrixView<double> x, ConstMatrixView<double> y) {
  Matrix<double> products(x.rows(), y.rows());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < y.rows(); ++j) {
      for (int64_t k = 0; k < x.cols(); ++k) products(i, j) += x.row(i)[k] * y.row(j)[k];
    }
  }
  return products;
}

// Returns the number of occurrences of each byte in a string, or the row itself if examples are
// rows.
Matrix<double> VectorsOf(const ExamplesView& examples) {
  const StringsView* strings = examples.strings();
  Matrix<double> vectors(examples.rows(), strings == nullptr ? examples.columns() : 256);
  for (int64_t i = 0; i < examples.rows(); ++i) {
    if (strings == nullptr) {
      examples.CopyRow(i, vectors.row(i));
    } else {
      for (const char byte : (*strings)[i]) ++vectors(i, static_cast<unsigned char>(byte));
    }
  }
  return vectors;
}

// Stands in for a user's kernel service. Its kernel is the inner product of two rows, or of the
// byte counts of two strings.
class ProductSource final : public KernelSource {
 public:
  absl::Status Block(const ExamplesView& left, const ExamplesView& right, MatrixView<double> out,
                     double* diagonal, Alive alive) override {
    PHIMAP_RETURN_IF_ERROR(alive());
    const Matrix<double> x = VectorsOf(left);
    const Matrix<double> values = ProductsOf(x.view(), VectorsOf(right).view());
    for (int64_t i = 0; i < values.rows(); ++i) {
      for (int64_t j = 0; j < values.cols(); ++j) out.row(i)[j] = values(i, j);
      if (diagonal != nullptr) {
        diagonal[i] = ProductsOf(x.view().Rows(i, 1), x.view().Rows(i, 1))(0, 0);
      }
    }
    return absl::OkStatus();
  }
  double unit() const override { return 0x1p-53; }
};

class SilentMonitor final : public BuildMonitor {
 public:
  absl::Status Checkpoint(absl::string_view, double) override { return absl::OkStatus(); }
};

absl::StatusOr<BuiltVersion> BuildFrom(const BuildSpec& spec, const ExamplesView& stream) {
  StreamSample sample(spec, SampleColumns(stream), stream.kind());
  PHIMAP_RETURN_IF_ERROR(sample.Add(stream));
  SilentMonitor monitor;
  ProductSource source;
  return BuildVersion(spec, std::move(sample), monitor, &source);
}

}  // namespace

std::string CorpusBuild::ToText() const {
  return absl::StrJoin(std::array{name, stream, mapping, kernel, options, digest}, "\t");
}

CorpusBuild CorpusBuild::FromText(const std::string& line) {
  const std::vector<std::string> fields = FieldsOf(line);
  PHIMAP_CHECK(fields.size() == 6);
  return {fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]};
}

BuildSpec CorpusBuild::Spec() const {
  BuildSpec spec{.mapping = MappingSpec::Parse(mapping).value(), .seed = 1};
  spec.remote = RemoteKernel::Parse(kernel).value();
  if (!spec.remote.has_value()) spec.kernel = KernelExpression::Parse(kernel).value();
  const std::vector<std::string> words = absl::StrSplit(options, ' ', absl::SkipEmpty());
  for (const std::string& word : words) {
    if (word == "standardize") {
      spec.standardize = true;
    } else if (word == "names") {
      spec.column_names = {"width", "height", "größe", "x.bar", "id"};
    } else {
      PHIMAP_CHECK(absl::SimpleAtoi(word.substr(5), &spec.seed));
    }
  }
  return spec;
}

absl::StatusOr<BuiltVersion> BuildOfCorpus(const CorpusBuild& build, const CorpusInputs& inputs,
                                           std::optional<FloatType> serving_type) {
  BuildSpec spec = build.Spec();
  if (serving_type.has_value()) spec.mapping.serving_type = serving_type;
  PHIMAP_RETURN_IF_ERROR(spec.Validate());
  if (build.stream == "rows") return BuildFrom(spec, WireRows(inputs.stream));
  if (build.stream == "sparse") return BuildFrom(spec, SparseOf(inputs.stream).view());
  if (build.stream == "gram") {
    const Matrix<double> gram = ProductsOf(inputs.stream.view(), inputs.stream.view());
    return BuildFrom(spec, WireRows(gram));
  }
  PHIMAP_CHECK(build.stream == "texts" || build.stream == "bytes");
  std::vector<const std::string*> strings;
  int64_t bytes = 0;
  for (const std::string& text : inputs.texts) {
    strings.push_back(&text);
    bytes += static_cast<int64_t>(text.size());
  }
  const ExampleKind kind = build.stream == "texts" ? ExampleKind::kText : ExampleKind::kBytes;
  return BuildFrom(spec,
                   StringsView{kind, strings.data(), static_cast<int64_t>(strings.size()), bytes});
}

}  // namespace phimap::testing
