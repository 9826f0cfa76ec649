#include "server/mapping/build_spec_from_proto.h"

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

using ::testing::HasSubstr;
using Proto = v1::MappingSpec;

// One mapping, written as text and as fields. It sets all of its parameters, each to a value other
// than the default.
struct TwoForms {
  std::string text;
  // The mapping's fields in protobuf's text format.
  std::string fields;
  std::string kernel;
};

std::vector<TwoForms> EveryMapping() {
  const std::string common = "policy: RPCHOLESKY pool_rows: 90 serving_type: SERVING_TYPE_FLOAT64";
  return {
      {"f1(landmarks=5, input_dimensions=3, policy=rpcholesky, pool_rows=90, serving_type=float64)",
       "kind: F1 landmarks: 5 input_dimensions: 3 " + common, "rbf(gamma=1)"},
      {"f2(landmarks=5, input_dimensions=3, policy=given, pool_rows=90, serving_type=float32)",
       "kind: F2 landmarks: 5 input_dimensions: 3 policy: GIVEN pool_rows: 90 "
       "serving_type: SERVING_TYPE_FLOAT32",
       "rbf(gamma=1)"},
      {"f3(landmarks=5, dimensions=4, projection=sign, input_dimensions=3, policy=rpcholesky, "
       "pool_rows=90, serving_type=float64)",
       "kind: F3 landmarks: 5 dimensions: 4 projection: SIGN input_dimensions: 3 " + common,
       "rbf(gamma=1)"},
      {"random_projection(dimensions=4, projection=sparse, serving_type=float64)",
       "kind: RANDOM_PROJECTION dimensions: 4 projection: SPARSE "
       "serving_type: SERVING_TYPE_FLOAT64",
       "linear()"},
      {"fourier(dimensions=5, form=phase, orthogonal=true, pool_rows=90, serving_type=float64)",
       "kind: FOURIER dimensions: 5 form: PHASE orthogonal: true pool_rows: 90 "
       "serving_type: SERVING_TYPE_FLOAT64",
       "rbf(gamma=1)"},
      {"kpca(landmarks=5, dimensions=4, centred=false, sparsify=2.5, quantise=true, rounding=7.5, "
       "input_dimensions=3, policy=rpcholesky, pool_rows=90, serving_type=float64)",
       "kind: KERNEL_PCA landmarks: 5 dimensions: 4 centred: false sparsify: 2.5 quantise: true "
       "rounding: 7.5 input_dimensions: 3 " +
           common,
       "rbf(gamma=1)"},
      {"multiclass(classes=3, dimensions=4, projection=orthonormal, serving_type=float64)",
       "kind: MULTICLASS classes: 3 dimensions: 4 projection: ORTHONORMAL "
       "serving_type: SERVING_TYPE_FLOAT64",
       "linear()"},
      {"polynomial(dimensions=50, pool_rows=90, serving_type=float64)",
       "kind: POLYNOMIAL dimensions: 50 pool_rows: 90 serving_type: SERVING_TYPE_FLOAT64",
       "poly(degree=2, gamma=1, coef0=1)"},
  };
}

Proto Fields(const std::string& text) {
  Proto fields;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &fields)) << text;
  return fields;
}

absl::StatusOr<BuildSpec> Checked(const Proto& mapping, const std::string& kernel) {
  v1::BuildSpec spec;
  *spec.mutable_spec() = mapping;
  spec.set_kernel(kernel);
  return BuildSpecFromProto(spec);
}

// The names of parameters in the text of a mapping: "landmarks", "policy" …
std::set<std::string> NamesIn(const std::string& text) {
  std::set<std::string> names;
  const std::string inside = text.substr(text.find('(') + 1);
  for (const absl::string_view part : absl::StrSplit(inside, ", ")) {
    names.emplace(*absl::StrSplit(part, '=').begin());
  }
  return names;
}

TEST(BuildSpecFromProtoTest, FieldsMeanWhatTheirTextMeans) {
  for (const TwoForms& mapping : EveryMapping()) {
    SCOPED_TRACE(mapping.text);
    const absl::StatusOr<BuildSpec> spec = Checked(Fields(mapping.fields), mapping.kernel);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->mapping.ToText(), mapping.text);
    Proto text;
    text.set_text(mapping.text);
    EXPECT_EQ(Checked(text, mapping.kernel)->mapping.ToText(), mapping.text);
  }
}

TEST(BuildSpecFromProtoTest, FieldsAndTextHaveTheSameNames) {
  const auto& descriptor = *Proto::descriptor();
  std::set<std::string> in_texts;
  std::set<int> kinds;
  for (const TwoForms& mapping : EveryMapping()) {
    kinds.insert(Fields(mapping.fields).kind());
    const MappingSpec spec = *MappingSpec::Parse(mapping.text);
    const std::set<std::string> names = NamesIn(mapping.text);
    in_texts.insert(names.begin(), names.end());
    for (int i = 0; i < descriptor.field_count(); ++i) {
      const std::string& name = descriptor.field(i)->name();
      EXPECT_EQ(spec.Has(name), names.count(name) == 1) << name << " of " << mapping.text;
    }
  }
  std::set<std::string> in_fields;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    in_fields.insert(descriptor.field(i)->name());
  }
  in_texts.insert({"text", "kind"});
  EXPECT_EQ(in_fields, in_texts);
  EXPECT_EQ(static_cast<int>(kinds.size()), Proto::Kind_descriptor()->value_count() - 1);
}

TEST(BuildSpecFromProtoTest, FieldsThatAreLeftOutHaveTheDefaultsOfTheText) {
  const struct {
    const char* fields;
    const char* text;
    const char* kernel;
  } cases[] = {
      {"kind: KERNEL_PCA landmarks: 5 dimensions: 4", "kpca(landmarks=5, dimensions=4)",
       "rbf(gamma=1)"},
      {"kind: F2 landmarks: 5", "f2(landmarks=5)", "rbf(gamma=1)"},
      {"kind: FOURIER dimensions: 4", "fourier(dimensions=4)", "rbf(gamma=1)"},
      {"kind: MULTICLASS classes: 3 dimensions: 4", "multiclass(classes=3, dimensions=4)",
       "linear()"},
      {"kind: POLYNOMIAL dimensions: 50", "polynomial(dimensions=50)", "linear()"},
  };
  for (const auto& c : cases) {
    const absl::StatusOr<BuildSpec> spec = Checked(Fields(c.fields), c.kernel);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->mapping.ToText(), MappingSpec::Parse(c.text)->ToText());
  }
}

TEST(BuildSpecFromProtoTest, AParameterThatTheMappingDoesNotHaveIsNamed) {
  for (const TwoForms& mapping : EveryMapping()) {
    const MappingSpec spec = *MappingSpec::Parse(mapping.text);
    for (const char* field :
         {"landmarks: 5", "dimensions: 4", "projection: SIGN", "policy: RPCHOLESKY",
          "policy: UNIFORM", "pool_rows: 90", "form: PHASE", "orthogonal: true", "centred: true",
          "centred: false", "classes: 3", "sparsify: 2", "sparsify: 1", "quantise: true",
          "rounding: 7", "input_dimensions: 3"}) {
      const std::string name(*absl::StrSplit(field, ':').begin());
      if (spec.Has(name)) continue;
      const Proto fields = Fields(absl::StrCat(mapping.fields, " ", field));
      const absl::Status status = Checked(fields, mapping.kernel).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << fields.ShortDebugString();
      EXPECT_EQ(DetailOf(status)->field, absl::StrCat("spec.spec.", name)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(spec.kind->name)));
    }
  }
}

TEST(BuildSpecFromProtoTest, NumbersOutOfTheirRangeAreNamedWithTheirLimit) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const int32_t least = std::numeric_limits<int32_t>::min();
  const int32_t most = std::numeric_limits<int32_t>::max();
  const auto expect = [](Proto fields, const char* field, const char* limit) {
    const absl::Status status = Checked(fields, "linear()").status();
    SCOPED_TRACE(absl::StrCat(fields.ShortDebugString(), ": ", status.ToString()));
    ASSERT_TRUE(DetailOf(status).has_value());
    EXPECT_EQ(DetailOf(status)->reason, "FIELD_OUT_OF_RANGE");
    EXPECT_EQ(DetailOf(status)->field, absl::StrCat("spec.spec.", field));
    EXPECT_EQ(DetailOf(status)->metadata["limit"], limit);
  };
  const Proto kpca = Fields("kind: KERNEL_PCA landmarks: 5 dimensions: 4");
  for (const double number : {0.0, 0.5, -1.0, 1.5e6, inf, -inf, nan}) {
    Proto fields = kpca;
    fields.set_sparsify(number);
    expect(fields, "sparsify", "1e+06");
  }
  for (const double number : {-1.0, 1.5e9, inf, -inf, nan}) {
    Proto fields = kpca;
    fields.set_rounding(number);
    expect(fields, "rounding", "1e+09");
  }
  for (const int32_t number : {least, -1, 65537, most}) {
    Proto fields = kpca;
    fields.set_input_dimensions(number);
    expect(fields, "input_dimensions", "65536");
    Proto polynomial = Fields("kind: POLYNOMIAL");
    polynomial.set_dimensions(number);
    expect(polynomial, "dimensions", "65536");
  }
  expect(Fields("kind: POLYNOMIAL"), "dimensions", "65536");
  for (const int32_t number : {least, -1, 0, 1, 32769, most}) {
    Proto fields = Fields("kind: MULTICLASS dimensions: 2");
    fields.set_classes(number);
    expect(fields, "classes", "32768");
  }
  expect(Fields("kind: MULTICLASS classes: 100 dimensions: 656"), "dimensions", "655");
}

}  // namespace
}  // namespace phimap
