#include "core/engine/panel_engine.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/number_rows.h"
#include "core/status/check.h"
#include "core/status/error.h"

namespace phimap {

template <typename T>
struct PanelEngine<T>::Memory {
  std::vector<RowPlace> tile;
  NumberRows<T> features;  // used only if the plan projects features
  std::array<T*, kMaxTileRows> outputs;
  std::array<bool, kMaxTileRows> finite;
};

template <typename T>
PanelEngine<T>::PanelEngine(PanelStages<T> stages)
    : Engine({.input = stages.input->input(),
              .output_columns = stages.output_columns,
              .serving_type = sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64}),
      stages_(std::move(stages)) {}

template <typename T>
int64_t PanelEngine<T>::memory_bytes() const {
  return stages_.input->memory_bytes() + stages_.features->memory_bytes() +
         stages_.projection.memory_bytes();
}

template <typename T>
int64_t PanelEngine<T>::multiplications_per_row() const {
  return stages_.input->multiplications() + stages_.features->multiplications() +
         stages_.projection.multiplications();
}

// In the first product, a row that stays sparse costs only its entries.
template <typename T>
double PanelEngine<T>::Multiplications(const ExamplesView& rows) const {
  const double all = Engine::Multiplications(rows) + stages_.features->multiplications_per_byte() *
                                                         static_cast<double>(rows.bytes());
  if (!stages_.input->StaysSparse(rows)) return all;
  const int64_t projects = stages_.input->multiplications();
  const double dense =
      static_cast<double>(projects > 0 ? projects : stages_.features->multiplications_of_numbers());
  const double named =
      static_cast<double>(rows.sparse()->entries()) / static_cast<double>(input_columns());
  return all - dense * (static_cast<double>(rows.rows()) - named * kSparseCost);
}

// Rows that stay sparse do not share a tile with other rows, because all rows of a mixed tile would
// be made dense.
template <typename T>
void PanelEngine<T>::Transform(absl::Span<TransformPart> parts, EngineScratch& scratch) const {
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

template <typename T>
void PanelEngine<T>::TransformTile(absl::Span<const RowPlace> tile, Memory& memory,
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

template <typename T>
absl::Status PanelEngine<T>::Overflow(int64_t row) const {
  return WithRemedy(
      MakeError(absl::StatusCode::kOutOfRange, "VALUE_NOT_REPRESENTABLE",
                absl::StrCat("rows[", row, "]"),
                absl::StrCat("kernel values or features of this row overflow ",
                             FloatTypeName(serving_type()), stages_.features->overflow_cause()),
                {{"row", absl::StrCat(row)}}),
      stages_.features->overflow_remedy());
}

template class PanelEngine<float>;
template class PanelEngine<double>;

}  // namespace phimap
