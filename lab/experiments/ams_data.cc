#include "lab/experiments/ams_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"
#include "lab/examples.h"

namespace phimap::lab {

absl::StatusOr<std::vector<KernelData>> ReadKernelData(const Options& options, double width) {
  std::vector<KernelData> all;
  for (const char* name : {"letter", "spam"}) {
    PHIMAP_ASSIGN_OR_RETURN(Examples examples, ReadExamples(options.data_dir, name));
    Standardize(examples.rows);
    const double gamma = width / static_cast<double>(examples.rows.cols());
    PHIMAP_ASSIGN_OR_RETURN(KernelExpression kernel,
                            KernelExpression::Parse(absl::StrFormat("rbf(gamma=%.17g)", gamma)));
    KernelProgram program = KernelProgram::Compile(kernel);
    all.push_back({.name = name,
                   .rows = std::move(examples.rows),
                   .kernel = std::move(kernel),
                   .program = std::move(program)});
  }
  return all;
}

Matrix<double> DrawnRows(const KernelData& data, int64_t first, int64_t count, uint64_t seed) {
  const std::vector<int64_t> order =
      FirstOfPermutation(data.rows.rows(), first + count, RandomStream(seed, StreamId::kLabOrder));
  Matrix<double> drawn = Matrix<double>::Uninit(count, data.columns());
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(data.rows.row(order[static_cast<size_t>(first + i)]), data.columns(), drawn.row(i));
  }
  return drawn;
}

std::string NameOf(const GramRandomization& randomization) {
  if (!randomization.quantise) return "sparsified";
  return randomization.sparsify > 1 ? "both" : "quantised";
}

}  // namespace phimap::lab
