#include "core/mapping/build/kernel_centre.h"

#include <numeric>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {

absl::StatusOr<std::vector<double>> MeanValues(const KernelProgram& program,
                                               ConstMatrixView<double> x, ConstMatrixView<double> z,
                                               const TileControl& control) {
  constexpr int64_t kTileRows = 256;
  const int64_t m = z.rows();
  PHIMAP_CHECK(m > 0);
  const std::vector<double> norms = SquaredNorms(x);
  const std::vector<double> z_norms = SquaredNorms(z);
  std::vector<double> means(static_cast<size_t>(x.rows()));
  PHIMAP_RETURN_IF_ERROR(
      ForEachRange(x.rows(), kTileRows, control, [&](int64_t begin, int64_t count) {
        const std::vector<double> tile_norms(norms.begin() + begin, norms.begin() + begin + count);
        Matrix<double> tile = Matrix<double>::Uninit(count, m);
        KernelBlock(program, x.Rows(begin, count), tile_norms, z, z_norms, tile.view());
        for (int64_t i = 0; i < count; ++i) {
          means[begin + i] =
              std::accumulate(tile.row(i), tile.row(i) + m, 0.0) / static_cast<double>(m);
        }
      }));
  return means;
}

}  // namespace phimap
