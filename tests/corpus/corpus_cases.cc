#include "tests/corpus/corpus_cases.h"

#include <cmath>
#include <utility>

#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int64_t kColumns = 5;

// Returns multiples of 1/8 within ±2. Most numbers of the last column are zero.
Matrix<double> ShortNumbers(int64_t rows, int64_t cols, uint64_t seed) {
  Matrix<double> numbers = UniformRows({.rows = rows, .cols = cols, .seed = seed});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      numbers(i, j) = j + 1 == cols && i % 3 != 0 ? 0 : std::round(numbers(i, j) * 16) / 8;
    }
  }
  return numbers;
}

std::vector<std::string> Texts(int64_t count) {
  const std::vector<std::string> words = {"kernel", "margin", "naïve", "row", "maps", "of", "a"};
  std::vector<std::string> texts;
  uint64_t state = 12345;
  for (int64_t i = 0; i < count; ++i) {
    std::string text = words[static_cast<size_t>(i) % words.size()];
    for (int64_t k = 0; k < 2 + i % 3; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += " " + words[(state >> 33) % words.size()];
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

Plan OpsPlan(FloatType type, std::vector<KernelOp> ops) {
  Plan plan = MakePlan({.serving_type = type, .columns = kColumns, .feature_count = 4});
  const KernelProgram program = KernelProgram::FromOps(std::move(ops)).value();
  std::visit(
      [&](auto& stages) {
        using T = typename std::decay_t<decltype(stages)>::Element;
        std::get<ProductFeatures<T>>(stages.features).program = program;
      },
      plan.stages);
  return plan;
}

}  // namespace

CorpusInputs MakeCorpusInputs() {
  CorpusInputs inputs{.stream = ShortNumbers(200, kColumns, 1),
                      .texts = Texts(200),
                      .rows = ShortNumbers(4, kColumns, 2),
                      .values = ShortNumbers(4, 7, 3)};
  for (int64_t i = 0; i < inputs.values.rows(); ++i) inputs.values(i, 6) = 40 + i;
  return inputs;
}

std::vector<CorpusBuild> CorpusBuildCases() {
  const std::string rbf = "rbf(gamma=0.25)";
  const std::string service = "service(endpoint=here, kernel=product)";
  std::vector<CorpusBuild> cases = {
      {"f1-rbf", "rows", "f1(landmarks=4)", rbf, ""},
      {"f1-float64", "rows", "f1(landmarks=4, serving_type=float64)", rbf, "standardize"},
      {"f1-sigmoid", "rows", "f1(landmarks=4)", "sigmoid(gamma=0.3, coef0=0.1)", ""},
      {"-f1-given", "rows", "f1(landmarks=4, policy=given)", rbf, ""},
      {"f2-rbf", "rows", "f2(landmarks=6)", rbf, ""},
      {"f2-float64", "rows", "f2(landmarks=6, serving_type=float64)", rbf, "seed=7"},
      {"-f2-float32", "rows", "f2(landmarks=6, serving_type=float32)", rbf, ""},
      {"f2-names", "rows", "f2(landmarks=5)", rbf, "names"},
      {"f2-standardize", "rows", "f2(landmarks=5)", "rbf(gamma=scale)", "standardize names"},
      {"f2-median", "rows", "f2(landmarks=5)", "laplacian(gamma=median)", "standardize"},
      {"f2-poly", "rows", "f2(landmarks=5)", "poly(degree=3, gamma=0.5, coef0=1)", ""},
      {"f2-linear", "rows", "f2(landmarks=6)", "2*linear()", "standardize"},
      {"f2-delta", "rows", "f2(landmarks=5)", "0.5*delta() + 0.5*rbf(gamma=0.1)", ""},
      {"f2-cosine", "rows", "f2(landmarks=5)", "cosine()", ""},
      {"f2-normalize", "rows", "f2(landmarks=5)", "normalize(poly(degree=2, coef0=1))", ""},
      {"f2-bilinear", "rows", "f2(landmarks=5)",
       "weight(constant=1) + bilinear(diagonal=[1, 2, 0.5, 1, 1])*exp(0.5*cosine())", ""},
      {"f2-weights", "rows", "f2(landmarks=5)",
       "weight(norm_power=-1)*linear() + weight(gaussian=0.1)*weight(constant=2)*rbf(gamma=1)", ""},
      {"f2-input", "rows", "f2(landmarks=5, input_dimensions=3)", rbf, "standardize"},
      {"f2-rpcholesky", "rows", "f2(landmarks=5, policy=rpcholesky)", rbf, ""},
      {"f2-given", "rows", "f2(landmarks=5, policy=given)", rbf, "standardize"},
      {"-f2-pool", "rows", "f2(landmarks=5, pool_rows=12)", "rbf(gamma=median)", ""},
      {"-f2-sparse-rows", "sparse", "f2(landmarks=5)", rbf, ""},
      {"-f2-sparse-standardize", "sparse", "f2(landmarks=5)", "rbf(gamma=scale)", "standardize"},
      {"f3-gaussian", "rows", "f3(landmarks=6, dimensions=3)", rbf, ""},
      {"f3-sign", "rows", "f3(landmarks=6, dimensions=3, projection=sign)", rbf, "standardize"},
      {"-f3-input", "rows", "f3(landmarks=6, dimensions=3, input_dimensions=4)", rbf, ""},
      {"projection-gaussian", "rows", "random_projection(dimensions=4)", "linear()", "standardize"},
      {"projection-sign", "rows", "random_projection(dimensions=4, projection=sign)", "2*linear()",
       ""},
      {"projection-sparse", "rows", "random_projection(dimensions=4, projection=sparse)",
       "linear()", "names"},
      {"projection-orthonormal", "rows",
       "random_projection(dimensions=4, projection=orthonormal, serving_type=float64)", "linear()",
       ""},
      {"multiclass", "rows", "multiclass(classes=3, dimensions=2)", "linear()", "standardize"},
      {"-multiclass-sparse", "rows", "multiclass(classes=3, dimensions=2, projection=sparse)",
       "linear()", ""},
      {"polynomial", "rows", "polynomial(dimensions=60)", "poly(degree=2, gamma=0.5, coef0=1)",
       "standardize"},
      {"-polynomial-high", "rows", "polynomial(dimensions=300)", "poly(degree=4)", ""},
      {"fourier-sincos", "rows", "fourier(dimensions=6)", "rbf(gamma=scale)", "standardize"},
      {"fourier-sincos-orthogonal", "rows", "fourier(dimensions=6, orthogonal=true)", rbf, ""},
      {"fourier-sincos-laplacian", "rows", "fourier(dimensions=6)", "laplacian(gamma=0.5)", ""},
      {"fourier-phase", "rows", "fourier(dimensions=5, form=phase)", "2*rbf(gamma=median)", ""},
      {"fourier-phase-orthogonal", "rows",
       "fourier(dimensions=5, form=phase, orthogonal=true, serving_type=float64)", rbf,
       "standardize names"},
      {"-fourier-phase-laplacian", "rows", "fourier(dimensions=5, form=phase)",
       "laplacian(gamma=scale)", ""},
      {"kpca", "rows", "kpca(landmarks=8, dimensions=3)", rbf, ""},
      {"kpca-uncentred", "rows", "kpca(landmarks=8, dimensions=3, centred=false)", rbf,
       "standardize"},
      {"kpca-sparsify", "rows", "kpca(landmarks=8, dimensions=2, sparsify=1.5)", rbf, ""},
      {"kpca-quantise", "rows", "kpca(landmarks=8, dimensions=2, quantise=true)", rbf, ""},
      {"kpca-rounding", "rows", "kpca(landmarks=8, dimensions=3, rounding=15)", rbf, ""},
      {"-kpca-input", "rows", "kpca(landmarks=8, dimensions=2, input_dimensions=4)", rbf, ""},
      {"-kpca-linear", "rows", "kpca(landmarks=8, dimensions=3)", "linear()", ""},
      {"-kpca-rpcholesky", "rows", "kpca(landmarks=8, dimensions=3, policy=rpcholesky)", rbf, ""},
      {"f1-texts", "texts", "f1(landmarks=5)", "spectrum(n=2)", ""},
      {"f2-texts", "texts", "f2(landmarks=5)",
       "normalize(spectrum(n=3)) + 0.5*jaccard(n=1, unit=word)", ""},
      {"-f2-texts-float64", "texts", "f2(landmarks=5, serving_type=float64)",
       "exp(0.1*spectrum(n=1, unit=word))", ""},
      {"-f3-texts", "texts", "f3(landmarks=6, dimensions=3)", "jaccard(n=2)", ""},
      {"-kpca-texts", "texts", "kpca(landmarks=8, dimensions=3)", "normalize(spectrum(n=2))", ""},
      {"f2-bytes", "bytes", "f2(landmarks=5)", "normalize(spectrum(n=2, unit=byte))", ""},
      {"f1-gram", "gram", "f1(landmarks=4)", "precomputed()", ""},
      {"f2-gram", "gram", "f2(landmarks=6)", "precomputed()", ""},
      {"f3-gram", "gram", "f3(landmarks=5, dimensions=3)", "precomputed()", ""},
      {"-f2-gram-given", "gram", "f2(landmarks=4, policy=given)", "precomputed()", ""},
      {"kpca-gram", "gram", "kpca(landmarks=6, dimensions=3)", "precomputed()", ""},
      {"f2-service", "rows", "f2(landmarks=4)", service, ""},
      {"-f1-service", "rows", "f1(landmarks=4)", service, "names"},
      {"f2-service-sparse", "sparse", "f2(landmarks=4, serving_type=float64)", service, ""},
      {"f2-service-texts", "texts", "f2(landmarks=4)", service, ""},
      {"f1-service-bytes", "bytes", "f1(landmarks=4)", service, ""},
      {"-kpca-service", "texts", "kpca(landmarks=6, dimensions=2)", service, ""},
  };
  return cases;
}

std::vector<CorpusPlan> CorpusPlanCases() {
  const auto narrow = FloatType::kFloat32;
  const auto wide = FloatType::kFloat64;
  const PlanShape all{
      .columns = kColumns, .shift = true, .scale = true, .projected = 3, .feature_count = 6};
  std::vector<CorpusPlan> plans;
  for (const FloatType type : {narrow, wide}) {
    const std::string name = type == narrow ? "plan-" : "plan-float64-";
    const auto add = [&](const std::string& what, PlanShape shape) {
      shape.serving_type = type;
      plans.push_back({name + what, MakePlan(shape)});
    };
    const auto shape = [&](FeatureKind features, WKind w, bool centre) {
      PlanShape made = all;
      made.features = features;
      // With L1 distances, the program must read nothing but the distance.
      if (features == FeatureKind::kL1) made.kernel = "poly(degree=2)";
      made.w = w;
      made.centre = centre;
      return made;
    };
    add("l1", shape(FeatureKind::kL1, WKind::kNone, false));
    add("triangular", shape(FeatureKind::kProduct, WKind::kTriangular, false));
    add("sparse", shape(FeatureKind::kProduct, WKind::kSparse, true));
    add("sincos", shape(FeatureKind::kSinCos, WKind::kDense, true));
    add("phase", shape(FeatureKind::kPhase, WKind::kSparse, false));
    add("monomials", shape(FeatureKind::kMonomials, WKind::kDense, true));
    using Code = KernelOpCode;
    plans.push_back({name + "cos", OpsPlan(type, {{.code = Code::kPushProduct},
                                                  {.code = Code::kAffine, .a = 9.5, .b = 0.7},
                                                  {.code = Code::kCos},
                                                  {.code = Code::kScale, .a = 0.17}})});
    plans.push_back({name + "sin", OpsPlan(type, {{.code = Code::kPushProduct},
                                                  {.code = Code::kScale, .a = 400},
                                                  {.code = Code::kSin}})});
    plans.push_back({name + "inverse", OpsPlan(type, {{.code = Code::kPushL1Distance},
                                                      {.code = Code::kInverse},
                                                      {.code = Code::kPushSquaredDistance},
                                                      {.code = Code::kSquareRoot},
                                                      {.code = Code::kInverseOrZero},
                                                      {.code = Code::kTanh},
                                                      {.code = Code::kAdd},
                                                      {.code = Code::kPushProduct},
                                                      {.code = Code::kIsZero},
                                                      {.code = Code::kMultiply},
                                                      {.code = Code::kExp},
                                                      {.code = Code::kPower, .n = 3}})});
  }
  return plans;
}

std::vector<std::string> CorpusKernelCases() {
  return {"linear()",
          "0.3*linear()",
          "poly(degree=1)",
          "poly(degree=2, coef0=1)",
          "poly(degree=3, gamma=0.5, coef0=1)",
          "poly(degree=5, gamma=-0.5, coef0=1)",
          "poly(degree=64)",
          "sigmoid()",
          "sigmoid(gamma=0.7, coef0=0.2)",
          "sigmoid(gamma=median)",
          "rbf()",
          "rbf(gamma=1)",
          "rbf(gamma=scale)",
          "rbf(gamma=median)",
          "laplacian()",
          "laplacian(gamma=0.3)",
          "delta()",
          "cosine()",
          "cosine()*cosine()",
          "bilinear(diagonal=[1, 2, 3, 0.5, 0])",
          "bilinear(diagonal=[1, 2, -3, 0.5, 0])",
          "bilinear(matrix=[2, 1, 0, 0, 0; 1, 3, 0, 0, 0; 0, 0, 1, 0, 0; 0, 0, 0, 1, 0.5; 0, 0, 0, "
          "0.5, 1])",
          "weight(norm_power=2)",
          "weight(norm_power=-3)*rbf(gamma=0.2)",
          "weight(norm_power=0)*rbf(gamma=0.2)",
          "weight(gaussian=0.4)*linear()",
          "weight(constant=-2)*linear()",
          "exp(linear())",
          "exp(2*rbf(gamma=0.1))",
          "exp(-1*poly(degree=2))",
          "exp(bilinear(diagonal=[1, 1, 1, 1, 1]))",
          "normalize(linear())",
          "normalize(poly(degree=4, coef0=1))",
          "normalize(exp(linear()))",
          "normalize(laplacian(gamma=1) + linear())",
          "normalize(normalize(linear() + delta()) * weight(norm_power=1))",
          "rbf(gamma=0.1) + -1*laplacian(gamma=0.1)",
          "rbf(gamma=1e-4)*poly(degree=30)",
          "2*rbf(gamma=scale) + 0.5*laplacian(gamma=median) + weight(constant=1)",
          "(linear() + weight(constant=1))*(rbf(gamma=1) + delta())*3",
          "(poly(degree=2) + delta())*exp(cosine())",
          "spectrum(n=3)",
          "spectrum(n=1, unit=byte)",
          "spectrum(n=2, unit=word)",
          "jaccard(n=3)",
          "jaccard(n=1, unit=word)",
          "normalize(spectrum(n=2))",
          "normalize(spectrum(n=2, unit=byte)) * jaccard(n=3, unit=byte)",
          "exp(0.1*spectrum(n=1, unit=word)) + 2*jaccard(n=2)",
          "weight(constant=3)*jaccard(n=2)"};
}

}  // namespace phimap::testing
