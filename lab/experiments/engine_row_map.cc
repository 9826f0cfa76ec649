#include "lab/experiments/engine_row_map.h"

#include "absl/types/span.h"
#include "core/plan/examples.h"
#include "core/plan/rows.h"
#include "core/status/check.h"

namespace phimap::lab {

EngineRowMap::EngineRowMap(BuiltMap map) : map_(std::move(map)) {
  PHIMAP_CHECK(map_.engine().serving_type() == FloatType::kFloat64);
}

absl::Status EngineRowMap::Map(ConstMatrixView<double> rows, MatrixView<double> out) const {
  PHIMAP_CHECK(rows.rows() == out.rows() && rows.cols() == input_columns());
  PHIMAP_CHECK(rows.rows() <= 1 || (rows.stride() == rows.cols() && out.stride() == out.cols()));
  TransformPart part = {
      .rows = ExamplesView(RowsView{.data = reinterpret_cast<const char*>(rows.data()),
                                    .type = FloatType::kFloat64,
                                    .rows = rows.rows(),
                                    .columns = rows.cols()}),
      .features = out.data()};
  map_.engine().Transform(absl::MakeSpan(&part, 1), scratch_);
  return part.status;
}

}  // namespace phimap::lab
