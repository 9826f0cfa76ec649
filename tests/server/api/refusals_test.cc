// All errors that a request alone can cause, as one table: a call, its request, and the code, the
// reason and the field of the error. inference_refusals_test.cc has those of the inference
// protocol.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/chunk/artifact_chunk.h"
#include "server/learning/learning_service.h"
#include "server/options.h"
#include "server/store/sha256.h"
#include "tests/server/api/evaluate_fixture.h"
#include "tests/server/api/refusals_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/certified_artifact.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr Code kInvalid = Code::INVALID_ARGUMENT;
constexpr Code kPrecondition = Code::FAILED_PRECONDITION;
constexpr Code kExhausted = Code::RESOURCE_EXHAUSTED;
constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Two rows of three columns, of which one number is `value` and the others are 0.
v1::Examples OneNumber(int row, int column, double value) {
  return Numbers(2, 3, [=](int i, int j) { return i == row && j == column ? value : 0; });
}
// A block of this shape, with the 12 bytes of one row of three columns.
v1::Examples Shaped(int32_t rows, int32_t columns) {
  v1::Examples examples = UniformExamples(1, 3);
  examples.mutable_dense()->set_rows(rows);
  examples.mutable_dense()->set_columns(columns);
  return examples;
}
v1::Examples Text(const std::vector<std::string>& values) {
  v1::Examples examples;
  examples.mutable_text()->mutable_values()->Add(values.begin(), values.end());
  return examples;
}
// The second string is a byte longer than one may be.
v1::Examples TooLong() { return Text({"x", std::string((1 << 20) + 1, 'x')}); }
v1::Examples Bytes() { return Parsed<v1::Examples>("bytes { values: ['\\377', 'b'] }"); }
int CountOf(const v1::Examples& e) {
  return e.dense().rows() + e.sparse().rows() + e.text().values_size() + e.bytes().values_size();
}

// A number of 1,000 uniform rows of four columns.
double At(int i, int j) {
  static const Matrix<double> x = UniformRows({.rows = 1000, .cols = 4});
  return x(i, j);
}
// The linear kernel of two of these rows.
double GramOf(int i, int j) {
  return At(i, 0) * At(j, 0) + At(i, 1) * At(j, 1) + At(i, 2) * At(j, 2) + At(i, 3) * At(j, 3);
}

v1::BuildRequest RowsOf(const v1::Examples& examples) {
  v1::BuildRequest request;
  *request.mutable_examples() = examples;
  return request;
}
v1::EvaluateRequest Labeled(const v1::Examples& examples, int count = -1) {
  v1::EvaluateRequest request;
  *request.mutable_examples()->mutable_examples() = examples;
  if (count < 0) count = std::clamp(CountOf(examples), 0, 1000);
  for (int i = 0; i < count; ++i) request.mutable_examples()->add_labels(i % 2 == 0 ? "a" : "b");
  return request;
}
Request Evaluation(const std::string& spec, const v1::EvaluateRequest& rows, int64_t count = -1) {
  v1::EvaluateRequest finish;
  finish.mutable_finish()->set_row_count(count < 0 ? rows.examples().labels_size() : count);
  return {absl::StrCat("spec { reference: 'letter' ", spec, " }"), rows, finish};
}
Request WithLabels(const std::vector<std::string>& labels) {
  v1::EvaluateRequest rows = Labeled(UniformExamples(static_cast<int>(labels.size()), 3), 0);
  rows.mutable_examples()->mutable_labels()->Add(labels.begin(), labels.end());
  return Evaluation("", rows);
}
// Labels 0, step, 2·step …
std::vector<std::string> Counted(int count, double step) {
  std::vector<std::string> labels;
  for (int i = 0; i < count; ++i) labels.push_back(absl::StrCat(i * step));
  return labels;
}

v1::ImportRequest Chunk(int64_t offset, const std::string& data) {
  v1::ImportRequest request;
  FillChunk(offset, data, *request.mutable_chunk());
  return request;
}
Request Import(const std::string& artifact, const std::string& digest_of) {
  return {"name: 'copy'", Chunk(0, artifact), "digest: '" + Sha256Hex(digest_of) + "'"};
}

class RefusalsTest : public RefusalsFixture {
 protected:
  // Starts the server with flags of phimapd.
  void StartWith(std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"phimapd", "--data_dir=" + folder_.path(), "--listen=127.0.0.1:0"});
    std::vector<char*> argv;
    for (std::string& flag : flags) argv.push_back(flag.data());
    char* no_environment[] = {nullptr};
    options_ = std::get<Configuration>(
                   ParseOptions(static_cast<int>(argv.size()), argv.data(), no_environment))
                   .options;
    options_.http = "";
    Start();
  }

  // The first message of a build of "digit", with changes.
  static v1::BuildRequest SpecWith(const std::string& changes) {
    v1::BuildRequest request;
    *request.mutable_spec() = Merged(Spec("digit"), changes);
    return request;
  }
  static v1::BuildRequest Kernel(const std::string& text) {
    v1::BuildRequest request = SpecWith("");
    request.mutable_spec()->set_kernel(text);
    return request;
  }
  static v1::BuildRequest Maps(const std::string& text) {
    v1::BuildRequest request = SpecWith("");
    request.mutable_spec()->set_spec(text);
    return request;
  }
  // A whole build of its own id: one that fails after `finish` is known.
  Request Stream(const std::string& changes, const v1::Examples& rows, int64_t count) {
    v1::BuildRequest finish;
    finish.mutable_finish()->set_row_count(count);
    const std::string id = absl::StrFormat("00000000-0000-4000-8000-%012d", next_id_++);
    return {SpecWith("build_id: '" + id + "' " + changes), RowsOf(rows), finish};
  }
  Request Stream(const std::string& changes, const v1::Examples& rows) {
    return Stream(changes, rows, CountOf(rows));
  }
  void ExpectBuildsStill() {
    ExpectNothingStored();
    EXPECT_THAT(Build(Spec("digit")), IsOk());  // the id of the refused builds is free
  }
};

TEST_F(RefusalsTest, NamesAndReferences) {
  Start();
  MustBuild();
  const std::string endless(8 << 20, 'a');
  const auto refuse = [this](const std::string& reference, Code code, const char* reason,
                             const char* field) {
    const auto of = [&](auto request) {
      request.set_reference(reference);
      return request;
    };
    for (const char* call : {"Transform", "TransformStream"}) {
      Refuse(call, code, {{TransformOf(reference, UniformExamples(1, 3)), reason, field}});
    }
    Refuse("GetVersion", code, {{of(v1::GetVersionRequest()), reason, field}});
    Refuse("Export", code, {{of(v1::ExportRequest()), reason, field}});
    v1::EvaluateRequest evaluate;
    evaluate.mutable_spec()->set_reference(reference);
    const std::string there = *field == '\0' ? "" : absl::StrCat("spec.", field);
    Refuse("Evaluate", code, {{evaluate, reason, there}});
  };
  for (const std::string& reference :
       {std::string(), std::string("Letter"), std::string("letter@"), std::string("letter@007"),
        std::string("-"), std::string("letter@-1"), std::string("letter@0"),
        std::string("letter@18446744073709551617"), std::string("letter\0@1", 9),
        std::string("../../etc/passwd@1"), endless, "letter@" + endless,
        "letter@" + std::string(1 << 20, '9')}) {
    refuse(reference, kInvalid, "REFERENCE_INVALID", "reference");
  }
  refuse("digit", Code::NOT_FOUND, "MAPPING_NOT_FOUND", "");
  refuse("letter@2", Code::NOT_FOUND, "VERSION_NOT_FOUND", "reference");
  refuse("letter@prod", Code::NOT_FOUND, "ALIAS_NOT_FOUND", "reference");
  for (const std::string name : {"", "Letter", "letter@1", "letter-"}) {
    for (const char* call : {"GetMapping", "DeleteMapping"}) {
      Refuse(call, kInvalid, {{"name: '" + name + "'", "NAME_INVALID", "name"}});
    }
    Refuse("DeleteVersion", kInvalid,
           {{"reference: '" + name + "@1'", "REFERENCE_INVALID", "reference"}});
  }
  Refuse("DeleteMapping", Code::NOT_FOUND, {{"name: 'digit'", "MAPPING_NOT_FOUND"}});
  for (const std::string name : {"", "Prod", "7", "a b", "-a", "pröd"}) {
    const std::string alias = "alias: '" + name + "'";
    Refuse("SetAlias", kInvalid, {{"reference: 'letter@1' " + alias, "NAME_INVALID", "alias"}});
    Refuse("DeleteAlias", kInvalid, {{"name: 'letter' " + alias, "NAME_INVALID", "alias"}});
  }
  // A change takes a number or a digest, and no name that may mean another version soon.
  for (const std::string call : {"SetAlias", "DeleteVersion"}) {
    const auto of = [&](const std::string& reference) {
      return absl::StrCat("reference: '", reference, "'", call[0] == 'S' ? " alias: 'next'" : "");
    };
    for (const char* version : {"", "letter@0", "letter@-1", "letter@sha256:012345"}) {
      Refuse(call, kInvalid, {{of(version), "REFERENCE_INVALID", "reference", "name@7"}});
    }
    Refuse(call, kInvalid,
           {{of("letter"), "REFERENCE_INVALID", "reference", "name@7 … a name alone"},
            {of("letter@prod"), "REFERENCE_INVALID", "reference", "name@7 … an alias"}});
    Refuse(
        call, Code::NOT_FOUND,
        {{of("letter@2"), "VERSION_NOT_FOUND", "reference"}, {of("digit@1"), "MAPPING_NOT_FOUND"}});
  }
  // As a client of 0.1 sends them: the mapping, the alias, and a version or its digest.
  const char kNow[] = "mapping, version … \"name@7\" or \"name@sha256:\"";
  Refuse("DeleteVersion", kInvalid,
         {{Raw{"\n\x06letter\x10\x01"}, "FIELD_REMOVED", "reference", kNow}});
  Refuse("SetAlias", kInvalid,
         {{Raw{"\n\x06letter\x12\x04prod\x18\x01"}, "FIELD_REMOVED", "reference", kNow},
          {Raw{"\n\x06letter\x12\x04prod\xf2\x01\x07"
               "0123456"},
           "FIELD_REMOVED", "reference", "mapping, version, digest"}});
  for (const std::string call :
       {"ListMappings", "ListBuilds", "ListVersions", "ListAuditEntries"}) {
    const std::string of = call == "ListMappings" ? "" : "name: 'letter' ";
    Refuse(call, kInvalid,
           {{of + "page_size: -1", "FIELD_OUT_OF_RANGE", "page_size"},
            {of + "page_size: -2147483648", "FIELD_OUT_OF_RANGE", "page_size"},
            {of + "page_token: 'nonsense'", "PAGE_TOKEN_INVALID", "page_token"},
            {of + "page_token: '" + endless + "'", "PAGE_TOKEN_INVALID", "page_token"}});
  }
  Refuse("ListAuditEntries", kInvalid,
         {{"name: 'Letter'", "NAME_INVALID", "name"},
          {"start_time { seconds: -62135596801 }", "FIELD_OUT_OF_RANGE", "start_time"},
          {"end_time { seconds: 253402300800 }", "FIELD_OUT_OF_RANGE", "end_time"},
          {"end_time { nanos: 1000000000 }", "FIELD_OUT_OF_RANGE", "end_time"}});
  const std::string unknown = "name: 'letter' build_id: '00000000-0000-4000-8000-00000000000f'";
  for (const char* call : {"GetBuild", "CancelBuild"}) {
    Refuse(call, kInvalid, {{"name: 'letter' build_id: '1'", "FIELD_INVALID", "build_id"}});
    Refuse(call, Code::NOT_FOUND, {{unknown, "BUILD_NOT_FOUND", "build_id"}});
  }
}

TEST_F(RefusalsTest, ChangesOfNames) {
  Start();
  for (int i = 0; i < 3; ++i) MustBuild();
  MustBuild("digit");
  ASSERT_THAT(SetAlias("letter@1"), IsOk());
  const std::string id = " operation_id: '00000000-0000-4000-8000-0000000000aa'";
  Answer(&MappingStub::KeepVersion, "reference: 'letter@1'" + id);
  Refuse("DeleteMapping", Code::ALREADY_EXISTS,
         {{"name: 'letter'" + id, "OPERATION_ID_REUSED", "operation_id"}});
  Refuse("SetAlias", Code::ABORTED,
         {{"reference: 'letter@2' alias: 'prod' etag: 'none'", "ETAG_MISMATCH", "etag"}});
  Refuse("DeleteAlias", Code::ABORTED,
         {{"name: 'letter' alias: 'prod' etag: 'another'", "ETAG_MISMATCH", "etag"}});
  Refuse("KeepVersion", kInvalid,
         {{"reference: 'letter' ttl { seconds: 59 }", "FIELD_OUT_OF_RANGE", "ttl"},
          {"reference: 'letter' ttl { seconds: 3153600001 }", "FIELD_OUT_OF_RANGE", "ttl"}});
  Refuse("KeepVersion", kPrecondition,
         {{"reference: 'letter' ttl { seconds: 3600 }", "TTL_TOO_SHORT", "ttl"}});
  Refuse("DeleteMapping", kPrecondition,
         {{"name: 'letter'", "MAPPING_IN_USE", "", "prod"},
          {"name: 'digit' only_if_empty: true", "MAPPING_NOT_EMPTY", "only_if_empty"}});
  for (const char* version : {"letter@1", "letter@2", "letter@3"}) {
    ASSERT_THAT(SetAlias(version, "moved"), IsOk());
  }
  Refuse("DeleteVersion", kPrecondition,
         {{"reference: 'letter@1'", "VERSION_IN_USE", "", "prod"},
          {"reference: 'letter@2'", "VERSION_ROLLBACK_TARGET", "give_up_rollback", "moved"}});
  for (int i = 2; i < 100; ++i) {
    ASSERT_THAT(SetAlias("letter@1", absl::StrCat("a", i)), IsOk());
  }
  Refuse("SetAlias", kExhausted,
         {{"reference: 'letter@1' alias: 'one-more'", "ALIAS_LIMIT_REACHED"}});
}

// Rows that no call takes. Those of a Build come after good ones.
TEST_F(RefusalsTest, Examples) {
  Start();
  MustBuild();
  const auto refuse = [this](const v1::Examples& examples, const std::string& reason,
                             const std::string& where, const std::string& facts = "") {
    const std::string field = absl::StrCat("examples", where);
    const Sent transform = TransformOf("letter", examples);
    Refuse("Transform", kInvalid, {{transform, reason, field, "", facts}});
    Refuse("TransformStream", kInvalid, {{transform, reason, field, "", facts}});
    const Sent good =
        RowsOf(examples.has_sparse() ? SparseUniformExamples(20, 3) : UniformExamples(20, 3));
    const bool numbered = absl::StrContains(facts, "row=") || absl::StrContains(where, "s[");
    Refuse("Build", kInvalid,
           {{{SpecWith(""), good, RowsOf(examples)},
             reason,
             field,
             numbered ? "of the stream" : "",
             facts}});
    Refuse("Evaluate", kInvalid,
           {{Evaluation("", Labeled(examples)), reason, "examples." + field, "", facts}});
  };
  refuse({}, "FIELD_MISSING", "");
  refuse(Parsed<v1::Examples>("text {}"), "FIELD_OUT_OF_RANGE", ".text.values", "actual=0");

  const auto zeros = [](int rows, int columns) {
    return Parsed<v1::Examples>(
        absl::StrFormat("dense { rows: %d columns: %d numbers {} }", rows, columns));
  };
  v1::Examples cut = UniformExamples(2, 3);
  cut.mutable_dense()->mutable_float32_le()->resize(23);
  refuse(cut, "LENGTH_MISMATCH", ".dense.float32_le", "expected=24; actual=23");
  refuse(Parsed<v1::Examples>("dense { rows: 1 columns: 3 }"), "FIELD_MISSING", ".dense.values");
  refuse(UniformExamples(2, 4), "COLUMNS_MISMATCH", ".dense.columns", "expected=3; actual=4");
  refuse(OneNumber(1, 1, kNan), "VALUE_NOT_FINITE", ".dense.rows[1].columns[1]", "row=1; column=1");
  refuse(OneNumber(0, 2, kInfinity), "VALUE_NOT_FINITE", ".dense.rows[0].columns[2]",
         "row=0; column=2");
  for (const auto& [rows, columns] : {std::pair(0, 3),
                                      {-1, 3},
                                      {65537, 3},
                                      {kMax, kMax},
                                      {kMin, kMin},
                                      {-1, -3},
                                      {kMin, -1},
                                      {65537, 65535},
                                      {1 << 30, 4}}) {
    refuse(Shaped(rows, columns), "FIELD_OUT_OF_RANGE", ".dense.rows",
           absl::StrCat("limit=65536; actual=", rows));
  }
  for (const auto& [rows, columns] :
       {std::pair(1, 0), {1, 1 << 20}, {3, kMin}, {2, kMax}, {1, -3}, {1, 1 << 30}}) {
    refuse(Shaped(rows, columns), "FIELD_OUT_OF_RANGE", ".dense.columns",
           absl::StrCat("actual=", columns));
  }
  // In 32-bit arithmetic, 2^16 rows × 2^16 columns are 0 values, and 0 bytes of either type.
  refuse(Shaped(16384, 65536), "LENGTH_MISMATCH", ".dense.float32_le", "actual=12");
  refuse(Shaped(65536, 65536), "LENGTH_MISMATCH", ".dense.float32_le", "expected=17179869184");
  v1::Examples nothing = zeros(65536, 65536);
  refuse(nothing, "LENGTH_MISMATCH", ".dense.numbers", "expected=4294967296; actual=0");
  nothing.mutable_dense()->set_float32_le("");
  refuse(nothing, "LENGTH_MISMATCH", ".dense.float32_le", "expected=17179869184; actual=0");
  nothing.mutable_dense()->set_float64_le("");
  refuse(nothing, "LENGTH_MISMATCH", ".dense.float64_le", "expected=34359738368; actual=0");

  const auto sparse = [&](const std::function<void(v1::SparseRows&)>& change, const char* reason,
                          const std::string& where, const char* facts = "") {
    v1::Examples examples = SparseUniformExamples(2, 3);
    change(*examples.mutable_sparse());
    refuse(examples, reason, ".sparse." + where, facts);
  };
  sparse([](auto& s) { s.set_rows(0); }, "FIELD_OUT_OF_RANGE", "rows", "actual=0; limit=65536");
  sparse([](auto& s) { s.set_columns(65537); }, "FIELD_OUT_OF_RANGE", "columns", "actual=65537");
  sparse([](auto& s) { s.clear_values(); }, "FIELD_MISSING", "values");
  sparse([](auto& s) { s.set_rows(3); }, "LENGTH_MISMATCH", "row_offsets_le",
         "expected=32; actual=24");
  sparse([](auto& s) { (*s.mutable_row_offsets_le())[0] = 1; }, "OFFSETS_INVALID",
         "row_offsets_le");
  sparse([](auto& s) { (*s.mutable_row_offsets_le())[23] = 0x7f; }, "OFFSETS_INVALID",
         "row_offsets_le", "expected=6");
  sparse([](auto& s) { s.mutable_column_indices_le()->append("x"); }, "LENGTH_MISMATCH",
         "column_indices_le", "expected=24; actual=25");
  sparse([](auto& s) { s.mutable_float32_le()->resize(20); }, "LENGTH_MISMATCH", "float32_le",
         "expected=24; actual=20");
  for (const int64_t offset : {7, -7}) {
    sparse([=](auto& s) { Put(offset, 1, s.mutable_row_offsets_le()); }, "OFFSETS_INVALID",
           "row_offsets[1]");
  }
  for (const auto& [column, entry] : {std::pair(3, 2), {-1, 0}, {1, 5}}) {  // the last comes twice
    sparse([=](auto& s) { Put(column, entry, s.mutable_column_indices_le()); },
           "COLUMN_INDEX_INVALID", absl::StrCat("column_indices[", entry, "]"));
  }
  sparse([](auto& s) { Put(INFINITY, 4, s.mutable_float32_le()); }, "VALUE_NOT_FINITE",
         "values[4]");
  EXPECT_THAT(Transform(TransformOf("letter", UniformExamples(1, 3))), IsOk());
}

// Versions that refuse what "letter" takes: "similar" is no F2, "named" has names of its columns,
// "words" takes text, "gram" takes values of a kernel, "steep" overflows float32, and the features
// of "wide" soon fill a message.
class VersionRefusalsTest : public RefusalsTest {
 protected:
  VersionRefusalsTest() {
    Start();
    MustBuild();
    MustBuild("similar", "f1(landmarks=5)");
    const v1::Examples rows = UniformExamples(40, 3);
    MustBuildOf("name: 'named' column_names: ['x', 'y', 'z']", rows, 40);
    MustBuildOf("name: 'words' kernel: 'spectrum(n=2)'", Text(Counted(60, 1.5)), 60);
    MustBuildOf("name: 'gram' kernel: 'precomputed()' spec: 'f2(landmarks=3)'",
                Numbers(40, 40, GramOf), 40);
    MustBuildOf("name: 'steep' kernel: 'poly(degree=9)' spec: 'f1(landmarks=3)'", rows, 40);
    MustBuildOf("name: 'wide' kernel: '' spec: 'random_projection(dimensions=2000)'",
                UniformExamples(40, 1), 40);
  }
  const v1::Examples kHuge = Numbers(2, 3, [](int, int) { return 1e30; });
};

TEST_F(VersionRefusalsTest, Transforms) {
  const auto of = [](const std::string& reference, const v1::Examples& examples,
                     const std::string& changes = "") {
    return Merged(TransformOf(reference, examples), changes);
  };
  const v1::Examples rows = UniformExamples(2, 3);
  for (const char* call : {"Transform", "TransformStream"}) {
    Refuse(call, kInvalid,
           {{of("letter", Text({"a", "b"})), "EXAMPLE_KIND_MISMATCH", "examples.text"},
            {of("words", rows), "EXAMPLE_KIND_MISMATCH", "examples.dense"},
            {of("words", SparseUniformExamples(2, 3)), "EXAMPLE_KIND_MISMATCH", "examples.sparse"},
            {of("words", Bytes()), "EXAMPLE_KIND_MISMATCH", "examples.bytes"},
            {of("words", TooLong()), "FIELD_TOO_LONG", "examples.text.values[1]"},
            {of("named", rows, "column_names_hash: 1"), "COLUMN_NAMES_MISMATCH",
             "column_names_hash", "\"x\", \"y\", \"z\""},
            {of("gram", rows, "residual: true"), "SELF_VALUES_MISSING", "residual"}});
    const std::string endless = absl::StrCat("expected_digest: '", std::string(8 << 20, 'a'), "'");
    const std::string zeros = absl::StrCat("expected_digest: '", std::string(64, '0'), "'");
    Refuse(call, kPrecondition,
           {{of("letter", rows, zeros), "DIGEST_MISMATCH", "expected_digest"},
            {of("letter", rows, "expected_digest: '0'"), "DIGEST_MISMATCH", "expected_digest"},
            {of("letter", rows, endless), "DIGEST_MISMATCH", "expected_digest"},
            {of("similar", rows, "residual: true"), "RESIDUAL_NOT_AVAILABLE", "residual"}});
    Refuse(call, Code::OUT_OF_RANGE,
           {{of("steep", kHuge), "VALUE_NOT_REPRESENTABLE", "examples.dense.rows[0]"}});
    Refuse(call, kExhausted,
           {{of("wide", UniformExamples(65536, 1)), "MESSAGE_TOO_LARGE", "examples.dense.rows"}});
  }
  const v1::TransformRequest first = of("letter", rows);
  Refuse("TransformStream", kInvalid,
         {{{first, first}, "FIELD_UNEXPECTED", "reference"},
          {{first, of("", rows, "expected_digest: '0'")}, "FIELD_UNEXPECTED", "expected_digest"},
          {{first, of("", rows, "column_names_hash: 1")}, "FIELD_UNEXPECTED", "column_names_hash"},
          {{first, of("", rows), of("", UniformExamples(1, 4))},
           "COLUMNS_MISMATCH",
           "examples.dense.columns",
           "request 2",
           "request=2"}});
  const std::string bytes = first.SerializeAsString();
  std::string no_utf8 = bytes;
  no_utf8[no_utf8.find("letter")] = '\xff';
  Refuse("Transform", kInvalid,
         {{Raw{bytes.substr(0, bytes.size() - 1)}, "REQUEST_MALFORMED", "", "v1.TransformRequest"},
          {Raw{no_utf8}, "REQUEST_MALFORMED", "", "v1.TransformRequest"}});
}

TEST_F(VersionRefusalsTest, Evaluations) {
  const char kSpec[] = "spec { reference: 'letter' }";
  const auto spec = [](const std::string& changes) {
    return absl::StrCat("spec { reference: 'letter' ", changes, " }");
  };
  const v1::EvaluateRequest rows = Labeled(UniformExamples(20, 3));
  const v1::Examples nan = Numbers(20, 3, [](int i, int j) { return i == 7 && j == 1 ? kNan : 0; });
  const char kField[] = "examples.labels";
  Refuse("Evaluate", kInvalid,
         {{{}, "MESSAGE_UNEXPECTED", "spec"},
          {rows, "MESSAGE_UNEXPECTED", "spec"},
          {"finish {}", "MESSAGE_UNEXPECTED", "spec"},
          {"", "MESSAGE_UNEXPECTED", "message"},
          {{kSpec, kSpec}, "MESSAGE_UNEXPECTED", "spec"},
          {{kSpec, rows}, "FINISH_MISSING", "finish"},
          {{kSpec, "finish {}"}, "CLASSES_TOO_FEW", kField},
          {spec("learner: 'svm'"), "EXPRESSION_INVALID", "spec.learner"},
          {spec("learner: 'svm('"), "EXPRESSION_INVALID", "spec.learner"},
          {spec("learner: 'linear_svm(C=-1)'"), "EXPRESSION_INVALID", "spec.C"},
          {spec("learner: 'linear_svm(C=0)'"), "EXPRESSION_INVALID", "spec.C"},
          {spec("learner: 'linear_svm(C=auto)'"), "LEARNER_NOT_APPLICABLE", "spec.C", "validation"},
          {spec("folds: 1"), "FIELD_OUT_OF_RANGE", "spec.folds"},
          {Evaluation("folds: 21", rows), "FOLDS_TOO_MANY", "spec.folds"},
          {spec("folds: 21 held_out: 0.5"), "FIELDS_CONTRADICTORY", "spec.held_out"},
          {spec("reference: 'named' column_names_hash: 1"), "COLUMN_NAMES_MISMATCH",
           "spec.column_names_hash", "\"x\", \"y\", \"z\""},
          {Evaluation("", Labeled(UniformExamples(20, 3), 19)), "LENGTH_MISMATCH", kField},
          {{kSpec, Labeled(UniformExamples(100, 3)), Labeled(nan)},
           "VALUE_NOT_FINITE",
           "examples.examples.dense.rows[7].columns[1]",
           "",
           "stream_row=107"},
          {WithLabels({"a", std::string(257, 'x')}), "LABEL_TOO_LONG", kField},
          {WithLabels({"a", ""}), "LABEL_MISSING", kField},
          {WithLabels({"1", "1.0", "2"}), "LABELS_EQUAL", kField},
          {WithLabels(Counted(400, 0.25)), "LABELS_NOT_CLASSES", kField},
          {WithLabels(Counted(1001, 1)), "CLASSES_TOO_MANY", kField},
          {WithLabels({"one", "one"}), "CLASSES_TOO_FEW", kField},
          {Evaluation("learner: 'svr()'", rows), "LEARNER_NOT_APPLICABLE", kField},
          {Evaluation("", Labeled(Text({"a", "b"}))), "EXAMPLE_KIND_MISMATCH",
           "examples.examples.text"},
          {Evaluation("reference: 'words'", Labeled(TooLong())), "FIELD_TOO_LONG",
           "examples.examples.text.values[1]"}});
  for (const char* bad : {"-0.1", "1", "nan"}) {
    for (const std::string field : {"held_out", "confidence"}) {
      Refuse("Evaluate", kInvalid,
             {{spec(field + ": " + bad), "FIELD_OUT_OF_RANGE", "spec." + field}});
    }
  }
  const std::string digest = absl::StrCat("expected_digest: '", std::string(64, '0'), "'");
  const std::string kernel = "learner: 'kernel_svm()' reference: ";
  Refuse("Evaluate", kPrecondition,
         {{spec(digest), "DIGEST_MISMATCH", "spec.expected_digest"},
          {spec(kernel + "'words'"), "KERNEL_NOT_AVAILABLE", "spec.learner"},
          {spec(kernel + "'gram'"), "KERNEL_NOT_AVAILABLE", "spec.learner"}});
  Refuse("Evaluate", Code::OUT_OF_RANGE,
         {{Evaluation("reference: 'steep'", Labeled(kHuge)), "VALUE_NOT_REPRESENTABLE",
           "examples.examples.dense.rows[0]"}});
  Refuse("Evaluate", Code::DATA_LOSS,
         {{Evaluation("", rows, 21), "ROW_COUNT_MISMATCH", "finish.row_count"}});
}

TEST_F(VersionRefusalsTest, TrainingsAndPredictions) {
  const v1::Examples rows = UniformExamples(300, 3);
  // A whole training of its own id, on rows with these labels.
  const auto training = [&](const std::string& changes, const std::vector<std::string>& labels,
                            const std::string& more = "") -> Request {
    v1::TrainRequest block;
    *block.mutable_examples()->mutable_examples() =
        UniformExamples(static_cast<int>(labels.size()), 3);
    block.mutable_examples()->mutable_labels()->Add(labels.begin(), labels.end());
    *block.mutable_examples() = Merged(block.examples(), more);
    return {absl::StrFormat("spec { reference: 'letter' build_id: "
                            "'00000000-0000-4000-8000-%012d' %s }",
                            next_id_++, changes),
            block, absl::StrCat("finish { row_count: ", labels.size(), " }")};
  };
  const std::vector<std::string> halves = Counted(300, 0.5);
  std::vector<std::string> few, classes;
  for (int i = 0; i < 300; ++i) {
    few.push_back(i % 2 == 0 ? "1" : "1.5");
    classes.push_back(i % 2 == 0 ? "a" : "b");
  }
  std::vector<std::string> bell = classes;
  bell[40] = "bell\a";
  Refuse("Train", kInvalid,
         {{training("learner: 'kernel_svm()'", classes), "LEARNER_NOT_APPLICABLE", "spec.learner",
           "use "},
          {training("learner: 'svr()' task: HEAD_TASK_CLASSES", classes), "LEARNER_NOT_APPLICABLE",
           "spec.learner"},
          {training("learner: 'logistic()'", classes,
                    absl::StrCat("weights: [", Repeated("1, ", 299), "1]")),
           "LEARNER_NOT_APPLICABLE", "examples.weights"},
          {training("", few), "TASK_UNCLEAR", "spec.task"},
          {training("task: HEAD_TASK_NUMBERS", classes), "LABEL_INVALID", "examples.labels", "",
           "stream_row=0"},
          {training("", bell), "LABEL_INVALID", "examples.labels"},
          {training("learner: 'linear_svm()'", halves), "LABELS_NOT_CLASSES", "examples.labels",
           "or ridge"},
          {training("learner: 'svr()'", classes), "LABEL_INVALID", "examples.labels",
           "svr learns numbers"},
          {training("", classes,
                    absl::StrCat("groups: [", Repeated("'g', ", 299), "'g'] parts: [",
                                 Repeated("TRAINING_PART_TRAIN, ", 299), "TRAINING_PART_TEST]")),
           "FIELDS_CONTRADICTORY", "examples.parts[299]", "rows of a group share a part",
           "stream_row=299"},
          {training("", {"a", "b"}), "ROWS_TOO_FEW", "examples"}});
  Request empty = training("", {"a"});
  empty.messages.erase(empty.messages.begin() + 1);
  empty.messages.back() = "finish {}";
  Refuse("Train", kPrecondition, {{empty, "STREAM_EMPTY", "examples"}});
  // One whose features are built from these rows.
  const auto building = [&](const std::string& spec, const std::string& build,
                            const std::vector<std::string>& labels) -> Request {
    Request request = training("", labels);
    request.messages[0] = absl::StrFormat(
        "spec { build_id: '00000000-0000-4000-8000-%012d' %s build { name: 'own' %s } }",
        next_id_++, spec, build);
    return request;
  };
  const std::string f2 = "spec: 'f2(landmarks=10)' kernel: 'rbf(gamma=1)'";
  Refuse("Train", kInvalid,
         {{building("reference: 'letter'", f2, classes), "FIELDS_CONTRADICTORY", "spec.build"},
          {building("column_names_hash: 7", f2, classes), "FIELDS_CONTRADICTORY", "spec.build"},
          {building("", f2 + " build_id: '00000000-0000-4000-8000-000000000001'", classes),
           "FIELDS_CONTRADICTORY", "spec.build"},
          {building("", "spec: 'f2(landmarks=0)'", classes), "EXPRESSION_INVALID",
           "spec.build.landmarks"},
          {building("", "spec: 'f2(landmarks=10)' kernel: 'rbf(gamme=1)'", classes),
           "EXPRESSION_INVALID", "spec.build.gamme"},
          {building("", "spec: 'f1(landmarks=10)' kernel: 'precomputed()'", classes),
           "KERNEL_NOT_APPLICABLE", "spec.build.kernel", "build a version first"},
          {building("learn_scales: true", "spec: 'f2(landmarks=10)' kernel: 'linear()'", classes),
           "KERNEL_NOT_APPLICABLE", "spec.build.kernel", "rbf"},
          {building("tuning {}", f2, classes), "FIELDS_CONTRADICTORY", "spec.tuning"},
          {building("tuning { budget { nanos: 1 } }", "", classes), "FIELD_OUT_OF_RANGE",
           "spec.tuning.budget"},
          {building("tuning { max_landmarks: 9000 }", "", classes), "FIELD_OUT_OF_RANGE",
           "spec.tuning.max_landmarks"},
          {building("tuning {}", "", {"a", "b", "a", "b"}), "ROWS_TOO_FEW", "examples"},
          {training("learn_scales: true", classes), "FIELDS_CONTRADICTORY", "spec.learn_scales"},
          {training("tuning {}", classes), "FIELDS_CONTRADICTORY", "spec.tuning"}});
  Refuse("Train", kPrecondition,
         {{building("", "spec: 'f2(landmarks=500)' kernel: 'rbf(gamma=1)'", classes),
           "ROWS_TOO_FEW", "spec.build.landmarks", "500"}});
  const std::string asked =
      "reference: 'letter' examples { dense { rows: 1 columns: 3 numbers { "
      "values: [0, 0, 0] } } } ";
  Refuse("Predict", kPrecondition, {{asked, "HEAD_MISSING", "reference"}});
  ASSERT_THAT(Call("Train", training("", classes)), IsOk());
  Refuse("Predict", kPrecondition,
         {{asked + "deviations: true", "OUTPUT_NOT_AVAILABLE", "deviations"}});
  for (const char* bad : {"-0.1", "1", "nan"}) {
    Refuse("Predict", kInvalid,
           {{absl::StrCat(asked, "confidence: ", bad), "FIELD_OUT_OF_RANGE", "confidence"}});
  }
  ASSERT_THAT(Call("Train", training("", halves)), IsOk());
  Refuse("Predict", kPrecondition,
         {{asked + "probabilities: true", "OUTPUT_NOT_AVAILABLE", "probabilities"}});
}

TEST_F(RefusalsTest, Builds) {
  Start();
  const v1::Examples rows = UniformExamples(40, 3);
  const std::string endless(8 << 20, 'a');
  Refuse(
      "Build", kInvalid,
      {{{}, "MESSAGE_UNEXPECTED", "spec"},
       {RowsOf(rows), "MESSAGE_UNEXPECTED", "spec"},
       {"finish {}", "MESSAGE_UNEXPECTED", "spec"},
       {"", "MESSAGE_UNEXPECTED", "message"},
       {{SpecWith(""), SpecWith("")}, "MESSAGE_UNEXPECTED", "spec"},
       {SpecWith(""), "FINISH_MISSING", "finish"},
       {{SpecWith(""), RowsOf(rows)}, "FINISH_MISSING", "finish"},
       {{SpecWith(""), RowsOf(rows), Raw{"\x07"}}, "REQUEST_MALFORMED", "", "v1.BuildRequest"},
       {SpecWith("name: 'Letter'"), "NAME_INVALID", "spec.name"},
       {SpecWith("name: ''"), "NAME_INVALID", "spec.name"},
       {SpecWith("name: '" + endless + "'"), "NAME_INVALID", "spec.name"},
       {SpecWith("build_id: '1'"), "FIELD_INVALID", "spec.build_id"},
       {SpecWith("build_id: '" + endless + "'"), "FIELD_INVALID", "spec.build_id"},
       {SpecWith("spec_0_1 { text: 'f2(landmarks=5)' }"), "FIELDS_CONTRADICTORY", "spec.spec_0_1"},
       // As a client of 0.1 sends { kind: F2 landmarks: 5 }.
       {Raw{"\nF\n\x06letter\x12$00000000-0000-4000-8000-000000000001\x1a\x04\x10\x02\x18\x05\""
            "\x0erbf(gamma=0.5)0\x07"},
        "FIELD_REMOVED", "spec.spec_0_1",
        "kind, landmarks, dimensions … (landmarks=500)\", in the field `spec`"}});

  // Texts that are no kernel, too long, too deep or of too many parts, and numbers beyond all
  // types.
  const std::string nines(4000, '9');
  const auto nested = [](int times, const char* open) {
    return Repeated(open, times) + "linear()" + Repeated(")", times);
  };
  using Texts = std::vector<std::string>;
  const std::pair<const char*, Texts> kernels[] = {
      {"kernel", {"rbf(gamma=)", "spectrum(n=2)*linear()", std::string("rbf()\0+rbf()", 12)}},
      {"kernel", {std::string(10 << 20, '('), std::string(4096, '('), std::string(4097, ' ')}},
      {"kernel", {nested(33, "("), nested(1000, "2*("), Repeated("rbf", 1000)}},
      {"kernel",
       {Repeated("linear()+", 400) + "linear()", Repeated("linear()*", 400) + "linear()"}},
      {"kernel", {Repeated("1e300*", 20) + "linear()", "rbf(gamma=" + nines + ")"}},
      {"kernel", {"rbf(gamma=1e" + nines + ")", "rbf(gamma=1e-" + nines + ")"}},
      {"gama", {"rbf(gama=1)"}},
      {"gamma", {"2 * rbf(gamma=-1)", "rbf(gamma=nan)", "rbf(gamma=inf)"}},
      {"gamma", {"rbf(" + Repeated("gamma=1,", 400) + "gamma=1)"}},
      {"degree", {"poly(degree=-1)", "poly(degree=65)", "poly(degree=4294967297)"}},
      {"degree", {"poly(degree=18446744073709551617)"}}};
  for (const auto& [field, texts] : kernels) {
    for (const std::string& text : texts) {
      Refuse("Build", kInvalid,
             {{Kernel(text), "EXPRESSION_INVALID", absl::StrCat("spec.", field)}});
    }
  }
  Refuse("Build", kInvalid,
         {{Kernel(""), "FIELD_INVALID", "spec.kernel"},
          {Kernel("poly(degree=2, coef0=-1)"), "KERNEL_NOT_POSITIVE_SEMIDEFINITE", "spec.kernel"},
          {Kernel("-1*linear()"), "KERNEL_NOT_POSITIVE_SEMIDEFINITE", "spec.kernel"}});
  EXPECT_THAT(Call("Build", Kernel("rbf(" + std::string(4000, 'g') + "=1)")),
              IsError(kInvalid, "EXPRESSION_INVALID", StartsWith("spec.gggg")));  // cut
  Refuse("Build", kPrecondition,
         {{Kernel("service(endpoint=nobody)"), "KERNEL_SERVICE_NOT_LISTED", "spec.kernel"}});
  const std::pair<const char*, Texts> specs[] = {
      {"spec", {"", "f9(landmarks=5)", std::string(10 << 20, 'f')}},
      {"spec", {"f2(" + std::string(4000, '(') + ")", "f2(landmarks=" + nines + ")"}},
      {"landmarks", {"f2()", "f2(landmarks=-5)", "f2(landmarks=8193)"}},
      {"landmarks", {"f2(landmarks=4294967301)", "f2(landmarks=18446744073709551621)"}},
      {"landmarks", {"f2(" + Repeated("landmarks=5,", 300) + "landmarks=5)"}},
      {"pool_rows", {"f2(landmarks=5, pool_rows=9223372036854775807)"}},
      {"policy", {"f2(landmarks=5, policy=best)"}},
      {"classes", {"f2(landmarks=5, classes=3)"}},
      {"dimensions", {"f1(landmarks=3, dimensions=2)", "f3(landmarks=5, dimensions=4294967298)"}}};
  for (const auto& [field, texts] : specs) {
    for (const std::string& text : texts) {
      Refuse("Build", kInvalid, {{Maps(text), "EXPRESSION_INVALID", absl::StrCat("spec.", field)}});
    }
  }
  Refuse("Build", kInvalid,
         {{Maps("f2(landmarks=5, pool_rows=4)"), "FIELD_OUT_OF_RANGE", "spec.pool_rows"},
          {Maps("f3(landmarks=5, dimensions=6)"), "FIELD_OUT_OF_RANGE", "spec.dimensions"},
          {Maps("f1(landmarks=auto(residual=0.1), policy=given)"), "PARAMETER_NOT_APPLICABLE",
           "spec.policy"},
          {Maps("fourier(dimensions=3)"), "DIMENSIONS_ODD", "spec.dimensions"},
          {Maps("random_projection(dimensions=2)"), "KERNEL_NOT_APPLICABLE", "spec.kernel"},
          {SpecWith("spec: 'fourier(dimensions=2)' kernel: 'precomputed()'"),
           "KERNEL_NOT_APPLICABLE", "spec.kernel"}});

  const auto name = [this, &rows](const std::string& names, const std::string& column) {
    Refuse("Build", kInvalid,
           {{Stream("column_names: [" + names + "]", rows), "COLUMN_NAMES_INVALID",
             "spec.column_names" + column}});
  };
  name("'x', 'y'", "");
  name("'x', 'y', 'z', 'w'", "");
  name("'x', '', 'z'", "[1]");
  name("'x', 'y\\n', 'z'", "[1]");
  name("'x', 'y', 'x'", "[2]");
  name("'x', 'y', '" + std::string(257, 'z') + "'", "[2]");
  ExpectBuildsStill();
}

TEST_F(RefusalsTest, RowsOfBuilds) {
  Start();
  const v1::BuildRequest first = SpecWith("");
  const v1::Examples rows = UniformExamples(40, 3);
  const v1::Examples late = OneNumber(1, 2, kInfinity);
  const std::string strings = "kernel: 'jaccard(n=2)' ";
  const std::string gram = "kernel: 'precomputed()' spec: 'f2(landmarks=9)'";
  const auto column = [](double size) {
    return Numbers(20, 1, [=](int i, int) { return i % 2 == 0 ? size : -size; });
  };
  const auto ones = [](double value) { return Numbers(50, 4, [=](int, int) { return value; }); };
  Refuse("Build", kInvalid,
         {{{first, RowsOf(UniformExamples(20, 3)), RowsOf(UniformExamples(10, 3)), RowsOf(late)},
           "VALUE_NOT_FINITE",
           "examples.dense.rows[1].columns[2]",
           "row 31 of the stream",
           "row=1; stream_row=31"},
          {{first, RowsOf(Text({"a", "b"}))}, "KERNEL_NOT_APPLICABLE", "spec.kernel"},
          {{first, RowsOf(rows), RowsOf(Text({"a", "b"}))}, "EXAMPLE_KINDS_MIXED", "examples.text"},
          {{SpecWith(strings), RowsOf(rows)}, "KERNEL_NOT_APPLICABLE", "spec.kernel"},
          {{SpecWith(strings), RowsOf(Bytes())}, "KERNEL_NOT_APPLICABLE", "spec.kernel"},
          {{SpecWith(strings), RowsOf(TooLong())}, "FIELD_TOO_LONG", "examples.text.values[1]"},
          {Stream(gram, rows), "MATRIX_NOT_SQUARE", "examples.dense.rows"},
          {Stream("standardize: true", column(1.7e308)), "VALUES_TOO_LARGE", "examples"},
          {Stream("standardize: true", column(1e-310)), "VALUES_TOO_SMALL", "examples"}});
  const auto shifted = [](int rows, const std::function<double(int)>& by) {
    return Numbers(rows, 4, [&](int i, int j) { return At(i, j) + by(i); });
  };
  Refuse(
      "Build", kPrecondition,
      {{{SpecWith("name: 'empty'"), "finish {}"}, "STREAM_EMPTY", "examples"},
       {Stream("spec: 'f2(landmarks=50)'", rows), "ROWS_TOO_FEW", "spec.landmarks", "50 … 40"},
       {Stream("spec: 'random_projection(dimensions=5, projection=orthonormal)' kernel: ''",
               shifted(50, [](int) { return 0; })),
        "DIMENSIONS_TOO_MANY", "spec.dimensions"},
       {Stream("kernel: 'rbf(gamma=scale)'", ones(1)), "GAMMA_UNDEFINED", "spec.kernel"},
       {Stream("kernel: 'linear()'", ones(0)), "KERNEL_ZERO", "spec.kernel"},
       {Stream("spec: 'kpca(landmarks=20, dimensions=2, rounding=1e-6)' kernel: 'rbf(gamma=1)'",
               UniformExamples(50, 4)),
        "COMPONENT_ROUNDED_AWAY", "spec.rounding"},
       {Stream("spec: 'f2(landmarks=20)' kernel: 'sigmoid(gamma=-1)'", UniformExamples(50, 4)),
        "KERNEL_NOT_POSITIVE_SEMIDEFINITE", "spec.kernel"},
       {Stream("spec: 'f2(landmarks=20)' kernel: 'rbf(gamma=1)'",
               shifted(50, [](int i) { return At(i, 0) < 0 ? -1e9 : 1e9; })),
        "KERNEL_PRECISION_TOO_LOW", "spec.kernel"},
       {Stream("spec: 'f2(landmarks=40, serving_type=float32)' kernel: 'rbf(gamma=0.3)'",
               shifted(1000, [](int i) { return i < 500 ? -1e4 : 1e4; })),
        "SERVING_PRECISION_TOO_LOW", "spec.serving_type"},
       {Stream("spec: 'f1(landmarks=3, serving_type=float32)' kernel: 'poly(degree=3)'",
               Numbers(500, 4, [](int i, int j) { return 1e30 * At(i, j); })),
        "VALUE_NOT_REPRESENTABLE", "spec.serving_type"},
       {Stream(gram, Numbers(39, 40, GramOf)), "MATRIX_NOT_SQUARE", "examples"},
       {Stream(gram, Numbers(40, 40, [](int i, int j) { return (j < i ? 1 : 2) * GramOf(i, j); })),
        "KERNEL_NOT_SYMMETRIC", "spec.kernel"},
       {Stream(strings + "spec: 'f1(landmarks=9)'", Text({9, std::string(1 << 20, 'x')})),
        "LANDMARKS_TOO_LONG", "spec.landmarks"}});
  for (const int64_t count : {std::numeric_limits<int64_t>::min(), int64_t{-7}, int64_t{41},
                              std::numeric_limits<int64_t>::max()}) {
    Refuse("Build", Code::DATA_LOSS,
           {{Stream("", rows, count), "ROW_COUNT_MISMATCH", "finish.row_count", "",
             absl::StrCat("expected=", count, "; actual=40")}});
  }
  ExpectBuildsStill();
}

TEST_F(RefusalsTest, Forecasts) {
  Start();
  const auto advise = [this](const char* question, const char* field) {
    Refuse("Advise", kInvalid, {{question, "FIELD_OUT_OF_RANGE", field}});
  };
  advise("", "margin");
  advise("margin: 2 error: 0.1 confidence: 0.95", "margin");
  advise("margin: nan error: 0.1 confidence: 0.95", "margin");
  advise("margin: 0.5 error: 1 confidence: 0.95", "error");
  advise("margin: 0.5 error: 0.1 confidence: 95", "confidence");
  advise("margin: 0.5 error: 0.1 confidence: 0.95 classes: -2", "classes");
  const auto of = [](const std::string& spec, int64_t rows, int32_t columns,
                     const std::string& changes = "") {
    v1::EstimateBuildRequest request;
    *request.mutable_spec() = Merged(Spec("letter", spec), changes);
    request.set_rows(rows);
    request.set_columns(columns);
    return request;
  };
  const std::string f2 = "f2(landmarks=5)";
  Refuse("EstimateBuild", kInvalid,
         {{of(f2, 40, 3, "kernel: 'rbf(gama=1)'"), "EXPRESSION_INVALID", "spec.gama"},
          {of(f2, 40, 3, "name: 'Letter'"), "NAME_INVALID", "spec.name"},
          {of("f2(", 40, 3), "EXPRESSION_INVALID", "spec.spec"},
          {of("f2(landmarks=0)", 40, 3), "EXPRESSION_INVALID", "spec.landmarks"},
          {of(f2, 0, 3), "FIELD_OUT_OF_RANGE", "rows"},
          {of(f2, 40, 0), "FIELD_OUT_OF_RANGE", "columns"},
          {of(f2, 40, 65537), "FIELD_OUT_OF_RANGE", "columns"}});
  Refuse("EstimateBuild", kPrecondition,
         {{of(f2, 4, 3), "ROWS_TOO_FEW", "spec.landmarks"},
          {of(f2, 40, 3, "kernel: 'service(endpoint=nobody)'"), "KERNEL_SERVICE_NOT_LISTED",
           "spec.kernel"},
          {of("random_projection(dimensions=4, projection=orthonormal)", 40, 3, "kernel: ''"),
           "DIMENSIONS_TOO_MANY", "spec.dimensions"}});
  ExpectNothingStored();
}

TEST_F(RefusalsTest, Imports) {
  Start();
  const std::string artifact = CertifiedArtifact();
  const std::string name = "name: 'copy'";
  std::string damaged = artifact;
  damaged[300] ^= 1;
  const std::string unreadable =
      CertifiedArtifact({}, {.certificate = [](Certificate& c) { c.theorem = "\x1b[2J"; }});
  v1::ImportRequest changed = Chunk(0, artifact);
  (*changed.mutable_chunk()->mutable_data())[7] ^= 1;
  const std::string digest = absl::StrCat("digest: '", Sha256Hex(artifact), "'");
  Refuse("Import", kInvalid,
         {{{}, "MESSAGE_UNEXPECTED", "name"},
          {"", "MESSAGE_UNEXPECTED", "message"},
          {Chunk(0, artifact), "MESSAGE_UNEXPECTED", "name"},
          {digest, "MESSAGE_UNEXPECTED", "name"},
          {{name, name}, "MESSAGE_UNEXPECTED", "name"},
          {{name, Chunk(0, artifact)}, "MESSAGE_UNEXPECTED", "digest"},
          {{name, Raw{"\x07"}}, "REQUEST_MALFORMED", "", "v1.ImportRequest"},
          {"name: 'Copy'", "NAME_INVALID", "name"},
          {{name, Chunk(1, artifact)}, "CHUNK_OFFSET_MISMATCH", "chunk.offset_bytes"},
          {{name, Chunk(0, "")}, "CHUNK_SIZE_OUT_OF_RANGE", "chunk.data"},
          {{name, Chunk(0, artifact), "digest: 'x'"}, "DIGEST_INVALID", "digest"},
          {{name, Chunk(0, std::string(5000, 'x'))}, "ARTIFACT_MALFORMED", "chunk"},
          {Import(damaged, damaged), "ARTIFACT_MALFORMED", "chunk"},
          {Import(artifact + "x", artifact + "x"), "ARTIFACT_TOO_LONG", "chunk"},
          {Import(unreadable, unreadable), "TEXT_UNREADABLE", "chunk"}});
  Refuse("Import", Code::DATA_LOSS,
         {{{name, changed}, "CHUNK_CHECKSUM_MISMATCH", "chunk.crc32c"},
          {Import(artifact, "other"), "DIGEST_MISMATCH", "digest"}});
  ExpectNothingStored();
}

// What a server refuses because of others, of time, or of its flags.

TEST_F(RefusalsTest, CallersAndCalls) {
  const std::string file = folder_.path() + "/tokens";
  ReplaceFile(file,
              "reader a-token-that-reads\nbuilder a-token-that-builds\n"
              "reader a-token-of-the-past until=2001-01-01\n");
  StartWith({"--token_file=" + file, "--max_calls_per_caller=1", "--max_message_bytes=65536"});
  const auto tokens = [](const std::vector<std::string>& values) {
    std::multimap<std::string, std::string> metadata;
    for (const std::string& value : values) metadata.emplace("authorization", value);
    return metadata;
  };
  const auto list = [&](const char* reason, const std::vector<std::string>& values) {
    Refuse("ListMappings", Code::UNAUTHENTICATED, {{"", reason}}, tokens(values));
  };
  list("TOKEN_MISSING", {});
  list("TOKEN_MALFORMED", {"Basic dXNlcg=="});
  list("TOKEN_MALFORMED", {"Bearer a-token-that-reads", "Bearer twice"});
  list("TOKEN_UNKNOWN", {"Bearer a-token-of-nobody"});
  list("TOKEN_EXPIRED", {"Bearer a-token-of-the-past"});
  const auto reader = tokens({"Bearer a-token-that-reads"});
  Refuse("DeleteMapping", Code::PERMISSION_DENIED, {{"name: 'm'", "ROLE_TOO_LOW"}}, reader);
  Refuse("ListMappings", kInvalid, {{Raw{"\x07"}, "REQUEST_MALFORMED"}}, reader);
  Refuse("GetMapping", Code::UNIMPLEMENTED, {{{}, "MESSAGE_COUNT_WRONG"}}, reader);
  for (const char* path : {"/phimap.v1.MappingService/Nothing", "/phimap.v1.NoService/Get"}) {
    Refuse(path, Code::UNIMPLEMENTED, {{Raw{""}, "METHOD_UNKNOWN"}}, reader);
  }
  v1::GetMappingRequest large;
  large.set_name(std::string(65536, 'm'));
  Refuse("GetMapping", kExhausted, {{large, "MESSAGE_TOO_LARGE"}}, reader);
  auto headers = reader;
  headers.emplace("x", std::string(16384, 'y'));
  Refuse("GetMapping", kExhausted, {{"", "HEADERS_TOO_LARGE"}}, headers);
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer a-token-that-reads");
    context.set_compression_algorithm(algorithm);
    v1::Mapping mapping;
    ExpectRefused("GetMapping", Code::UNIMPLEMENTED, {large, "MESSAGE_COMPRESSED", "grpc-encoding"},
                  mappings_->GetMapping(&context, large, &mapping));
  }
  grpc::ClientContext builds;
  builds.AddMetadata("authorization", "Bearer a-token-that-builds");
  const auto open = mappings_->Build(&builds);
  open->Write(SpecWith(""));
  v1::BuildResponse accepted;
  ASSERT_TRUE(open->Read(&accepted));
  Refuse("ListMappings", kExhausted, {{"", "CALL_LIMIT_REACHED"}},
         tokens({"Bearer a-token-that-builds"}));
  EXPECT_THAT(Call("ListMappings", "", reader), IsOk());
  builds.TryCancel();
  open->Finish();
}

TEST_F(RefusalsTest, Revisions) {
  Start();
  MustBuild();
  grpc::ClientContext context;
  v1::Alias alias;
  const auto request = Parsed<v1::SetAliasRequest>("reference: 'letter@1' alias: 'a'");
  ASSERT_THAT(mappings_->SetAlias(&context, request, &alias), IsOk());
  const auto& trailers = context.GetServerTrailingMetadata();
  const grpc::string_ref now = trailers.find("phimap-revision")->second;
  const std::string revision(now.data(), now.size());
  const auto ask = [&](Code code, const char* reason, const std::string& least) {
    Refuse("GetMapping", code, {{"name: 'letter'", reason, "phimap-min-revision"}},
           {{"phimap-min-revision", least}});
  };
  ask(kInvalid, "REVISION_INVALID", "7");
  ask(kPrecondition, "REVISION_HISTORY_MISMATCH", "0:1");
  ask(kPrecondition, "REVISION_HISTORY_MISMATCH", revision + "0000");
  EXPECT_THAT(Call("GetMapping", "name: 'letter'", {{"phimap-min-revision", revision}}), IsOk());
}

TEST_F(RefusalsTest, BuildsWhoseIdIsInUseAndBuildsBeyondTheLimit) {
  StartWith({"--max_builds=1"});
  BuildStream open(*mappings_);
  open.Send(Spec("digit"));
  ASSERT_TRUE(open.AwaitAccepted().has_value());
  Refuse("Build", Code::ABORTED, {{SpecWith(""), "STREAM_OPEN", "spec.build_id"}});
  Refuse("Build", Code::ALREADY_EXISTS,
         {{SpecWith("seed: 1"), "BUILD_SPEC_MISMATCH", "spec.build_id"}});
  Refuse("Build", kExhausted,
         {{SpecWith("name: 'letter'"), "BUILD_LIMIT_REACHED", "", "", "limit=1"}});
  Answer(&MappingStub::CancelBuild, "name: 'digit' build_id: '" + Spec().build_id() + "'");
  ExpectRefused("Build", Code::CANCELLED, {{}, "BUILD_CANCELLED"}, open.Finish());
}

TEST_F(RefusalsTest, EvaluationsBeyondTheLimit) {
  Start();
  MustBuild();
  std::vector<std::unique_ptr<EvaluateStream>> open;
  for (int i = 0; i < kMaxEvaluations; ++i) {
    open.push_back(std::make_unique<EvaluateStream>(*evaluations_));
    open.back()->Send(EvaluationSpecOf());
    ASSERT_TRUE(open.back()->Await(v1::EvaluateProgress::STATE_RECEIVING));
  }
  const Request more = Evaluation("", Labeled(UniformExamples(20, 3)));
  Refuse("Evaluate", kExhausted,
         {{more, "EVALUATION_LIMIT_REACHED", "", "", absl::StrCat("limit=", kMaxEvaluations)}});
  for (const auto& stream : open) {
    stream->HalfClose();
    EXPECT_EQ(stream->Finish().error_code(), kInvalid);
  }
  // A call makes room for another one only when it is completely gone, which takes a moment.
  while (!Call("Evaluate", more).ok()) {
  }
}

TEST_F(RefusalsTest, WhatDoesNotFitIntoMemory) {
  Start();
  MustBuild();
  MustBuild("large", "f1(landmarks=40)");
  Stop();
  StartWith({"--build_memory_bytes=200000"});
  // A labeled row takes the memory of 5 features and 7 numbers, and another 24 bytes. Evaluations
  // may take half of the builds' memory, which the learner of the second one exceeds.
  Refuse("Evaluate", kExhausted,
         {{Evaluation("", Labeled(UniformExamples(2000, 3), 2000)), "BUILD_MEMORY_FULL", "", "",
           "limit=100000"},
          {Evaluation("learner: 'kernel_svm()'", Labeled(UniformExamples(100, 3))),
           "BUILD_MEMORY_FULL"}});
  // It takes a moment until the server releases the memory of the refused evaluations.
  while (!Call("Evaluate", Evaluation("", Labeled(UniformExamples(60, 3)))).ok()) {
  }
  Refuse("Build", kExhausted, {{Maps("f1(landmarks=8192)"), "BUILD_MEMORY_FULL"}});
  const std::string large = CertifiedArtifact({.columns = 400, .feature_count = 500});
  Refuse("Import", kExhausted,
         {{{"name: 'copy'", Chunk(0, large.substr(0, 1 << 20))}, "BUILD_MEMORY_FULL"}});
  Stop();
  StartWith({"--max_live_bytes=1024"});
  Refuse("Transform", kExhausted,
         {{TransformOf("large", UniformExamples(1, 3)), "LIVE_VERSIONS_FULL"}});
}

// Rows wait in a buffer of 1 MiB before they are written: 300 rows of 1,000 numbers are more.
TEST_F(RefusalsTest, WhatDoesNotFitOnTheDisk) {
  StartWith({"--training_disk_bytes=100000"});
  v1::TrainRequest block;
  *block.mutable_examples()->mutable_examples() = UniformExamples(300, 1000);
  for (int i = 0; i < 300; ++i) block.mutable_examples()->add_labels(i % 2 == 0 ? "a" : "b");
  Refuse("Train", kExhausted,
         {{{"spec { build_id: '00000000-0000-4000-8000-000000000001' build { name: 'own' spec: "
            "'f2(landmarks=10)' kernel: 'rbf(gamma=1)' } }",
            block, "finish { row_count: 300 }"},
           "TRAINING_DISK_FULL",
           "",
           "--training_disk_bytes",
           "limit=100000"}});
}

TEST_F(RefusalsTest, DamagedVersions) {
  Start();
  folder_.DamageBlob(MustBuild().ref().digest());
  Refuse("Export", Code::DATA_LOSS, {{"reference: 'letter'", "ARTIFACT_DAMAGED"}});
  Refuse("Transform", Code::DATA_LOSS,
         {{TransformOf("letter", UniformExamples(1, 3)), "ARTIFACT_DAMAGED"}});
}

// None of these clients ends its side of the stream, so each waits until the server ends the call.
TEST_F(RefusalsTest, SilentClients) {
  StartWith({"--build_idle_seconds=1", "--stream_idle_seconds=1"});
  MustBuild();
  BuildStream build(*mappings_);
  build.Send(Spec("digit"));
  EvaluateStream evaluate(*evaluations_);
  evaluate.Send(EvaluationSpecOf());
  v1::Version version;
  const auto import = mappings_->Import(NewContext(), &version);
  import->Write(Parsed<v1::ImportRequest>("name: 'copy'"));
  const auto transform = transforms_->TransformStream(NewContext());
  transform->Write(TransformOf("letter", UniformExamples(1, 3)));
  v1::TransformResponse response;
  while (transform->Read(&response)) {
  }
  const auto expect = [](const char* call, const grpc::Status& status) {
    ExpectRefused(call, Code::DEADLINE_EXCEEDED, {{}, "STREAM_IDLE"}, status);
  };
  expect("TransformStream", transform->Finish());
  expect("Build", build.Finish());
  expect("Evaluate", evaluate.Finish());
  expect("Import", import->Finish());
}

class ListedRefusalsTest : public RefusalsFixture {};

TEST_F(ListedRefusalsTest, TheseAreAllThatThePageLists) {
  // The others need a full disk, a broken machine, a newer phimap, a race, digests with a common
  // beginning, a faulty kernel service or a hostile artifact, or come over HTTP alone, or are
  // about the rights of callers (principals_rpc_test.cc) or the file of the audit.
  ExpectAllCame(
      "ARITHMETIC_UNKNOWN ARTIFACT_REMOVED ARTIFACT_TOO_LARGE AUDIT_LOG_NOT_WRITABLE "
      "BUILD_INTERRUPTED BUILD_OF_ANOTHER BUILD_TAKEN_OVER CALLER_RATE_REACHED "
      "CERTIFICATE_INVALID CERTIFICATE_TOO_LARGE COMMIT_IN_DOUBT DATABASE_BUSY DATABASE_DAMAGED "
      "DATABASE_EXHAUSTED DATABASE_FAILED DATABASE_READ_ONLY DATABASE_REFUSED DATABASE_UNAVAILABLE "
      "DIGEST_AMBIGUOUS DISK_FULL ENCODING_MISSING EXPORT_LIMIT_REACHED EXPORT_NOT_ALLOWED "
      "FILE_IO_FAILED "
      "FILE_PERMISSION_DENIED FILE_SYSTEM_READ_ONLY FLEET_TOO_OLD FORMAT_UNKNOWN "
      "HTTP_HEADER_INVALID IMPORT_LIMIT_REACHED KERNEL_EXAMPLES_TOO_LARGE KERNEL_OPERATION_UNKNOWN "
      "KERNEL_PROGRAM_INVALID KERNEL_QUEUE_FULL KERNEL_SERVICE_ANSWER_INVALID "
      "KERNEL_SERVICE_FAILED KERNEL_SERVICE_TIMED_OUT KERNEL_SERVICE_UNAVAILABLE "
      "MACHINE_MEMORY_FULL NAME_NOT_ALLOWED OPEN_FILE_LIMIT_REACHED PLAN_INVALID "
      "PROJECTION_TOO_LARGE QUEUE_FULL "
      "READER_TOO_SLOW REQUEST_MEMORY_FULL REQUEST_TOO_SLOW REQUEST_TRUNCATED "
      "REVISION_NOT_REACHED ROWS_TOO_MANY SAMPLE_TOO_LARGE SELF_CHECK_FAILED "
      "SELF_CHECK_SHAPE_MISMATCH SERVER_SHUTTING_DOWN SITE_FOREIGN STORE_SHARE_REACHED "
      "STREAM_TOO_SLOW TIMEOUT_INVALID "
      "TLS_CERTIFICATE_MISSING TOKEN_REVOKED Evaluate/MESSAGE_TOO_LARGE "
      "Import/VALUE_NOT_REPRESENTABLE "
      "Loading_a_version/ARTIFACT_MALFORMED Loading_a_version/KERNEL_SERVICE_NOT_LISTED",
      /*inference=*/false);
}

}  // namespace
}  // namespace phimap::testing
