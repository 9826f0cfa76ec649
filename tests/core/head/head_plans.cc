#include "tests/core/head/head_plans.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

Plan PlanOfStrings(FloatType type) {
  Plan plan = MakePlan({.serving_type = type, .feature_count = 5, .w = WKind::kTriangular});
  plan.input = {.columns = 0};
  std::visit(
      [](auto& stages) {
        stages.features = StringFeatures{
            .strings = {"a b", "", "bc bc", "abc", "b"},
            .program = KernelProgram::Compile(
                MustParseKernel("normalize(spectrum(n=2) + jaccard(n=1, unit=word))"))};
      },
      plan.stages);
  PHIMAP_CHECK(plan.Validate().ok());
  return plan;
}

Plan PlanOfRandomValues(FloatType type) {
  Plan plan = MakePlan({.serving_type = type,
                        .feature_count = 70,
                        .centre = true,
                        .w = WKind::kDense,
                        .outputs = 33});
  plan.input = {};
  RemoteFeatures remote{
      .kernel = "k", .endpoint = "e:1", .kind = RemoteFeatures::StoredKind::kText};
  for (int i = 0; i < 70; ++i) remote.examples.push_back(absl::StrCat(i));
  std::visit([&](auto& stages) { stages.features = std::move(remote); }, plan.stages);
  PHIMAP_CHECK(plan.Validate().ok());
  return plan;
}

}  // namespace

std::vector<NamedPlan> PlansOfEveryKind(FloatType type) {
  using enum WKind;
  using enum FeatureKind;
  const PlanShape kShapes[] = {
      {.columns = 17, .feature_count = 70},
      {.columns = 17, .feature_count = 40, .centre = true},
      {.columns = 17,
       .shift = true,
       .scale = true,
       .feature_count = 67,
       .kernel = "rbf(gamma=0.3) + 0.1*poly(degree=3, coef0=1)",
       .centre = true,
       .w = kTriangular},
      {.columns = 9, .feature_count = 530, .w = kTriangular},
      {.columns = 600, .feature_count = 33, .kernel = "linear()", .w = kDense, .outputs = 21},
      {.columns = 12, .projected = 7, .feature_count = 530, .w = kDense, .outputs = 35},
      {.columns = 12,
       .features = kL1,
       .feature_count = 40,
       .kernel = "poly(degree=2)",
       .w = kSparse,
       .outputs = 9},
      {.columns = 6, .feature_count = 600, .centre = true, .w = kSparse, .outputs = 530},
      {.columns = 3,
       .feature_count = 67,
       .kernel = "normalize(rbf(gamma=0.3) + laplacian(gamma=1) + bilinear(matrix=[2, 1, 0; 1, 2,"
                 " 0; 0, 0, 3])) + 0.5*cosine()*weight(norm_power=1) + delta()",
       .w = kTriangular},
      {.columns = 5, .feature_count = 70, .kernel = "rbf(gamma=0.3, columns=1:4)"},
      {.columns = 17, .shift = true, .features = kSinCos, .feature_count = 142},
      {.columns = 30, .scale = true, .features = kMonomials, .feature_count = 77, .w = kTriangular},
      {.columns = 520, .features = kPhase, .feature_count = 69, .w = kDense, .outputs = 20},
  };
  std::vector<NamedPlan> plans;
  for (PlanShape shape : kShapes) {
    shape.serving_type = type;
    plans.push_back({shape.ToText(), [shape] { return MakePlan(shape); }});
  }
  plans.push_back({"strings", [type] { return PlanOfStrings(type); }});
  plans.push_back({"remote", [type] { return PlanOfRandomValues(type); }});
  return plans;
}

template <typename T>
Plan PlanOfValues(const Matrix<T>& w) {
  Plan plan;
  ServingStages<T> stages;
  RemoteFeatures remote{
      .kernel = "k", .endpoint = "e:1", .kind = RemoteFeatures::StoredKind::kText};
  for (int64_t i = 0; i < w.rows(); ++i) remote.examples.push_back(absl::StrCat(i));
  stages.features = std::move(remote);
  if (!w.empty()) stages.projection = DenseProjection<T>{w.Clone()};
  plan.stages = std::move(stages);
  PHIMAP_CHECK(plan.Validate().ok());
  return plan;
}
template Plan PlanOfValues(const Matrix<float>& w);
template Plan PlanOfValues(const Matrix<double>& w);

Plan WithoutW(Plan plan) {
  std::visit([](auto& stages) { stages.projection = NoProjection{}; }, plan.stages);
  return plan;
}

Matrix<double> DenseW(const Plan& plan) {
  return std::visit(
      [](const auto& stages) {
        using T = typename std::decay_t<decltype(stages)>::Element;
        Matrix<double> w(stages.feature_count(), stages.output_columns());
        if (std::holds_alternative<NoProjection>(stages.projection)) {
          for (int64_t k = 0; k < w.rows(); ++k) w(k, k) = 1;
        } else if (const auto* t = std::get_if<TriangularProjection<T>>(&stages.projection)) {
          const T* element = t->elements.data();
          for (int64_t k = 0; k < t->order; ++k) {
            for (int64_t j = k; j < t->order; ++j) w(k, j) = *element++;
          }
        } else if (const auto* d = std::get_if<DenseProjection<T>>(&stages.projection)) {
          std::copy_n(d->matrix.data(), w.size(), w.data());
        } else {
          const auto& s = std::get<SparseProjection<T>>(stages.projection);
          for (int64_t k = 0; k < s.rows; ++k) {
            for (int64_t i = s.row_offsets[k]; i < s.row_offsets[k + 1]; ++i) {
              w(k, s.column_indices[i]) = s.values[i];
            }
          }
        }
        return w;
      },
      plan.stages);
}

ExampleRows::ExampleRows(const Engine& engine, int64_t count) {
  if (!engine.takes_strings()) {
    numbers_ = UniformFloatRows({.rows = count, .cols = engine.input_columns(), .seed = 9});
    return;
  }
  const char* const kWords[] = {"a", "b", " ", "bc", "abc"};
  for (int64_t i = 0; i < count; ++i) {
    strings_.push_back(absl::StrCat(kWords[i % 5], kWords[i / 5 % 5], kWords[i / 25 % 5]));
  }
  for (const std::string& text : strings_) places_.push_back(&text);
}

ExamplesView ExampleRows::view() const {
  if (places_.empty()) return WireRows(numbers_);
  int64_t bytes = 0;
  for (const std::string& text : strings_) bytes += static_cast<int64_t>(text.size());
  return StringsView{ExampleKind::kText, places_.data(), static_cast<int64_t>(places_.size()),
                     bytes};
}

Matrix<double> MustTransformExamples(const Engine& engine, const ExamplesView& rows) {
  Matrix<double> wide(rows.rows(), engine.output_columns());
  Matrix<float> narrow(rows.rows(), engine.output_columns());
  const bool is_narrow = engine.serving_type() == FloatType::kFloat32;
  TransformPart part{.rows = rows,
                     .features = is_narrow ? static_cast<void*>(narrow.data()) : wide.data(),
                     .status = absl::OkStatus()};
  EngineScratch scratch;
  engine.Transform(absl::MakeSpan(&part, 1), scratch);
  PHIMAP_CHECK(part.status.ok());
  return is_narrow ? Converted<double, float>(std::as_const(narrow).view()) : std::move(wide);
}

Matrix<double> MustScore(const HeadProgram& program, const ExamplesView& rows) {
  Matrix<double> scores(rows.rows(), program.scores());
  ScorePart part{.rows = rows, .scores = scores.data(), .status = absl::OkStatus()};
  EngineScratch scratch;
  program.Scores(absl::MakeSpan(&part, 1), scratch);
  PHIMAP_CHECK(part.status.ok());
  return scores;
}

namespace {

template <typename T>
Matrix<double> FoldedByDefinition(const Matrix<double>& q, const Matrix<double>& w, bool projects,
                                  const Head& head) {
  const Matrix<double>& v = head.weights;
  Matrix<T> folded(w.rows(), v.cols());
  for (int64_t k = 0; k < w.rows(); ++k) {
    for (int64_t s = 0; s < v.cols(); ++s) {
      const auto dot = [&] {
        return ChainDot<double>(
            w.cols(), [&](int64_t j) { return w(k, j); }, [&](int64_t j) { return v(j, s); });
      };
      folded(k, s) = static_cast<T>(projects ? dot() : v(k, s));
    }
  }
  Matrix<double> scores(q.rows(), v.cols());
  for (int64_t i = 0; i < q.rows(); ++i) {
    for (int64_t s = 0; s < v.cols(); ++s) {
      const T product = ChainDot<T>(
          q.cols(), [&](int64_t k) { return q(i, k); }, [&](int64_t k) { return folded(k, s); });
      scores(i, s) = static_cast<double>(product) + head.intercepts[s];
    }
  }
  return scores;
}

}  // namespace

Matrix<double> FoldedScoresByDefinition(const NamedPlan& plan, const Head& head,
                                        const ExamplesView& rows) {
  const Plan whole = plan.make();
  const Matrix<double> q = MustTransformExamples(**Engine::Load(WithoutW(plan.make())), rows);
  const bool projects = std::visit(
      [](const auto& stages) { return !std::holds_alternative<NoProjection>(stages.projection); },
      whole.stages);
  return whole.serving_type() == FloatType::kFloat32
             ? FoldedByDefinition<float>(q, DenseW(whole), projects, head)
             : FoldedByDefinition<double>(q, DenseW(whole), projects, head);
}

Matrix<double> UnfoldedScoresByDefinition(const NamedPlan& plan, const Head& head,
                                          const ExamplesView& rows) {
  const Matrix<double> f = MustTransformExamples(**Engine::Load(plan.make()), rows);
  Matrix<double> scores(f.rows(), head.scores());
  for (int64_t i = 0; i < f.rows(); ++i) {
    for (int64_t s = 0; s < head.scores(); ++s) {
      scores(i, s) = ChainDot<double>(
                         f.cols(), [&](int64_t j) { return f(i, j); },
                         [&](int64_t j) { return head.weights(j, s); }) +
                     head.intercepts[s];
    }
  }
  return scores;
}

HeadProgram MustFold(const NamedPlan& plan, const Head& head) {
  return HeadProgram::Folded(plan.make(), head).value();
}

HeadProgram MustNotFold(const NamedPlan& plan, const Head& head) {
  return HeadProgram::Unfolded(*Engine::Load(plan.make()), head).value();
}

}  // namespace phimap::testing
