// The engine that runs on the vector unit of this machine: an input stage, a feature stage and a
// projection stage, put together.
#include <array>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/stages.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Maximum bytes of the dense form of a sparse W. The limit is needed because an artifact of few
// bytes can state a large shape.
constexpr int64_t kMaxUnfoldedBytes = int64_t{1} << 30;

// One overload for each form of W.
template <typename T>
struct PackProjection {
  absl::StatusOr<PanelMatrix<T>> operator()(const NoProjection&) const { return PanelMatrix<T>(); }
  absl::StatusOr<PanelMatrix<T>> operator()(const TriangularProjection<T>& triangle) const {
    return PanelMatrix<T>::PackUpperTriangle(triangle.elements.data(), triangle.order);
  }
  absl::StatusOr<PanelMatrix<T>> operator()(const DenseProjection<T>& dense) const {
    return PanelMatrix<T>::Pack(dense.matrix.view());
  }
  // A zero does not change a chain of multiply-adds, so the dense form gives the same bits.
  absl::StatusOr<PanelMatrix<T>> operator()(const SparseProjection<T>& sparse) const {
    const int64_t unfolded = sparse.rows * sparse.columns * static_cast<int64_t>(sizeof(T));
    if (unfolded > kMaxUnfoldedBytes) {
      return MakeError(
          absl::StatusCode::kResourceExhausted, reason::kProjectionTooLarge, "",
          absl::StrCat("the version's sparse projection of ", sparse.rows, " by ", sparse.columns,
                       " takes ", unfolded, " bytes in memory; at most ", kMaxUnfoldedBytes,
                       " are allowed"),
          {{"limit", absl::StrCat(kMaxUnfoldedBytes)}, {"actual", absl::StrCat(unfolded)}});
    }
    Matrix<T> matrix(sparse.rows, sparse.columns);
    for (int64_t k = 0; k < sparse.rows; ++k) {
      for (int64_t i = sparse.row_offsets[k]; i < sparse.row_offsets[k + 1]; ++i) {
        matrix(k, sparse.column_indices[i]) = sparse.values[i];
      }
    }
    return PanelMatrix<T>::Pack(matrix.view());
  }
};

// The projection stage y = (z − μ)·W. Holds W in panels, in whatever form the plan has W.
// Immutable, thread-safe.
template <typename T>
class ProjectionRunner {
 public:
  // RESOURCE_EXHAUSTED if the dense form of a sparse W takes over 1 GiB. Throws std::bad_alloc.
  static absl::StatusOr<ProjectionRunner> Load(const ServingStages<T>& stages) {
    ProjectionRunner runner;
    runner.centre_ = stages.centre;
    PHIMAP_ASSIGN_OR_RETURN(runner.matrix_, std::visit(PackProjection<T>{}, stages.projection));
    return runner;
  }

  // Whether there is no W, so that features are the outputs; z and y are then the same memory.
  bool in_place() const { return matrix_.columns() == 0; }
  // Whether the stage does nothing.
  bool empty() const { return in_place() && centre_.empty(); }

  // Computes y[i] for each of `count` rows of features z[i], and overwrites z. Sets finite[i] to
  // false if an output of row i is not finite. REQUIRES: not empty(). If in_place(), z = y.
  // Otherwise z[i] = z[0] + i · stride.
  void Run(T* const* z, int64_t stride, int64_t count, T* const* y, bool* finite) const {
    const int64_t features = static_cast<int64_t>(centre_.size());
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < features; ++j) z[i][j] -= centre_[j];
    }
    if (in_place()) {
      CheckFinite(y, count, features, finite);
    } else {
      matrix_.MultiplyAndCheck(z[0], stride, count, y, finite);
    }
  }

  int64_t memory_bytes() const {
    return matrix_.memory_bytes() + static_cast<int64_t>(centre_.size() * sizeof(T));
  }
  int64_t multiplications() const { return matrix_.multiplications(); }

 private:
  std::vector<T> centre_;  // μ; empty for 0
  PanelMatrix<T> matrix_;
};

// The stages of a plan, packed into panels.
template <typename T>
struct PanelStages {
  std::unique_ptr<const InputRunner<T>> input;
  std::unique_ptr<const FeatureRunner<T>> features;
  ProjectionRunner<T> projection;
  int64_t output_columns = 0;
};

// Cuts batches into tiles, and runs the stages on each, with one virtual call per stage and tile.
template <typename T>
class PanelEngine final : public Engine {
 public:
  explicit PanelEngine(PanelStages<T> stages)
      : Engine({.input = stages.input->input(),
                .output_columns = stages.output_columns,
                .serving_type = sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64}),
        stages_(std::move(stages)) {}

  int64_t memory_bytes() const override {
    return stages_.input->memory_bytes() + stages_.features->memory_bytes() +
           stages_.projection.memory_bytes();
  }
  int64_t multiplications_per_row() const override {
    return stages_.input->multiplications() + stages_.features->multiplications() +
           stages_.projection.multiplications();
  }

  // In the first product, a row that stays sparse costs only its entries.
  double Multiplications(const ExamplesView& rows) const override {
    const double all =
        Engine::Multiplications(rows) +
        stages_.features->multiplications_per_byte() * static_cast<double>(rows.bytes());
    if (!stages_.input->StaysSparse(rows)) return all;
    const int64_t projects = stages_.input->multiplications();
    const double dense = static_cast<double>(
        projects > 0 ? projects : stages_.features->multiplications_of_numbers());
    const double named =
        static_cast<double>(rows.sparse()->entries()) / static_cast<double>(input_columns());
    return all - dense * (static_cast<double>(rows.rows()) - named * kSparseCost);
  }

  // Rows that stay sparse do not share a tile with other rows, because all rows of a mixed tile
  // would be made dense.
  void Transform(absl::Span<TransformPart> parts, EngineScratch& scratch) const override {
    Memory& memory = scratch.Of<Memory>();
    std::vector<RowPlace>& tile = memory.tile;
    tile.clear();
    tile.reserve(kMaxTileRows);
    bool tile_is_sparse = false;
    for (TransformPart& part : parts) {
      PHIMAP_CHECK(CheckTakes(part.rows).ok());
      part.status = absl::OkStatus();
      const bool stays_sparse = stages_.input->StaysSparse(part.rows);
      if (!tile.empty() && stays_sparse != tile_is_sparse) {
        TransformTile(tile, memory, scratch);
        tile.clear();
      }
      tile_is_sparse = stays_sparse;
      const int64_t tile_rows = stays_sparse ? kSparseTileRows : kDenseTileRows;
      for (int64_t i = 0; i < part.rows.rows(); ++i) {
        tile.push_back({&part, i});
        if (static_cast<int64_t>(tile.size()) == tile_rows) {
          TransformTile(tile, memory, scratch);
          tile.clear();
        }
      }
    }
    if (!tile.empty()) TransformTile(tile, memory, scratch);
  }

 private:
  struct Memory {
    std::vector<RowPlace> tile;
    NumberRows<T> features;  // used only if the plan projects features
    std::array<T*, kMaxTileRows> outputs;
    std::array<bool, kMaxTileRows> finite;
  };

  void TransformTile(absl::Span<const RowPlace> tile, Memory& memory,
                     EngineScratch& scratch) const {
    const int64_t rows = tile.size();
    for (int64_t i = 0; i < rows; ++i) {
      memory.outputs[i] = static_cast<T*>(tile[i].part->features) + tile[i].row * output_columns();
    }
    T* const* const y = memory.outputs.data();
    const ProjectionRunner<T>& projection = stages_.projection;
    const int64_t stride = SpreadStride<T>(stages_.features->features());
    T* const* const z = projection.in_place() ? y : memory.features.Allocate(rows, stride);
    bool* const finite = memory.finite.data();
    std::fill_n(finite, rows, true);
    stages_.features->Run(stages_.input->Run(tile, scratch), z, finite,
                          projection.empty() ? FiniteCheck::kFeatures : FiniteCheck::kInputs,
                          scratch);
    if (!projection.empty()) projection.Run(z, stride, rows, y, finite);
    for (int64_t i = 0; i < rows; ++i) {
      absl::Status& status = tile[i].part->status;
      if (!finite[i] && status.ok()) status = Overflow(tile[i].row);
    }
  }

  absl::Status Overflow(int64_t row) const {
    return WithRemedy(
        MakeError(absl::StatusCode::kOutOfRange, reason::kValueNotRepresentable,
                  absl::StrCat("rows[", row, "]"),
                  absl::StrCat("kernel values or features of this row overflow ",
                               FloatTypeName(serving_type()), stages_.features->overflow_cause()),
                  {{"row", absl::StrCat(row)}}),
        stages_.features->overflow_remedy());
  }

  const PanelStages<T> stages_;
};

template <typename T>
absl::StatusOr<std::unique_ptr<const Engine>> LoadEngine(const InputStage& input,
                                                         const ServingStages<T>& stages) {
  PanelStages<T> packed;
  PHIMAP_ASSIGN_OR_RETURN(
      packed.features,
      std::visit([](const auto& features) { return LoadFeatures<T>(features); }, stages.features));
  packed.input = LoadInput(input, stages, *packed.features);
  PHIMAP_ASSIGN_OR_RETURN(packed.projection, ProjectionRunner<T>::Load(stages));
  packed.output_columns = stages.output_columns();
  return std::make_unique<const PanelEngine<T>>(std::move(packed));
}

// Packs a plan's matrices into panels for the vector unit at hand, and chooses a runner for each
// stage.
class PanelEngines final : public EngineBackend {
 public:
  absl::string_view name() const override { return "panels"; }
  bool RunsArithmetic(uint32_t arithmetic) const override { return arithmetic == kArithmetic; }
  absl::StatusOr<std::unique_ptr<const Engine>> Load(const Plan& plan) const override {
    return std::visit([&](const auto& stages) { return LoadEngine(plan.input, stages); },
                      plan.stages);
  }
};

}  // namespace

const EngineBackend& PanelBackend() {
  static const PanelEngines* const panels = new PanelEngines();
  return *panels;
}

}  // namespace phimap
