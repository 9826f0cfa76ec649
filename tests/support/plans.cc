#include "tests/support/plans.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// Generates the random numbers of a plan. Each part of the plan has its own seed, so that two
// shapes with the same part get the same numbers for it.
class Source {
 public:
  explicit Source(uint64_t seed) : seed_(seed) {}
  template <typename T>
  Matrix<T> Rows(int64_t rows, int64_t cols, double factor, uint64_t part) const {
    Matrix<double> wide = UniformRows({.rows = rows, .cols = cols, .seed = seed_ * 100 + part});
    for (int64_t i = 0; i < wide.size(); ++i) wide.data()[i] *= factor;
    return Converted<T, double>(std::as_const(wide).view());
  }
  template <typename T>
  std::vector<T> Vector(int64_t count, uint64_t part) const {
    const Matrix<T> row = Rows<T>(1, count, 1, part);
    return std::vector<T>(row.data(), row.data() + count);
  }

 private:
  uint64_t seed_;
};

template <typename T>
void SetProjection(const PlanShape& shape, const Source& source, ServingStages<T>& stages) {
  const int64_t d = shape.feature_count;
  const double factor = 1.0 / static_cast<double>(d);
  if (shape.w == WKind::kTriangular) {
    TriangularProjection<T> triangle;
    triangle.order = d;
    triangle.elements = AlignedArray<T>(triangle.ElementCount(d));
    const Matrix<T> numbers = source.Rows<T>(1, triangle.elements.size(), factor, 5);
    std::copy_n(numbers.data(), numbers.size(), triangle.elements.data());
    stages.projection = std::move(triangle);
  }
  if (shape.w == WKind::kDense) {
    stages.projection = DenseProjection<T>{source.Rows<T>(d, shape.outputs, factor, 6)};
  }
  if (shape.w == WKind::kSparse) {  // about every third element is nonzero; some rows are empty
    const Matrix<T> dense = source.Rows<T>(d, shape.outputs, factor, 6);
    SparseProjection<T> sparse{.rows = d, .columns = shape.outputs, .row_offsets = {0}};
    for (int64_t k = 0; k < d; ++k) {
      for (int64_t j = 0; j < shape.outputs; ++j) {
        if (k % 5 == 4 || (k + j) % 3 != 0) continue;
        sparse.column_indices.push_back(static_cast<int32_t>(j));
        sparse.values.push_back(dense(k, j));
      }
      sparse.row_offsets.push_back(static_cast<int64_t>(sparse.values.size()));
    }
    stages.projection = std::move(sparse);
  }
}

KernelProgram ProgramOf(const PlanShape& shape) {
  if (shape.features == FeatureKind::kSinCos) {
    PHIMAP_CHECK(shape.feature_count % 2 == 0);
    return *KernelProgram::FromOps(
        {{.code = KernelOpCode::kPushProduct}, {.code = KernelOpCode::kCosSinTurns, .a = 0.75}});
  }
  if (shape.features == FeatureKind::kPhase) {
    return *KernelProgram::FromOps({{.code = KernelOpCode::kPushShiftedProduct},
                                    {.code = KernelOpCode::kCosTurns, .a = 0.75}});
  }
  return KernelProgram::Compile(MustParseKernel(shape.kernel));
}

std::string FeatureText(const PlanShape& shape) {
  switch (shape.features) {
    case FeatureKind::kProduct:
      return absl::StrCat("product ", shape.kernel);
    case FeatureKind::kL1:
      return absl::StrCat("L1 ", shape.kernel);
    case FeatureKind::kSinCos:
      return "cosines and sines";
    case FeatureKind::kPhase:
      return "cosines with phases";
    case FeatureKind::kMonomials:
      return "monomials";
    case FeatureKind::kStrings:
      return "strings";
    case FeatureKind::kRemote:
      return "remote";
  }
  return "";
}

std::vector<std::string> StringsOf(const PlanShape& shape) {
  std::vector<std::string> strings;
  for (int64_t j = 0; j < shape.feature_count; ++j) {
    strings.push_back(j % 3 == 1 ? "" : absl::StrCat("a b", j));
  }
  return strings;
}

template <typename T>
ServingStages<T> Stages(const PlanShape& shape, const Source& source) {
  ServingStages<T> stages;
  const int64_t columns = shape.projected == 0 ? shape.columns : shape.projected;
  if (shape.features == FeatureKind::kStrings || shape.features == FeatureKind::kRemote) {
    if (shape.features == FeatureKind::kRemote) {
      stages.features = RemoteFeatures{.kernel = "k",
                                       .endpoint = "similarity.example:7000",
                                       .kind = RemoteFeatures::StoredKind::kText,
                                       .examples = StringsOf(shape)};
    } else {
      const KernelExpression kernel =
          MustParseKernel("normalize(spectrum(n=2) + jaccard(n=1, unit=word))");
      stages.features =
          StringFeatures{.strings = StringsOf(shape), .program = KernelProgram::Compile(kernel)};
    }
    if (shape.centre) stages.centre = source.Vector<T>(shape.feature_count, 4);
    SetProjection(shape, source, stages);
    return stages;
  }
  if (shape.features == FeatureKind::kMonomials) {
    ExpansionFeatures<T> monomials{.degree = 3};
    monomials.coefficients = source.Vector<T>(shape.feature_count, 9);
    for (int64_t j = 0; j < shape.feature_count; ++j) {
      const auto last = static_cast<int32_t>(j % columns);
      monomials.columns.insert(monomials.columns.end(),
                               {static_cast<int32_t>(j % 2) - 1, last / 2, last});
    }
    stages.features = std::move(monomials);
    if (shape.centre) stages.centre = source.Vector<T>(shape.feature_count, 4);
    SetProjection(shape, source, stages);
    return stages;
  }
  const bool pair = shape.features == FeatureKind::kSinCos;
  const int64_t count = pair ? shape.feature_count / 2 : shape.feature_count;
  Matrix<T> rows = source.Rows<T>(count, columns, 1, 3);
  KernelProgram program = ProgramOf(shape);
  if (shape.features == FeatureKind::kL1) {
    stages.features = L1Features<T>{std::move(rows), std::move(program)};
  } else {
    std::vector<T> offsets;
    if (program.uses_offsets()) offsets = source.Vector<T>(count, 8);
    stages.features = ProductFeatures<T>{std::move(rows), std::move(program), std::move(offsets)};
  }
  if (shape.centre) stages.centre = source.Vector<T>(shape.feature_count, 4);
  SetProjection(shape, source, stages);
  return stages;
}

}  // namespace

std::string PlanShape::ToText() const {
  return absl::StrCat(FloatTypeName(serving_type), " p=", columns, " shift=", shift,
                      " scale=", scale, " projected=", projected, " ", FeatureText(*this),
                      " d=", feature_count, " centre=", centre, " W=", static_cast<int>(w), "/",
                      outputs);
}

Plan MakePlan(const PlanShape& shape) {
  const Source source(shape.seed);
  Plan plan;
  const bool rows =
      shape.features != FeatureKind::kStrings && shape.features != FeatureKind::kRemote;
  plan.input.columns = rows ? shape.columns : 0;
  if (shape.shift) plan.input.shift = source.Vector<double>(shape.columns, 1);
  if (shape.scale) plan.input.scale = source.Vector<double>(shape.columns, 2);
  if (shape.projected != 0) {
    plan.input.projection = source.Rows<double>(shape.columns, shape.projected,
                                                1.0 / static_cast<double>(shape.columns), 7);
  }
  if (shape.serving_type == FloatType::kFloat32) {
    plan.stages = Stages<float>(shape, source);
  } else {
    plan.stages = Stages<double>(shape, source);
  }
  PHIMAP_CHECK(plan.Validate().ok());
  return plan;
}

std::vector<PlanShape> ShapesOfEveryKind(FloatType serving_type) {
  using enum WKind;
  using enum FeatureKind;
  const char* kMixed = "rbf(gamma=0.3) + 0.1*poly(degree=3, coef0=1)";
  std::vector<PlanShape> shapes = {
      {.columns = 700, .scale = true, .feature_count = 70},
      {.columns = 17,
       .shift = true,
       .scale = true,
       .feature_count = 67,
       .kernel = kMixed,
       .centre = true,
       .w = kTriangular},
      {.columns = 700, .feature_count = 67, .kernel = kMixed, .centre = true, .w = kTriangular},
      {.columns = 1100, .feature_count = 33, .kernel = "linear()", .w = kDense, .outputs = 21},
      {.columns = 12, .projected = 7, .feature_count = 530, .w = kDense, .outputs = 35},
      {.columns = 600,
       .scale = true,
       .projected = 30,
       .feature_count = 50,
       .w = kSparse,
       .outputs = 9},
      {.columns = 12,
       .features = kL1,
       .feature_count = 40,
       .kernel = "poly(degree=2, coef0=-2)",
       .w = kSparse,
       .outputs = 9},
      {.columns = 17, .shift = true, .features = kSinCos, .feature_count = 142},
      {.columns = 520, .scale = true, .features = kSinCos, .feature_count = 142},
      {.columns = 520, .features = kPhase, .feature_count = 69, .w = kDense, .outputs = 20},
      {.columns = 30, .scale = true, .features = kMonomials, .feature_count = 77, .w = kTriangular},
      {.columns = 600, .projected = 20, .feature_count = 50, .kernel = "laplacian(gamma=0.1)"},
      {.columns = 600, .feature_count = 70, .kernel = "laplacian(gamma=0.01) + delta()"},
      {.columns = 90,
       .feature_count = 40,
       .kernel = "normalize(poly(degree=2, coef0=1)) + 0.5*cosine()*weight(norm_power=1)",
       .w = kTriangular},
  };
  for (const char* kernel :
       {"normalize(rbf(gamma=0.3) + laplacian(gamma=1) + bilinear(diagonal=[2, 1, 0, 3, 3])) + "
        "delta()",
        "rbf(gamma=0.3, columns=1:4)*laplacian(scales=[1, 2, 3, 4, 5])*delta(columns=4)",
        "exp(sigmoid(gamma=0.4) + bilinear(diagonal=[1, 0, 2, 1, 0.5]))",
        "normalize(laplacian(scales=[1, 2, 3, 4, 5]) + cosine(columns=2:5))",
        "weight(gaussian=1)*bilinear(matrix=[1, 0, 0, 0, 0; 0, 1, 0, 0, 0; 0, 0, 2, 1, 0; 0, 0, 1, "
        "2, 0; 0, 0, 0, 0, 1])"}) {
    shapes.push_back({.feature_count = 67, .kernel = kernel, .w = kTriangular});
  }
  for (PlanShape& shape : shapes) shape.serving_type = serving_type;
  return shapes;
}

template <typename T>
Matrix<T> MustTransform(const Engine& engine, const RowsView& rows) {
  PHIMAP_CHECK(FloatTypeBytes(engine.serving_type()) == sizeof(T));
  Matrix<T> features = Matrix<T>::Uninit(rows.rows, engine.output_columns());
  EngineScratch scratch;
  TransformPart part{.rows = rows, .features = features.data(), .status = absl::OkStatus()};
  engine.Transform(absl::MakeSpan(&part, 1), scratch);
  if (!part.status.ok()) std::fprintf(stderr, "%s\n", part.status.ToString().c_str());
  PHIMAP_CHECK(part.status.ok());
  return features;
}

template <typename T>
Matrix<T> MustTransform(const Plan& plan, const RowsView& rows) {
  const absl::StatusOr<std::unique_ptr<const Engine>> engine = Engine::Load(plan);
  if (!engine.ok()) std::fprintf(stderr, "%s\n", engine.status().ToString().c_str());
  PHIMAP_CHECK(engine.ok());
  return MustTransform<T>(**engine, rows);
}

template Matrix<float> MustTransform(const Engine&, const RowsView&);
template Matrix<double> MustTransform(const Engine&, const RowsView&);
template Matrix<float> MustTransform(const Plan&, const RowsView&);
template Matrix<double> MustTransform(const Plan&, const RowsView&);

Matrix<double> MustTransformWide(const Plan& plan, const RowsView& rows) {
  if (plan.serving_type() == FloatType::kFloat64) return MustTransform<double>(plan, rows);
  const Matrix<float> features = MustTransform<float>(plan, rows);
  return Converted<double, float>(features.view());
}

}  // namespace phimap::testing
