// Descriptor of a mapping that phimap can build.
#ifndef PHIMAP_CORE_MAPPING_SPEC_MAPPING_H_
#define PHIMAP_CORE_MAPPING_SPEC_MAPPING_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/linalg/matrix.h"
#include "core/mapping/spec/mapping_cost.h"
#include "core/plan/rows.h"

namespace phimap {

class KernelExpression;
class TileControl;
struct BuildSpec;
struct BuiltMapping;
struct InputStage;
struct LandmarkTask;
struct LeafKernel;
struct MappingSpec;

// Input for a forecast of a mapping's cost.
struct MappingShape {
  const BuildSpec& spec;
  // Number of columns after the input stage.
  int64_t columns = 0;
  FloatType serving_type = FloatType::kFloat32;
  // Maximum number of threads that build at once. Each may hold a tile.
  int threads = 1;
};

// Input for the theorem of a mapping.
struct TheoremTask {
  const MappingSpec& spec;
  const BuiltMapping& built;
  // All parameters resolved.
  const KernelExpression& kernel;
  const InputStage& input;
  // Rows before the input stage.
  ConstMatrixView<double> held_out;
};

// Each mapping is defined in a file of its own and listed in mapping_table.h. Parsing, validation,
// the API, forecasts, builds and certificates use only the descriptor; none of them knows a mapping
// by name. A function that does not apply to the mapping is null.
struct Mapping {
  // Name in specs: "kpca".
  absl::string_view name;
  // Lower-case name in the API's enum, such as "kernel_pca"; empty if it is the same as `name`.
  absl::string_view long_name;
  // Description for users.
  absl::string_view line;
  // Names of the mapping's parameters (mapping_parameters.h), in the order in which its text lists
  // them.
  absl::Span<const absl::string_view> parameters;
  // Description of the accepted kernels, for users.
  absl::string_view kernels;
  // Whether a leaf kernel is accepted. Null if all leaf kernels and composed kernels are.
  bool (*takes_leaf)(const LeafKernel& leaf) = nullptr;
  // Kernel to use if the request names none; empty if the request must name one.
  absl::string_view default_kernel;
  // Summary of the mapping's theorem for users, without numbers.
  absl::string_view theorem_line;

  // The build factors the landmarks' Gram matrix, and the certificate describes rank, pivots and
  // spectrum.
  bool has_factor = false;
  // F(x) holds the coordinates of the projection of φ(x), so that K(x, x) − ‖F(x)‖² is the residual
  // of x.
  bool features_are_projection = false;
  // F(x)·F(y) approximates K(x, y), or the centred kernel if `centres_kernel` returns true.
  bool approximates_kernel = true;
  // ‖F(x)‖ is at most about √K(x, x), so that much smaller features are only round-off.
  bool bounded_by_kernel = false;
  // The mapping accepts any similarity in place of a kernel.
  bool takes_similarities = false;
  // The features depend only on differences of rows, so the input stage may centre dense rows to
  // keep more digits.
  bool sees_differences = false;
  // Whether the number of landmarks may be found by growing (MappingSpec::residual).
  bool grows_landmarks = false;
  // The theorem is proven only for uniform landmarks. Other policies state their own theorem.
  bool theorem_is_of_uniform = false;
  // Rows for which the theorem holds; empty if `theorem_is_of_uniform`, since these then depend on
  // the policy.
  absl::string_view theorem_scope;

  // Checks combinations of parameters, beyond the range of each. Errors have the parameter as
  // field, without a prefix.
  absl::Status (*validate)(const MappingSpec& spec) = nullptr;
  // Checks that the kernel suits the mapping. Not called for a remote kernel.
  absl::Status (*check_kernel)(const BuildSpec& spec) = nullptr;
  // Checks that the number of columns suits the mapping.
  absl::Status (*check_columns)(const BuildSpec& spec, int64_t columns) = nullptr;
  // Whether F(x)·F(y) approximates K centred on the landmarks (KernelCentre).
  bool (*centres_kernel)(const MappingSpec& spec) = nullptr;
  MappingCost (*cost)(const MappingShape& shape) = nullptr;
  // Builds both plans. The bits depend only on `spec` and `task`, not on the number of threads.
  absl::StatusOr<BuiltMapping> (*build)(const BuildSpec& spec, const LandmarkTask& task,
                                        const TileControl& control) = nullptr;
  // Returns the share of `build`'s reported progress at which the Gram matrix is done. Null for
  // mappings without a Gram matrix.
  double (*gram_share)(const BuildSpec& spec, const LandmarkTask& task) = nullptr;
  // Returns the theorem's source, its promise and, if the task determines them, its numbers
  // (docs/maths.md).
  std::string (*theorem)(const TheoremTask& task) = nullptr;

  bool Has(absl::string_view parameter) const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_H_
