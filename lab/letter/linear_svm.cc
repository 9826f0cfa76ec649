#include "lab/letter/linear_svm.h"

#include <linear.h>

#include <memory>

#include "core/status/check.h"

namespace phimap::lab {
namespace {

constexpr double kBias = 1;

// liblinear's form of a row: index from 1 and value, the bias behind the features, then an end
// mark.
void FillNodes(const client::RowBlock& features, int32_t row, feature_node* nodes) {
  for (int32_t j = 0; j < features.columns; ++j) {
    nodes[j] = {.index = j + 1, .value = features.At(row, j)};
  }
  nodes[features.columns] = {.index = features.columns + 1, .value = kBias};
  nodes[features.columns + 1] = {.index = -1, .value = 0};
}

struct ModelDeleter {
  void operator()(model* trained) const { free_and_destroy_model(&trained); }
};
using Model = std::unique_ptr<model, ModelDeleter>;

Model Train(const client::RowBlock& features, const std::vector<double>& classes,
            const std::vector<int32_t>& rows) {
  const size_t stride = features.columns + 2;
  std::vector<feature_node> nodes(rows.size() * stride);
  std::vector<feature_node*> starts;
  std::vector<double> targets;
  for (size_t i = 0; i < rows.size(); ++i) {
    starts.push_back(nodes.data() + i * stride);
    FillNodes(features, rows[i], starts.back());
    targets.push_back(classes[rows[i]]);
  }
  const problem input{.l = static_cast<int>(rows.size()),
                      .n = features.columns + 1,
                      .y = targets.data(),
                      .x = starts.data(),
                      .bias = kBias};
  parameter options{};
  options.solver_type = L2R_L2LOSS_SVC;
  options.C = 1;
  options.eps = 0.01;
  PHIMAP_CHECK(check_parameter(&input, &options) == nullptr);
  return Model(train(&input, &options));
}

}  // namespace

double TestAccuracy(const client::RowBlock& features, const std::vector<double>& classes,
                    const Split& split) {
  // It would print a line for each step of the solver.
  set_print_string_function([](const char*) {});
  const Model trained = Train(features, classes, split.train);
  std::vector<feature_node> nodes(features.columns + 2);
  int64_t right = 0;
  for (const int32_t row : split.test) {
    FillNodes(features, row, nodes.data());
    right += predict(trained.get(), nodes.data()) == classes[row];
  }
  return static_cast<double>(right) / static_cast<double>(split.test.size());
}

}  // namespace phimap::lab
