#include "core/mapping/fourier_mapping.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/mapping/random_projection.h"
#include "core/random/random_stream.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr double kTurn = 6.283185307179586;  // 2π

void FillIndependent(uint64_t seed, MatrixView<double> rows) {
  const RandomStream normals(seed, StreamId::kFourierFrequencies);
  for (int64_t j = 0; j < rows.rows(); ++j) {
    for (int64_t k = 0; k < rows.cols(); ++k) {
      rows(j, k) = normals.Normal(static_cast<uint64_t>(j * rows.cols() + k));
    }
  }
}

// The ratio of two normal numbers is Cauchy, and a division rounds alike everywhere.
void FillCauchy(uint64_t seed, MatrixView<double> rows) {
  const RandomStream normals(seed, StreamId::kFourierCauchy);
  for (int64_t j = 0; j < rows.rows(); ++j) {
    for (int64_t k = 0; k < rows.cols(); ++k) {
      const auto index = static_cast<uint64_t>(2 * (j * rows.cols() + k));
      rows(j, k) = normals.Normal(index) / normals.Normal(index + 1);
    }
  }
}

absl::Status FillOrthogonal(uint64_t seed, MatrixView<double> rows, Checkpoint checkpoint) {
  const int64_t p = rows.cols();
  const RandomStream normals(seed, StreamId::kFourierLengths);
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

KernelProgram ProgramOf(const FourierTask& task) {
  // Roots first: no product overflows.
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

std::optional<FourierKernel> FourierKernelOf(const KernelExpression& kernel) {
  FourierKernel found;
  const KernelNode* node = &kernel.root();
  for (; node->kind == KernelNode::Kind::kScaled; node = node->children[0].get()) {
    found.factor *= node->factor;
  }
  found.laplacian = node->kind == KernelNode::Kind::kLaplacian;
  if (node->kind != KernelNode::Kind::kRbf && !found.laplacian) return std::nullopt;
  if (!(found.factor > 0) || !std::isfinite(found.factor)) return std::nullopt;
  found.gamma = node->gamma;
  return found;
}

absl::StatusOr<PlanPair> BuildFourier(const ServedAs& as, const FourierTask& task,
                                      Checkpoint checkpoint) {
  const bool pair = task.form == FourierForm::kSinCos;
  PHIMAP_CHECK(task.dimensions >= 1 && (!pair || task.dimensions % 2 == 0));
  PHIMAP_CHECK(!(task.orthogonal && task.kernel.laplacian));
  StageNumbers stages;
  stages.rows = Matrix<double>::Uninit(pair ? task.dimensions / 2 : task.dimensions,
                                       as.input.output_columns());
  if (task.orthogonal) {
    PHIMAP_RETURN_IF_ERROR(FillOrthogonal(task.seed, stages.rows.view(), checkpoint));
  } else if (task.kernel.laplacian) {
    FillCauchy(task.seed, stages.rows.view());
  } else {
    FillIndependent(task.seed, stages.rows.view());
  }
  const double scale =
      (task.kernel.laplacian ? task.kernel.gamma : std::sqrt(2.0) * std::sqrt(task.kernel.gamma)) /
      kTurn;
  for (int64_t i = 0; i < stages.rows.size(); ++i) stages.rows.data()[i] *= scale;
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

}  // namespace phimap
