#include "core/mapping/fourier/fourier_mapping.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/mapping/projection/random_projection.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr double kTurn = 6.283185307179586;  // 2π

// Fills `rows` with numbers from a Cauchy distribution. They are ratios of two normal numbers,
// because division gives the same bits on every machine.
void FillCauchy(uint64_t seed, MatrixView<double> rows) {
  const RandomStream normals(seed, StreamId::kFourierCauchy);
  for (int64_t j = 0; j < rows.rows(); ++j) {
    for (int64_t k = 0; k < rows.cols(); ++k) {
      const auto index = static_cast<uint64_t>(2 * (j * rows.cols() + k));
      rows(j, k) = normals.Normal(index) / normals.Normal(index + 1);
    }
  }
}

void FillUnscaled(FourierLaw::Numbers numbers, uint64_t seed, MatrixView<double> rows) {
  switch (numbers) {
    case FourierLaw::Numbers::kNormal:
      return FillNormalRows(seed, StreamId::kFourierFrequencies, rows);
    case FourierLaw::Numbers::kCauchy:
      return FillCauchy(seed, rows);
  }
  PHIMAP_CHECK(false);
}

absl::Status FillFrequencies(const FourierTask& task, MatrixView<double> rows,
                             Checkpoint checkpoint) {
  if (task.orthogonal) {
    PHIMAP_CHECK(task.kernel.has_uniform_directions());
    PHIMAP_RETURN_IF_ERROR(
        FillOrthogonalNormalRows(task.seed, StreamId::kFourierLengths, rows, checkpoint));
  } else {
    FillUnscaled(task.kernel.law->numbers, task.seed, rows);
  }
  std::vector<double> factors(static_cast<size_t>(rows.cols()));
  for (int64_t k = 0; k < rows.cols(); ++k) factors[k] = task.kernel.ColumnFactor(k);
  for (int64_t j = 0; j < rows.rows(); ++j) {
    const double scale = task.kernel.law->row_scale(task.kernel.values, task.seed, j) / kTurn;
    for (int64_t k = 0; k < rows.cols(); ++k) rows(j, k) *= scale * factors[k];
  }
  return absl::OkStatus();
}

KernelProgram ProgramOf(const FourierTask& task) {
  // The product of the roots cannot overflow, unlike the root of the product.
  const double amplitude =
      std::sqrt(2 / static_cast<double>(task.dimensions)) * std::sqrt(task.kernel.factor);
  std::vector<KernelOp> ops;
  if (task.form == FourierForm::kSinCos) {
    ops = {{.code = KernelOpCode::kPushProduct},
           {.code = KernelOpCode::kCosSinTurns, .a = amplitude}};
  } else {
    ops = {{.code = KernelOpCode::kPushShiftedProduct},
           {.code = KernelOpCode::kCosTurns, .a = amplitude}};
  }
  absl::StatusOr<KernelProgram> program = KernelProgram::FromOps(std::move(ops));
  PHIMAP_CHECK(program.ok());
  return *std::move(program);
}

}  // namespace

void FillNormalRows(uint64_t seed, StreamId stream, MatrixView<double> rows) {
  const RandomStream normals(seed, stream);
  for (int64_t j = 0; j < rows.rows(); ++j) {
    for (int64_t k = 0; k < rows.cols(); ++k) {
      rows(j, k) = normals.Normal(static_cast<uint64_t>(j * rows.cols() + k));
    }
  }
}

absl::Status FillOrthogonalNormalRows(uint64_t seed, StreamId lengths, MatrixView<double> rows,
                                      Checkpoint checkpoint) {
  const int64_t p = rows.cols();
  const RandomStream normals(seed, lengths);
  for (int64_t begin = 0; begin < rows.rows(); begin += p) {
    const int64_t count = std::min(p, rows.rows() - begin);
    const auto progress = [&](double f) {
      return checkpoint((static_cast<double>(begin) + f * static_cast<double>(count)) /
                        static_cast<double>(rows.rows()));
    };
    PHIMAP_RETURN_IF_ERROR(FillOrthonormalRows(seed, static_cast<uint64_t>(begin * p),
                                               rows.Rows(begin, count), progress));
    for (int64_t j = begin; j < begin + count; ++j) {
      double square = 0;
      for (int64_t k = 0; k < p; ++k) {
        const double z = normals.Normal(static_cast<uint64_t>(j * p + k));
        square += z * z;
      }
      for (int64_t k = 0; k < p; ++k) rows(j, k) *= std::sqrt(square);
    }
  }
  return absl::OkStatus();
}

std::optional<FourierKernel> FourierKernelOf(const KernelExpression& kernel) {
  FourierKernel found;
  const KernelNode* const node = kernel.ScaledLeaf(&found.factor);
  if (node == nullptr || node->leaf->fourier == nullptr) return std::nullopt;
  if (!(found.factor > 0) || !std::isfinite(found.factor)) return std::nullopt;
  found.law = node->leaf->fourier;
  found.values = node->values;
  return found;
}

absl::StatusOr<PlanPair> BuildFourier(const ServedAs& as, const FourierTask& task,
                                      Checkpoint checkpoint) {
  const bool pair = task.form == FourierForm::kSinCos;
  PHIMAP_CHECK(task.dimensions >= 1 && (!pair || task.dimensions % 2 == 0));
  StageNumbers stages;
  stages.rows = Matrix<double>::Uninit(pair ? task.dimensions / 2 : task.dimensions,
                                       as.input.output_columns());
  PHIMAP_RETURN_IF_ERROR(FillFrequencies(task, stages.rows.view(), checkpoint));
  stages.program = ProgramOf(task);
  if (!pair) {
    const RandomStream phases(task.seed, StreamId::kFourierPhases);
    for (int64_t j = 0; j < stages.rows.rows(); ++j) {
      stages.offsets.push_back(phases.UniformOpen01(static_cast<uint64_t>(j)));
    }
  }
  PHIMAP_RETURN_IF_ERROR(checkpoint(1));
  PlanPair plans;
  PHIMAP_RETURN_IF_ERROR(EmitPlans(as, stages, plans));
  return plans;
}

namespace {

// Returns the work of FillOrthogonalNormalRows, which fills one block of `columns` rows at a time.
Work WorkOfOrthogonal(int64_t frequencies, int64_t columns) {
  // The length of a frequency takes `columns` normal numbers.
  Work work{.elements = ElementsOfEntry(ProjectionKind::kGaussian) *
                        static_cast<double>(frequencies) * static_cast<double>(columns)};
  for (int64_t begin = 0; begin < frequencies; begin += columns) {
    work += WorkOfOrthonormalRows(std::min(columns, frequencies - begin), columns);
  }
  return work;
}

}  // namespace

MappingCost CostOfFourier(const FourierShape& shape) {
  const bool pair = shape.form == FourierForm::kSinCos;
  const int64_t frequencies = pair ? shape.dimensions / 2 : shape.dimensions;
  const int64_t numbers = frequencies * shape.columns;
  const int64_t offsets = pair ? 0 : frequencies;
  const double entries = static_cast<double>(numbers);
  MappingCost cost{.plan_numbers = numbers + offsets, .output_columns = shape.dimensions};
  cost.row = {.product_flops = 2 * entries, .elements = static_cast<double>(shape.dimensions)};
  const bool cauchy = shape.law->numbers == FourierLaw::Numbers::kCauchy;
  const double normals = (cauchy ? 2 * entries : entries) +
                         static_cast<double>(frequencies * shape.law->numbers_of_row);
  cost.work = shape.orthogonal
                  ? WorkOfOrthogonal(frequencies, shape.columns)
                  : Work{.elements = ElementsOfEntry(ProjectionKind::kGaussian) * normals};
  cost.work.elements += 3 * entries;  // scaled, and rounded into both plans
  cost.kept_bytes = PlanPairBytes(shape.serving_type, numbers + offsets);
  const int64_t making =
      shape.orthogonal ? BytesOfOrthonormalRows(std::min(shape.columns, frequencies), shape.columns)
                       : int64_t{0};
  cost.build_bytes = kDoubleBytes * (numbers + offsets) + std::max(making, cost.kept_bytes);
  return cost;
}

}  // namespace phimap
