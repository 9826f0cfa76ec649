// The models that kernel SGD trains. They are linear in features or in kernel values.
#ifndef PHIMAP_CORE_LEARN_KERNEL_MODELS_H_
#define PHIMAP_CORE_LEARN_KERNEL_MODELS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/learn/learner.h"
#include "core/learn/row_map.h"

namespace phimap {

// A model with one separator per class. A separator tells its class from all others. Two classes
// have a single separator; if its value is s, the scores are −s and s.
class OneAgainstRestModel : public Model {
 public:
  OneAgainstRestModel(int64_t columns, int32_t class_count, std::string summary)
      : columns_(columns), class_count_(class_count), summary_(std::move(summary)) {}

  int64_t columns() const override { return columns_; }
  int32_t class_count() const override { return class_count_; }
  std::string Summary() const override { return summary_; }
  absl::Status Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                      Checkpoint checkpoint) const override;

 private:
  // Sets values_ij to the value of separator j on row i. Called with at most 256 rows.
  virtual absl::Status Values(ConstMatrixView<double> rows, MatrixView<double> values) const = 0;

  int64_t columns_;
  int32_t class_count_;
  std::string summary_;
};

// A model that scores a row x by w·F(x). The features F(x) are computed by `map`. `weights` has one
// row w per separator.
class MappedModel : public OneAgainstRestModel {
 public:
  MappedModel(std::shared_ptr<const RowMap> map, Matrix<double> weights, int32_t class_count,
              std::string summary)
      : OneAgainstRestModel(map->input_columns(), class_count, std::move(summary)),
        map_(std::move(map)),
        weights_(std::move(weights)) {}

 private:
  absl::Status Values(ConstMatrixView<double> rows, MatrixView<double> values) const override;

  std::shared_ptr<const RowMap> map_;
  Matrix<double> weights_;
};

// A model that scores a row x by Σ_i u_i K(x_i, x), where the x_i are the given rows.
// `coefficients` has one row u per separator and one column per row x_i.
class ExpansionModel : public OneAgainstRestModel {
 public:
  ExpansionModel(KernelProgram kernel, Matrix<double> rows, Matrix<double> coefficients,
                 int32_t class_count, std::string summary);

 private:
  absl::Status Values(ConstMatrixView<double> rows, MatrixView<double> values) const override;

  KernelProgram kernel_;
  Matrix<double> rows_;
  std::vector<double> norms_;
  Matrix<double> coefficients_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_KERNEL_MODELS_H_
