// random_projection(dimensions=…): Johnson–Lindenstrauss, R·x for a random R.
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/projection/projection_mappings.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"

namespace phimap {
namespace {

constexpr absl::string_view kProjectionParameters[] = {"dimensions", "projection", "held_out_rows",
                                                       "serving_type"};

std::string ProjectionTheorem(const TheoremTask& task) {
  return ProjectionTheoremText(task.spec.projection, task.spec.dimensions);
}

}  // namespace

extern const Family kRandomProjectionFamily;
constinit const Family kRandomProjectionFamily = {
    .name = "random_projection",
    .line = "Johnson–Lindenstrauss: R·x for a random R, which keeps lengths and angles",
    .parameters = kProjectionParameters,
    .kernels = "linear(), optionally scaled by c > 0",
    .takes_leaf = [](const LeafKernel& leaf) { return leaf.is_inner_product; },
    .default_kernel = "linear()",
    .theorem_line = "lengths are kept within 1 ± e (Balcan, Blum, Vempala 2006, Theorem 2)",
    .aim = Aim::kDistances,
    .theorem_scope = "rows that do not depend on the seed, as they are after scaling",
    .check_kernel = RequireLinear,
    .check_columns = CheckOrthonormalRows,
    .cost = CostOfProjectionMapping,
    .build = BuildProjectionMapping,
    .theorem = ProjectionTheorem,
};

}  // namespace phimap
