#include "core/mapping/builder_parts/plan_pair.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/plan/plan.h"
#include "core/status/error.h"

namespace phimap {
namespace {

template <typename T>
Matrix<double> Rounded(ConstMatrixView<double> from) {
  return Converted<double, T>(Converted<T, double>(from).view());
}

template <typename T>
TriangularProjection<T> PackTriangle(const Matrix<double>& upper, std::vector<double> self) {
  TriangularProjection<T> triangle;
  triangle.order = upper.rows();
  triangle.self_values = std::move(self);
  triangle.elements = AlignedArray<T>(triangle.ElementCount(triangle.order));
  T* out = triangle.elements.data();
  for (int64_t k = 0; k < upper.rows(); ++k) {
    for (int64_t j = k; j < upper.cols(); ++j) *out++ = static_cast<T>(upper(k, j));
  }
  return triangle;
}

template <typename T>
SparseProjection<T> PackSparse(const Matrix<double>& dense) {
  SparseProjection<T> sparse{.rows = dense.rows(), .columns = dense.cols()};
  sparse.row_offsets.push_back(0);
  for (int64_t k = 0; k < dense.rows(); ++k) {
    for (int64_t j = 0; j < dense.cols(); ++j) {
      if (dense(k, j) == 0) continue;
      sparse.column_indices.push_back(static_cast<int32_t>(j));
      sparse.values.push_back(static_cast<T>(dense(k, j)));
    }
    sparse.row_offsets.push_back(static_cast<int64_t>(sparse.values.size()));
  }
  return sparse;
}

template <typename T>
ServingStages<T> StagesIn(const StageNumbers& stages) {
  ServingStages<T> typed;
  if (stages.remote.has_value()) {
    typed.features = *stages.remote;
  } else if (!stages.program.strings().empty()) {
    // Each row is an index into the build's table of strings.
    StringFeatures features{.strings = {}, .program = stages.program.Over(nullptr)};
    for (int64_t i = 0; i < stages.rows.rows(); ++i) {
      features.strings.push_back(
          (*stages.program.string_table())[static_cast<size_t>(stages.rows(i, 0))]);
    }
    typed.features = std::move(features);
  } else if (!stages.expansion.coefficients.empty()) {
    const std::vector<double>& wide = stages.expansion.coefficients;
    typed.features = ExpansionFeatures<T>{stages.expansion.degree, stages.expansion.columns,
                                          std::vector<T>(wide.begin(), wide.end())};
  } else {
    typed.features =
        ProductFeatures<T>{Converted<T, double>(stages.rows.view()), stages.program,
                           std::vector<T>(stages.offsets.begin(), stages.offsets.end())};
  }
  typed.centre.assign(stages.centre.begin(), stages.centre.end());
  if (!stages.upper_triangle.empty()) {
    typed.projection = PackTriangle<T>(stages.upper_triangle, stages.self_values);
  } else if (stages.sparse) {
    typed.projection = PackSparse<T>(stages.dense);
  } else if (!stages.dense.empty()) {
    typed.projection = DenseProjection<T>{Converted<T, double>(stages.dense.view())};
  }
  return typed;
}

}  // namespace

Matrix<double> RoundedTo(FloatType type, ConstMatrixView<double> from) {
  return type == FloatType::kFloat32 ? Rounded<float>(from) : Rounded<double>(from);
}

RemoteFeatures WithExamples(const RemoteFeatures& block, const std::vector<int64_t>& which) {
  RemoteFeatures picked{
      .kernel = block.kernel, .endpoint = block.endpoint, .kind = block.kind, .examples = {}};
  for (const int64_t i : which) picked.examples.push_back(block.examples[i]);
  return picked;
}

absl::Status EmitPlans(const ServedAs& as, const StageNumbers& stages, PlanPair& plans) {
  plans.served.input = CopyOf(as.input);
  if (stages.remote.has_value() && stages.remote->kind == RemoteFeatures::StoredKind::kRowNumbers) {
    plans.served.input.columns = static_cast<int64_t>(stages.remote->examples.size());
  }
  plans.reference.input = CopyOf(plans.served.input);
  if (!stages.program.strings().empty()) {
    plans.served.input.columns = plans.reference.input.columns = 0;
  }
  plans.reference.stages = StagesIn<double>(stages);
  if (as.serving_type == FloatType::kFloat32) {
    plans.served.stages = StagesIn<float>(stages);
  } else {
    plans.served.stages = StagesIn<double>(stages);
  }
  // A number that overflows the serving type makes the plan invalid.
  const absl::Status valid = plans.served.Validate();
  return valid.ok() ? valid : NotRepresentable(as.serving_type, valid.message());
}

absl::Status NotRepresentable(FloatType type, absl::string_view what) {
  return WithRemedy(MakeError(absl::StatusCode::kFailedPrecondition, reason::kValueNotRepresentable,
                              "serving_type",
                              absl::StrCat("the mapping's numbers do not fit into ",
                                           FloatTypeName(type), " (", what, ")")),
                    "standardize the inputs, rescale the kernel or serve in float64");
}

}  // namespace phimap
