#include "core/mapping/spec/build_spec.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/certificate/artifact_review.h"
#include "core/kernel/leaf_kernel.h"
#include "core/landmark/split.h"
#include "core/plan/column_names.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

absl::Status CheckProjected(const BuildSpec& spec) {
  if (spec.mapping.input_dimensions == 0 || spec.kernel.SurvivesProjection()) {
    return absl::OkStatus();
  }
  const std::string names =
      LeafKernelNames([](const LeafKernel& leaf) { return leaf.survives_projection != nullptr; });
  return KernelNotApplicable(
      spec, absl::StrCat("with input_dimensions requires a kernel of Euclidean distances and inner "
                         "products, made of ",
                         names, " on all columns"));
}

// Returns an error if the kernel accepts no negative numbers although columns are standardised or
// projected. Both operations give negative numbers.
absl::Status CheckUnshifted(const BuildSpec& spec) {
  if (!spec.standardize && spec.mapping.input_dimensions == 0) return absl::OkStatus();
  const KernelNode* const leaf = spec.kernel.NeedsNonnegative();
  if (leaf == nullptr) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kKernelNotApplicable,
      spec.standardize ? "standardize" : "input_dimensions",
      absl::StrCat(leaf->leaf->name, " accepts only numbers >= 0, but columns that are ",
                   spec.standardize ? "standardised" : "projected",
                   " have negative numbers; omit this field for the kernel ",
                   spec.kernel.ToText()));
}

absl::Status RemoteNotApplicable(const BuildSpec& spec, absl::string_view field,
                                 absl::string_view what) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kKernelNotApplicable, field,
      absl::StrCat("cannot be combined with ", spec.KernelText(), ", a remote kernel: ", what));
}

absl::Status CheckRemote(const BuildSpec& spec) {
  if (!spec.mapping.has_landmarks()) {
    return RemoteNotApplicable(spec, "kernel",
                               absl::StrCat(spec.mapping.kind->name, " has no landmarks; expected ",
                                            ListOfFamilies("landmarks")));
  }
  const CountRule* const rule = spec.mapping.count_rule;
  if (rule != nullptr && !rule->no_remote.empty()) {
    return RemoteNotApplicable(spec, "landmarks", rule->no_remote);
  }
  if (spec.standardize) {
    return RemoteNotApplicable(spec, "standardize",
                               "it is computed from examples that are not standardised");
  }
  if (!spec.mapping.policy->no_remote.empty()) {
    return RemoteNotApplicable(spec, "policy",
                               absl::StrCat(spec.mapping.policy->no_remote, "; expected ",
                                            ListOfPolicies([](const LandmarkPolicy& policy) {
                                              return policy.no_remote.empty();
                                            })));
  }
  if (spec.mapping.input_dimensions > 0) {
    return RemoteNotApplicable(spec, "input_dimensions",
                               "a remote kernel is not evaluated on projected columns");
  }
  if (spec.mapping.sparsify != 1 || spec.mapping.quantise) {
    return RemoteNotApplicable(
        spec, spec.mapping.quantise ? "quantise" : "sparsify",
        "all values of a remote kernel are computed anyway, so this would save nothing");
  }
  return absl::OkStatus();
}

// Returns ", columns=[…]". Each name in it is preceded by its length, so that different lists have
// different texts.
std::string NamesText(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  return absl::StrCat(", columns=[",
                      absl::StrJoin(names, ", ",
                                    [](std::string* out, const std::string& name) {
                                      absl::StrAppend(out, name.size(), ":", name);
                                    }),
                      "]");
}

absl::Status NoNames(const BuildSpec& spec, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kColumnNamesInvalid, "column_names",
                   absl::StrCat("expected no names of columns, because ", what, ", got ",
                                CountOf(spec.column_names.size(), "name")),
                   {{"expected", "0"}, {"actual", absl::StrCat(spec.column_names.size())}});
}

absl::Status CheckNames(const BuildSpec& spec) {
  if (spec.column_names.empty()) return absl::OkStatus();
  if (spec.is_precomputed()) return NoNames(spec, "the rows are kernel values");
  PHIMAP_RETURN_IF_ERROR(CheckColumnNames(spec.column_names));
  for (size_t i = 0; i < spec.column_names.size(); ++i) {
    const std::string& name = spec.column_names[i];
    if (IsReadableText(name) && !absl::StrContains(name, '\n')) continue;
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kColumnNamesInvalid,
                     absl::StrCat("column_names[", i, "]"),
                     absl::StrCat("expected UTF-8 without control characters, got ", Quoted(name)));
  }
  return absl::OkStatus();
}

absl::Status CheckNamesOfColumns(const BuildSpec& spec, int64_t columns) {
  const auto names = static_cast<int64_t>(spec.column_names.size());
  if (names == 0 || names == columns) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kColumnNamesInvalid, "column_names",
                   absl::StrCat("expected no names, or one for each of the ",
                                CountOf(columns, "column"), ", got ", names),
                   {{"expected", absl::StrCat(columns)}, {"actual", absl::StrCat(names)}});
}

absl::Status PolicyNotApplicable(const BuildSpec& spec, absl::string_view kind,
                                 absl::string_view why,
                                 absl::FunctionRef<bool(const LandmarkPolicy&)> fits) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kKernelNotApplicable, "policy",
                   absl::StrCat("cannot be combined with ", spec.kernel.ToText(), ", ", kind, ": ",
                                why, "; expected ", ListOfPolicies(fits)));
}

// Checks that the kernel suits the choice of landmarks: the policy, and the rule for their number.
absl::Status CheckChoice(const BuildSpec& spec) {
  const LandmarkPolicy& policy = *spec.mapping.policy;
  const CountRule* const rule = spec.mapping.count_rule;
  const bool rule_needs_definite = rule != nullptr && rule->needs_definite_kernel;
  if (policy.needs_definite_kernel || rule_needs_definite) {
    PHIMAP_RETURN_IF_ERROR(RequireDefinite(spec));
  }
  if (rule_needs_definite && !spec.kernel.IsProvenPositiveSemidefinite()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kKernelNotPositiveSemidefinite, "landmarks",
        absl::StrCat(rule->name,
                     "(…) requires a kernel that is known to be positive semidefinite, got ",
                     spec.kernel.ToText(), "; give the number of landmarks"));
  }
  if (spec.kernel.TakesStrings() && !policy.no_strings.empty()) {
    return PolicyNotApplicable(
        spec, "a kernel of strings", policy.no_strings,
        [](const LandmarkPolicy& other) { return other.no_strings.empty(); });
  }
  if (spec.kernel.JumpsAtEqualRows() && !policy.no_jumps.empty()) {
    return PolicyNotApplicable(spec, "which compares rows for equality", policy.no_jumps,
                               [](const LandmarkPolicy& other) { return other.no_jumps.empty(); });
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BuildSpec::Validate() const {
  PHIMAP_RETURN_IF_ERROR(mapping.Validate());
  PHIMAP_RETURN_IF_ERROR(CheckNames(*this));
  if (remote.has_value()) return CheckRemote(*this);
  if (standardize && kernel.TakesStrings()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kKernelNotApplicable, "standardize",
        absl::StrCat(kernel.ToText(), " is a kernel of strings, which have no columns"));
  }
  PHIMAP_RETURN_IF_ERROR(CheckUnshifted(*this));
  PHIMAP_RETURN_IF_ERROR(CheckProjected(*this));
  PHIMAP_RETURN_IF_ERROR(CheckChoice(*this));
  return mapping.kind->check_kernel == nullptr ? absl::OkStatus()
                                               : mapping.kind->check_kernel(*this);
}

absl::Status BuildSpec::CheckColumns(int64_t columns) const {
  PHIMAP_RETURN_IF_ERROR(kernel.CheckColumns(columns));
  const auto check = mapping.kind->check_columns;
  return check == nullptr ? absl::OkStatus() : check(*this, columns);
}

absl::Status BuildSpec::CheckExamples(ExampleKind kind, int64_t columns) const {
  if (!column_names.empty() && IsString(kind)) return NoNames(*this, "strings have no columns");
  PHIMAP_RETURN_IF_ERROR(CheckNamesOfColumns(*this, columns));
  if (remote.has_value() && !is_precomputed()) {
    // The kernel service decides which examples it accepts.
    return IsString(kind) ? absl::OkStatus() : CheckColumns(columns);
  }
  if (is_precomputed() && kind != ExampleKind::kDense) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kKernelNotApplicable, "kernel",
        absl::StrCat(remote->ToText(), " requires dense rows; the stream's examples are ",
                     ExampleKindName(kind)));
  }
  const auto not_applicable = [&](absl::string_view of) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kKernelNotApplicable, "kernel",
                     absl::StrCat(kernel.ToText(), " is a kernel of ", of,
                                  "; the stream's examples are ", ExampleKindName(kind)));
  };
  if (!IsString(kind)) {
    return kernel.TakesStrings() ? not_applicable("strings") : CheckColumns(columns);
  }
  if (!kernel.TakesStrings()) return not_applicable("rows of numbers");
  if (kind == ExampleKind::kBytes && !kernel.TakesBytes()) {
    return not_applicable("text, or of bytes with unit=byte");
  }
  // The sample stores the place of a string as a number that must be exact in float32.
  constexpr int64_t kMaxPlaces = int64_t{1} << 24;
  const int64_t places = ReservoirCapacity(PoolRows(1)) + mapping.landmarks;
  if (places <= kMaxPlaces) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, "pool_rows",
                   absl::StrCat("a pool of strings may have at most ", kMaxPlaces,
                                " strings, including held-out strings and landmarks, got ", places),
                   {{"limit", absl::StrCat(kMaxPlaces)}, {"actual", absl::StrCat(places)}});
}

int64_t BuildSpec::PoolRows(int64_t columns) const {
  if (!mapping.has_landmarks() && !kernel.NeedsMedian()) return 0;
  if (mapping.pool_rows != 0) return mapping.pool_rows;
  const int64_t landmarks = std::max<int64_t>(1, mapping.landmarks);
  const int64_t rows = DefaultPoolRows(landmarks, columns);
  const auto cut = mapping.policy->default_pool;
  return cut == nullptr ? rows : cut(landmarks, rows);
}

int64_t BuildSpec::MostHeldOutRows() const {
  const int64_t most = remote.has_value() ? kMaxRemoteHeldOutRows : kMaxHeldOutRows;
  return mapping.held_out_rows == 0 ? most : std::min(most, mapping.held_out_rows);
}

std::string BuildSpec::ToText() const {
  return absl::StrCat(mapping.ToText(), " of ", KernelText(), standardize ? ", standardize" : "",
                      ", seed=", seed, NamesText(column_names));
}

std::string LeafKernelNames(absl::FunctionRef<bool(const LeafKernel&)> is) {
  std::vector<std::string> names;
  for (const LeafKernel* leaf : LeafKernels()) {
    if (is(*leaf)) names.push_back(absl::StrCat(leaf->name, "()"));
  }
  return Alternatives(names);
}

absl::Status KernelNotApplicable(const BuildSpec& spec, absl::string_view requirement) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kKernelNotApplicable, "kernel",
      absl::StrCat(spec.mapping.kind->name, " ", requirement, ", got ", spec.kernel.ToText()));
}

absl::Status RequireDefinite(const BuildSpec& spec) {
  const absl::Status definite = spec.kernel.CheckPositiveSemidefinite();
  if (definite.ok()) return definite;
  return MakeError(definite.code(), reason::kKernelNotPositiveSemidefinite, "kernel",
                   definite.message(), DetailOf(definite)->metadata);
}

absl::Status RequireLinear(const BuildSpec& spec) {
  double factor = 0;
  if (spec.kernel.IsScaledLinear(&factor) && factor > 0) return absl::OkStatus();
  return KernelNotApplicable(
      spec, "maps the inputs themselves: it requires linear(), optionally scaled by c > 0");
}

}  // namespace phimap
