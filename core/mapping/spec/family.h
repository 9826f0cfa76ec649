// Family describes a family of mappings that phimap can build, such as f2. Lists all families.
#ifndef PHIMAP_CORE_MAPPING_SPEC_FAMILY_H_
#define PHIMAP_CORE_MAPPING_SPEC_FAMILY_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/certificate/certificate.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"
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

inline constexpr int64_t kDoubleBytes = sizeof(double);

// Cost and result sizes of building a mapping, for forecasts. Each builder has a function that
// returns its MappingCost. Forecasts assume full rank, and do not include the memory of the task
// itself.
struct MappingCost {
  Work work;
  // Peak memory of the builder, and memory of the finished mapping.
  int64_t build_bytes = 0;
  int64_t kept_bytes = 0;
  // The served plan: how many numbers its matrices have, how many features it computes, and its
  // work per row.
  int64_t plan_numbers = 0;
  int64_t output_columns = 0;
  Work row;
  // Rank of the factor; 0 if the mapping has no factor.
  int64_t rank = 0;
};

// Returns the bytes that `numbers` take in a PlanPair: in the served plan and in the reference.
inline int64_t PlanPairBytes(FloatType serving_type, int64_t numbers) {
  return (FloatTypeBytes(serving_type) + kDoubleBytes) * numbers;
}

// Input of a forecast of a mapping's cost.
struct MappingShape {
  const BuildSpec& spec;
  // Number of columns after the input stage.
  int64_t columns = 0;
  FloatType serving_type = FloatType::kFloat32;
  // Maximum number of threads that build at the same time. Each may hold a tile.
  int threads = 1;
};

// Input from which the numbers of a theorem are computed.
struct TheoremTask {
  const MappingSpec& spec;
  const BuiltMapping& built;
  // The kernel with all parameters resolved.
  const KernelExpression& kernel;
  const InputStage& input;
  // Held-out rows before the input stage.
  ConstMatrixView<double> held_out;
};

// Descriptor of a family of mappings. Each family is defined in a file of its own and listed in
// family.cc. Parsing, validation, the API, forecasts, builds and certificates use the
// descriptor, and do not depend on particular families. A function that is null is not called.
struct Family {
  // Name in text forms, such as "kpca".
  absl::string_view name;
  // Another name, which texts of release 0.1 may give; empty if there is none.
  absl::string_view earlier_name;
  // Description, for people.
  absl::string_view line;
  // Names of the family's parameters (mapping_parameters.h), in the order of its text form.
  absl::Span<const absl::string_view> parameters;
  // Meaning of the parameter `dimensions`; empty if it is the number of features.
  absl::string_view dimensions_line;
  // The kernels that the mapping accepts, for people.
  absl::string_view kernels;
  // Returns whether the mapping accepts this leaf kernel alone. Null if it accepts all leaf kernels
  // and their combinations.
  bool (*takes_leaf)(const LeafKernel& leaf) = nullptr;
  // The kernel of a build whose spec has no kernel. Empty if the spec must have one.
  absl::string_view default_kernel;
  // Summary of the theorem that a certificate may state, for people, without the theorem's numbers.
  absl::string_view theorem_line;

  // Whether the landmarks' Gram matrix is factored. Then the certificate has rank, pivots and
  // spectrum.
  bool has_factor = false;
  // Whether features are the coordinates of an orthogonal projection of φ(x). If so, K(x, x) −
  // ‖F(x)‖² is the residual of the projection.
  bool features_are_projection = false;
  // Whether F(x)·F(y) approximates K(x, y). If `centres_kernel` is true, it approximates the
  // centred kernel instead.
  bool approximates_kernel = true;
  // What the features are for, which decides what a version is judged by.
  Aim aim = Aim::kInnerProducts;
  // Whether ‖F(x)‖ is at most about √K(x, x). If so, features that are far smaller than √K(x, x)
  // are only round-off.
  bool bounded_by_kernel = false;
  // Whether the mapping accepts any similarity function in place of a kernel.
  bool takes_similarities = false;
  // Whether features depend only on differences of rows. Then the input stage may centre dense
  // rows, which keeps more digits.
  bool sees_differences = false;
  // Whether a rule may find the number of landmarks (MappingSpec::count_rule). The features of the
  // first landmarks must not depend on later ones.
  bool takes_count_rule = false;
  // Whether the theorem is proven for uniform landmarks only. With another policy, the certificate
  // states the policy's theorem instead.
  bool theorem_is_of_uniform = false;
  // Text for the certificate: the rows for which the theorem holds. Not used if the policy
  // determines these rows.
  absl::string_view theorem_scope;

  // Checks combinations of parameters; the range of each parameter is checked before. Errors have
  // the parameter as field, without a prefix.
  absl::Status (*validate)(const MappingSpec& spec) = nullptr;
  // Checks that the kernel suits the mapping. Not called for remote kernels.
  absl::Status (*check_kernel)(const BuildSpec& spec) = nullptr;
  // Checks that the number of columns suits the mapping.
  absl::Status (*check_columns)(const BuildSpec& spec, int64_t columns) = nullptr;
  // Returns whether F(x)·F(y) approximates K centred on the landmarks (KernelCentre).
  bool (*centres_kernel)(const MappingSpec& spec) = nullptr;
  MappingCost (*cost)(const MappingShape& shape) = nullptr;
  // Builds the plans. They depend only on the spec and the task, and not, even in the last bit, on
  // the number of threads.
  absl::StatusOr<BuiltMapping> (*build)(const BuildSpec& spec, const LandmarkTask& task,
                                        const TileControl& control) = nullptr;
  // Returns the share of `build`'s reported progress at which the Gram matrix is done. Null for
  // mappings without a Gram matrix.
  double (*gram_share)(const BuildSpec& spec, const LandmarkTask& task) = nullptr;
  // Returns the text of the theorem: its source and its statement. If the parameters determine the
  // numbers of the statement, the text includes them (docs/maths.md).
  std::string (*theorem)(const TheoremTask& task) = nullptr;

  bool Has(absl::string_view parameter) const;
};

// Returns the families in the order in which help lists them.
absl::Span<const Family* const> Families();
// Finds a family by its name; null if there is none.
const Family* FindFamily(absl::string_view name);
// Returns the family that is used if a spec does not give one.
const Family& DefaultFamily();
// Returns the names of the families for which `holds` is true, such as "f1, f2 or f3". There must
// be at least one.
std::string ListOfFamilies(absl::FunctionRef<bool(const Family&)> holds);
// Returns the names of the families that have the parameter, or of all families if `parameter` is
// empty.
std::string ListOfFamilies(absl::string_view parameter = "");

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_FAMILY_H_
