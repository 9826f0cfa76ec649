// A mapping that phimap can build, described in one descriptor.
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
  // After the input stage.
  int64_t columns = 0;
  FloatType serving_type = FloatType::kFloat32;
  // Most threads that build at once: each may hold a tile.
  int threads = 1;
};

// Input for a theorem's numbers beside the mapping's parameters.
struct TheoremTask {
  const MappingSpec& spec;
  const BuiltMapping& built;
  // The kernel with all parameters resolved.
  const KernelExpression& kernel;
  const InputStage& input;
  // Rows before the input stage.
  ConstMatrixView<double> held_out;
};

// Each mapping is defined in a file of its own and listed in mapping_table.h. Parsing, validation,
// the API, forecasts, builds and certificates ask the descriptor; none of them knows a mapping by
// name. A function that is null has nothing to say.
struct Mapping {
  // Name in texts: "kpca".
  absl::string_view name;
  // Lower-case name in the API's enum, if it is another: "kernel_pca".
  absl::string_view long_name;
  // Description, for people.
  absl::string_view line;
  // Names of its parameters (mapping_parameters.h), in the order of its text.
  absl::Span<const absl::string_view> parameters;
  // Kernels that it takes, for people.
  absl::string_view kernels;
  // The leaf kernels among those; null: all, and composed kernels.
  bool (*takes_leaf)(const LeafKernel& leaf) = nullptr;
  // The kernel where none is given; empty: one must be given.
  absl::string_view default_kernel;
  // The theorem it may print, for people, without its numbers.
  absl::string_view theorem_line;

  // The landmarks' Gram matrix is factored: the certificate describes rank, pivots and spectrum.
  bool has_factor = false;
  // Features are the coordinates of φ(x)'s projection, so that K(x, x) − ‖F(x)‖² is its residual.
  bool features_are_projection = false;
  // F(x)·F(y) approximates K(x, y), centred if `centres_kernel` is true.
  bool approximates_kernel = true;
  // ‖F(x)‖ is about √K(x, x) or less, so that features far smaller than that are round-off alone.
  bool bounded_by_kernel = false;
  // Any similarity will do in place of a kernel.
  bool takes_similarities = false;
  // Sees only differences of rows: the input stage may centre dense ones for more digits.
  bool sees_differences = false;
  // Whether a rule may find the number of landmarks (MappingSpec::count_rule). The features of the
  // first landmarks must not depend on later ones.
  bool takes_count_rule = false;
  // The theorem is proven for uniform landmarks: another policy prints its own theorem.
  bool theorem_is_of_uniform = false;
  // Rows that the theorem speaks of, where the policy does not say so.
  absl::string_view theorem_scope;

  // Ranges and combinations of parameters, beyond each one's own range. Names the parameter as
  // field, without a prefix.
  absl::Status (*validate)(const MappingSpec& spec) = nullptr;
  // Whether the kernel, which is computed here, suits the mapping.
  absl::Status (*check_kernel)(const BuildSpec& spec) = nullptr;
  // Whether the number of columns suits the mapping.
  absl::Status (*check_columns)(const BuildSpec& spec, int64_t columns) = nullptr;
  // Whether F(x)·F(y) approximates K centred on the landmarks (KernelCentre).
  bool (*centres_kernel)(const MappingSpec& spec) = nullptr;
  MappingCost (*cost)(const MappingShape& shape) = nullptr;
  // Emits the plans. Bits depend on spec and task alone, not on threads.
  absl::StatusOr<BuiltMapping> (*build)(const BuildSpec& spec, const LandmarkTask& task,
                                        const TileControl& control) = nullptr;
  // Share of `build`'s reported progress at which the Gram matrix is done; null for mappings
  // without one.
  double (*gram_share)(const BuildSpec& spec, const LandmarkTask& task) = nullptr;
  // Source, promise and, where they are fixed, numbers (docs/maths.md).
  std::string (*theorem)(const TheoremTask& task) = nullptr;

  bool Has(absl::string_view parameter) const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_H_
