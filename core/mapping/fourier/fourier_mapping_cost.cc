// Cost of the builder of fourier_mapping.h.
#include <algorithm>

#include "core/mapping/fourier/fourier_mapping.h"
#include "core/mapping/projection/random_projection.h"

namespace phimap {
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
