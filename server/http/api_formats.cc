#include "server/http/api_formats.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/digest/named_columns.h"
#include "core/digest/sha256.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"
#include "phimap/v1/predict_service.pb.h"
#include "proto/chunk/artifact_chunk.h"
#include "server/http/body_rows.h"
#include "server/http/http_status.h"
#include "server/http/json.h"
#include "server/http/routes.h"
#include "server/http/row_answer.h"

namespace phimap {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageLite;
using google::protobuf::MethodDescriptor;
using Code = absl::StatusCode;
using Fields = std::vector<std::pair<std::string, std::string>>;

// ---- Types of bodies and answers

// Most bytes of the rows of a build, a training or an evaluation as JSON: within what the door has
// memory for while it cuts a body.
constexpr size_t kMaxJsonRowsBytes = 1 << 20;
static_assert(kMaxJsonRowsBytes < HttpFormat::kMaxUncutBytes);

// The types of rows as files.
constexpr char kRowFiles[] = "text/csv or application/x-npy";

enum class MediaType { kJson, kJsonLines, kCsv, kNpy, kBytes, kOther };

MediaType MediaTypeOf(absl::string_view text) {
  const std::string type =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(text.substr(0, text.find(';'))));
  if (type == "application/json") return MediaType::kJson;
  if (type == "application/x-ndjson") return MediaType::kJsonLines;
  if (type == "text/csv") return MediaType::kCsv;
  if (type == "application/x-npy") return MediaType::kNpy;
  if (type == "application/octet-stream") return MediaType::kBytes;
  return MediaType::kOther;
}

// The values of all headers of this name, with commas between.
std::string AllOf(const RequestHead& head, absl::string_view name) {
  std::string all;
  for (size_t i = 0; i < head.size(); ++i) {
    if (head.at(i).name == name) absl::StrAppend(&all, all.empty() ? "" : ",", head.at(i).value);
  }
  return all;
}

// The weight of a range of the header accept, such as "text/csv;q=0.5" (RFC 9110, section 12.4.2).
double WeightOf(absl::string_view range) {
  for (const absl::string_view parameter : absl::StrSplit(range, ';')) {
    const std::string text = absl::AsciiStrToLower(absl::StrReplaceAll(parameter, {{" ", ""}}));
    double weight = 0;
    if (absl::StartsWith(text, "q=") && absl::SimpleAtod(text.substr(2), &weight)) return weight;
  }
  return 1;
}

// Returns the type of the header accept that `offered` has and that weighs most, of several the
// first; the first offered one if the header is absent or takes any; nullopt if it takes none.
std::optional<MediaType> Accepted(absl::string_view accept, const std::vector<MediaType>& offered) {
  if (accept.empty()) return offered[0];
  std::optional<MediaType> best;
  double most = 0;
  for (const absl::string_view part : absl::StrSplit(accept, ',')) {
    const double weight = WeightOf(part);
    if (!(weight > most)) continue;
    const std::string range =
        absl::AsciiStrToLower(absl::StripAsciiWhitespace(part.substr(0, part.find(';'))));
    MediaType type = MediaTypeOf(range);
    if (range == "*/*" || range == "application/*") type = offered[0];
    if (range == "text/*") type = MediaType::kCsv;
    if (!absl::c_linear_search(offered, type)) continue;
    best = type;
    most = weight;
  }
  return best;
}

HttpRefusal WrongType(absl::string_view expected, absl::string_view actual) {
  return {MakeError(Code::kInvalidArgument, reason::kHttpHeaderInvalid, "content-type",
                    absl::StrCat("expected the header content-type: ", expected, ", got ",
                                 Quoted(actual))),
          "415"};
}

HttpRefusal WrongAccept(absl::string_view offered, absl::string_view actual) {
  return {MakeError(Code::kInvalidArgument, reason::kHttpHeaderInvalid, "accept",
                    absl::StrCat("expected the header accept to have one of ", offered, ", got ",
                                 Quoted(actual))),
          "406"};
}

// ---- The query

void AppendList(absl::string_view text, std::vector<std::string>& list) {
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    list.emplace_back(part);
  }
}

// INVALID_ARGUMENT if a column has a role that `method` does not know. A label may be left out of
// the inputs of any call.
absl::Status CheckRoles(const ColumnRoles& roles, const MethodDescriptor& method) {
  if (method.input_type() == v1::TrainRequest::descriptor()) return absl::OkStatus();
  const std::pair<const char*, const std::string&> others[] = {
      {"weights", roles.weights}, {"groups", roles.groups}, {"parts", roles.parts}};
  for (const auto& [role, column] : others) {
    if (column.empty()) continue;
    return MalformedHttp(role, absl::StrCat(method.name(), " has no ", role, "; exclude=", column,
                                            " leaves the column out"));
  }
  return absl::OkStatus();
}

// Takes the roles of columns out of the query.
absl::StatusOr<ColumnRoles> TakeRoles(Fields& query) {
  ColumnRoles roles;
  Fields rest;
  for (auto& [name, value] : query) {
    if (name == "columns") {
      AppendList(value, roles.columns);
    } else if (name == "exclude") {
      AppendList(value, roles.exclude);
    } else if (name == "label") {
      roles.label = std::move(value);
    } else if (name == "weights") {
      roles.weights = std::move(value);
    } else if (name == "groups") {
      roles.groups = std::move(value);
    } else if (name == "parts") {
      roles.parts = std::move(value);
    } else if (name == "delimiter") {
      if (value == "tab") value = "\t";
      if (value.size() != 1 || value[0] == '"' || value[0] == '\n' || value[0] == '\r') {
        return MalformedHttp("delimiter",
                             absl::StrCat("expected one character, or tab, got ", Quoted(value)));
      }
      roles.delimiter = value[0];
    } else {
      rest.emplace_back(std::move(name), std::move(value));
    }
  }
  query = std::move(rest);
  return roles;
}

// INVALID_ARGUMENT if the query names a column of a body that has none.
absl::Status CheckNoRoles(Fields query) {
  const size_t fields = query.size();
  PHIMAP_RETURN_IF_ERROR(TakeRoles(query).status());
  if (query.size() == fields) return absl::OkStatus();
  return MalformedHttp(
      "query",
      "a body of JSON has no columns to name; its labels, weights, groups and parts "
      "are fields beside its rows");
}

// A version 4 UUID, for a build whose client draws none.
std::string DrawUuid() {
  std::random_device device;
  const auto draw = [&device] { return (uint64_t{device()} << 32) | device(); };
  const uint64_t high = (draw() & ~uint64_t{0xf000}) | 0x4000;
  const uint64_t low = (draw() & ~(uint64_t{3} << 62)) | (uint64_t{1} << 63);
  return absl::StrFormat("%08x-%04x-%04x-%04x-%012x", high >> 32, (high >> 16) & 0xffff,
                         high & 0xffff, low >> 48, low & ((uint64_t{1} << 48) - 1));
}

// ---- Calls with one request

class UnaryFormat final : public HttpFormat {
 public:
  UnaryFormat(Route route, MediaType body, ColumnRoles roles, MediaType answer)
      : route_(std::move(route)), body_(body), roles_(std::move(roles)), answer_(answer) {}

  int64_t Cost(absl::string_view body) const override {
    const auto bytes = static_cast<int64_t>(body.size());
    return body_ == MediaType::kJson ? JsonCost(bytes)
                                     : BodyRows::Cost(TypeOfFile(), roles_, bytes);
  }

  absl::Status Parse(absl::string_view body, MessageLite& message) override {
    auto& request = static_cast<Message&>(message);
    if (!route_.rule->has_body && !body.empty()) {
      return MalformedHttp(
          "body", "expected no body for this method of HTTP; its fields come in the query");
    }
    if (route_.rule->has_body) {
      PHIMAP_RETURN_IF_ERROR(body_ == MediaType::kJson ? ParseJson(body, request)
                                                       : ParseRows(body, request));
    }
    PHIMAP_RETURN_IF_ERROR(SetFields(route_.query, request));
    PHIMAP_RETURN_IF_ERROR(SetFields(route_.fields, request));
    const auto* const predict = dynamic_cast<const v1::PredictRequest*>(&request);
    if (answer_ == MediaType::kNpy && predict != nullptr && predict->label_names()) {
      return MalformedHttp("label_names",
                           "an array holds no names of classes; accept text/csv, or leave this "
                           "field out for their indices");
    }
    return absl::OkStatus();
  }

  // An array has the message's bytes, or numbers of 8 bytes in place of 4, made in two steps.
  int64_t AnswerCost(int64_t bytes) const override {
    return answer_ == MediaType::kNpy ? 4096 + 8 * bytes : PrintedCost(bytes);
  }

  HttpAnswer Write(Message& answer) override {
    if (answer_ == MediaType::kCsv) {
      return {{{"content-type", "text/csv; charset=utf-8"}}, CsvOf(answer)};
    }
    if (answer_ == MediaType::kNpy) return {{{"content-type", "application/x-npy"}}, NpyOf(answer)};
    return {{{"content-type", "application/json"}}, PrintJson(answer)};
  }

 private:
  FileType TypeOfFile() const { return body_ == MediaType::kCsv ? FileType::kCsv : FileType::kNpy; }

  absl::Status ParseRows(absl::string_view body, Message& request) const {
    const FileType type = TypeOfFile();
    BodyCutter cutter(type);
    BodyRows reader(type, roles_);
    const size_t header = cutter.Next(body, /*ended=*/true).value_or(0);
    PHIMAP_RETURN_IF_ERROR(reader.ReadHeader(body.substr(0, header)));
    v1::TrainingExamples rows;
    PHIMAP_RETURN_IF_ERROR(reader.ReadAll(body.substr(header), rows));
    PHIMAP_RETURN_IF_ERROR(reader.CheckEnd());
    const google::protobuf::Reflection& reflection = *request.GetReflection();
    const auto& fields = *request.GetDescriptor();
    reflection.MutableMessage(&request, fields.FindFieldByName("examples"))
        ->GetReflection()
        ->Swap(reflection.MutableMessage(&request, fields.FindFieldByName("examples")),
               rows.mutable_examples());
    if (!reader.column_names().empty()) {
      reflection.SetUInt64(&request, fields.FindFieldByName("column_names_hash"),
                           ColumnNamesHash(reader.column_names()));
    }
    return absl::OkStatus();
  }

  const Route route_;
  const MediaType body_;
  const ColumnRoles roles_;
  const MediaType answer_;
};

// ---- Calls with a stream of rows

// Build, Train and Evaluate, whose messages have the same shape: `spec`, then `examples`, then
// `finish`; and answers with events, of which the last has the result. The query has the spec.
class RowStreamFormat : public HttpFormat {
 public:
  RowStreamFormat(Route route, bool each) : route_(std::move(route)), each_(each) {
    if (route_.rule->method->input_type() == v1::EvaluateRequest::descriptor()) return;
    for (const auto& [name, value] : route_.query) {
      if (name == "build_id") build_id_ = value;
    }
    if (build_id_.empty()) build_id_ = DrawUuid();
  }

  // So that a client whose call breaks off can ask for the build.
  std::string build_id() const override { return build_id_; }

  int64_t AnswerCost(int64_t bytes) const override { return PrintedCost(bytes); }
  bool SendsEach() const override { return each_; }

  HttpAnswer Write(Message& answer) override {
    if (each_) return {{{"content-type", "application/x-ndjson"}}, PrintJson(answer)};
    for (const char* const name : {"version", "evaluation"}) {
      const FieldDescriptor* const field = answer.GetDescriptor()->FindFieldByName(name);
      if (field == nullptr || !answer.GetReflection()->HasField(answer, field)) continue;
      return {{{"content-type", "application/json"}},
              PrintJson(*answer.GetReflection()->MutableMessage(&answer, field))};
    }
    return {{{"content-type", "application/json"}}, PrintJson(answer)};
  }

  std::string LateError(const HttpError& error) const override {
    return absl::StrCat("{\"error\":", absl::StripTrailingAsciiWhitespace(error.body), "}\n");
  }

 protected:
  // Writes the spec, whose fields are the query's. `names`: the columns of the inputs, empty if
  // they have no names.
  absl::Status PutSpec(const std::vector<std::string>& names, Message& request) const {
    const FieldDescriptor* const spec = request.GetDescriptor()->FindFieldByName("spec");
    PHIMAP_RETURN_IF_ERROR(
        SetFields(route_.query, *request.GetReflection()->MutableMessage(&request, spec)));
    const bool builds = absl::c_any_of(route_.query, [](const auto& field) {
      return absl::StartsWith(field.first, "build.") || absl::StartsWith(field.first, "tuning.");
    });
    Fields fields = route_.fields;
    for (auto& [path, value] : fields) {
      // A training that builds its features names what it makes, not what it trains on.
      if (builds && path == "spec.reference") path = "spec.build.name";
    }
    PHIMAP_RETURN_IF_ERROR(SetFields(fields, request));
    if (auto* const build = dynamic_cast<v1::BuildRequest*>(&request)) {
      NameColumns(names, *build->mutable_spec());
      build->mutable_spec()->set_build_id(build_id_);
    } else if (auto* const train = dynamic_cast<v1::TrainRequest*>(&request)) {
      v1::TrainingSpec& spec = *train->mutable_spec();
      spec.set_build_id(build_id_);
      if (spec.has_build()) {
        NameColumns(names, *spec.mutable_build());
      } else if (!names.empty()) {
        spec.set_column_names_hash(ColumnNamesHash(names));
      }
    } else if (!names.empty()) {
      auto& evaluation = static_cast<v1::EvaluateRequest&>(request);
      evaluation.mutable_spec()->set_column_names_hash(ColumnNamesHash(names));
    }
    return absl::OkStatus();
  }

  // Moves what the call has of the rows into `request`.
  static void PutRows(v1::TrainingExamples& rows, Message& request) {
    if (request.GetDescriptor() == v1::BuildRequest::descriptor()) {
      static_cast<v1::BuildRequest&>(request).mutable_examples()->Swap(rows.mutable_examples());
    } else if (request.GetDescriptor() == v1::TrainRequest::descriptor()) {
      static_cast<v1::TrainRequest&>(request).mutable_examples()->Swap(&rows);
    } else {
      v1::LabeledExamples& labeled = *static_cast<v1::EvaluateRequest&>(request).mutable_examples();
      labeled.mutable_examples()->Swap(rows.mutable_examples());
      labeled.mutable_labels()->Swap(rows.mutable_labels());
    }
  }

  static absl::Status PutEnd(int64_t rows, Message& request) {
    return SetFields({{"finish.row_count", absl::StrCat(rows)}}, request);
  }

 private:
  static void NameColumns(const std::vector<std::string>& names, v1::BuildSpec& spec) {
    for (const std::string& name : names) spec.add_column_names(name);
  }

  const Route route_;
  const bool each_;
  std::string build_id_;
};

// Rows as a file of any size.
class FileStreamFormat final : public RowStreamFormat {
 public:
  FileStreamFormat(Route route, bool each, FileType type, ColumnRoles roles)
      : RowStreamFormat(std::move(route), each),
        is_csv_(type == FileType::kCsv),
        cutter_(type),
        rows_(type, std::move(roles)) {}

  std::optional<HttpPiece> Cut(absl::string_view arrived, bool ended) override {
    if (finished_) return std::nullopt;
    if (OnlyBlankLines(arrived)) {
      // They are no message of their own. If rows follow, they are read with them, and refused.
      if (ended) return HttpPiece{arrived.size(), /*is_message=*/false};
      if (arrived.size() <= kMaxBodyRowBytes) return std::nullopt;
    }
    blank_bytes_ = 0;
    if (const std::optional<size_t> bytes = cutter_.Next(arrived, ended)) {
      header_cut_ = true;
      return HttpPiece{*bytes};
    }
    if (!ended) return std::nullopt;
    // An empty body has an empty header, which is refused as such.
    if (!std::exchange(header_cut_, true)) return HttpPiece{};
    finished_ = true;
    return HttpPiece{};
  }

  int64_t Cost(absl::string_view body) const override {
    return rows_.Cost(static_cast<int64_t>(body.size()));
  }

  absl::Status Parse(absl::string_view body, MessageLite& message) override {
    auto& request = static_cast<Message&>(message);
    if (!std::exchange(begun_, true)) {
      PHIMAP_RETURN_IF_ERROR(rows_.ReadHeader(body));
      return PutSpec(rows_.column_names(), request);
    }
    if (body.empty()) {
      PHIMAP_RETURN_IF_ERROR(rows_.CheckEnd());
      return PutEnd(rows_.rows(), request);
    }
    v1::TrainingExamples rows;
    PHIMAP_RETURN_IF_ERROR(rows_.Read(body, rows));
    if (rows.examples().kind_case() == v1::Examples::KIND_NOT_SET) {
      return MalformedHttp("rows", "expected rows, got a mebibyte of blank lines");
    }
    PutRows(rows, request);
    return absl::OkStatus();
  }

 private:
  // Whether `arrived`, which follows the header of a body of CSV, is not empty and has blank lines
  // only. Looks at each byte once while nothing is cut.
  bool OnlyBlankLines(absl::string_view arrived) {
    if (!is_csv_ || !header_cut_ || arrived.empty()) return false;
    while (blank_bytes_ < arrived.size() &&
           (arrived[blank_bytes_] == '\n' || arrived[blank_bytes_] == '\r')) {
      ++blank_bytes_;
    }
    return blank_bytes_ == arrived.size();
  }

  const bool is_csv_;
  // Used by Cut.
  BodyCutter cutter_;
  bool header_cut_ = false;
  bool finished_ = false;
  size_t blank_bytes_ = 0;
  // Used by Parse.
  BodyRows rows_;
  bool begun_ = false;
};

// Rows as the JSON of TrainingExamples, which is read when all of it has arrived.
class JsonStreamFormat final : public RowStreamFormat {
 public:
  JsonStreamFormat(Route route, bool each, const MethodDescriptor& method)
      : RowStreamFormat(std::move(route), each), method_(method) {}

  static absl::Status TooLarge() {
    return MakeError(
        Code::kResourceExhausted, reason::kMessageTooLarge, "body",
        absl::StrCat("expected at most ", kMaxJsonRowsBytes, " bytes of JSON, got more; send ",
                     kRowFiles, ", which may have any size"),
        {{"limit", absl::StrCat(kMaxJsonRowsBytes)}});
  }

  // The messages have no bytes but one that is too large, which the call refuses.
  std::optional<HttpPiece> Cut(absl::string_view arrived, bool ended) override {
    if (arrived.size() > kMaxJsonRowsBytes) return HttpPiece{arrived.size()};
    if (!ended || pieces_ == kPieces) return std::nullopt;
    if (!arrived.empty()) {
      text_ = std::string(arrived);
      return HttpPiece{arrived.size(), /*is_message=*/false};
    }
    ++pieces_;
    return HttpPiece{};
  }

  int64_t Cost(absl::string_view body) const override {
    if (parsed_ + 1 == kPieces) return 4096;
    // A label or a group of two bytes, such as "7,", becomes a text of 40 bytes.
    const auto bytes = static_cast<int64_t>(body.size() + text_.size());
    return JsonCost(bytes) + 20 * bytes;
  }

  absl::Status Parse(absl::string_view body, MessageLite& message) override {
    auto& request = static_cast<Message&>(message);
    if (!body.empty()) return TooLarge();
    if (++parsed_ == kPieces) return PutEnd(rows_, request);
    v1::TrainingExamples rows;
    PHIMAP_RETURN_IF_ERROR(ReadRows(rows));
    // The spec is the first message, and is not begun with if the rows are wrong.
    if (parsed_ == 1) return PutSpec({}, request);
    text_ = std::string();
    rows_ = RowsOf(rows.examples());
    PutRows(rows, request);
    return absl::OkStatus();
  }

 private:
  // The spec, the rows and the end.
  static constexpr int kPieces = 3;

  absl::Status ReadRows(v1::TrainingExamples& rows) const {
    const absl::Status read = ParseJson(text_, rows);
    if (read.ok()) return CheckKnown(rows);
    const std::optional<ErrorDetail> detail = DetailOf(read);
    if (!detail.has_value() || detail->field != "body") return read;
    return MalformedHttp("body",
                         absl::StrCat(absl::StripPrefix(read.message(), "body: "),
                                      "; the body has rows or examples, and labels, weights, "
                                      "groups and parts; all else is in the query"));
  }

  // INVALID_ARGUMENT if rows have what the call does not know of.
  absl::Status CheckKnown(const v1::TrainingExamples& rows) const {
    if (rows.examples().kind_case() == v1::Examples::KIND_NOT_SET) {
      return MalformedHttp("rows", "expected rows, such as {\"rows\": [[1, 2], [3, 4]]}, got none");
    }
    const bool trains = method_.input_type() == v1::TrainRequest::descriptor();
    const bool has_labels = method_.input_type() != v1::BuildRequest::descriptor();
    const std::tuple<const char*, int, bool> parts[] = {{"labels", rows.labels_size(), has_labels},
                                                        {"weights", rows.weights_size(), trains},
                                                        {"groups", rows.groups_size(), trains},
                                                        {"parts", rows.parts_size(), trains}};
    for (const auto& [name, size, known] : parts) {
      if (size > 0 && !known) {
        return MalformedHttp(name, absl::StrCat(method_.name(), " has no ", name));
      }
    }
    return absl::OkStatus();
  }

  static int64_t RowsOf(const v1::Examples& examples) {
    switch (examples.kind_case()) {
      case v1::Examples::kDense:
        return examples.dense().rows();
      case v1::Examples::kSparse:
        return examples.sparse().rows();
      case v1::Examples::kText:
        return examples.text().values_size();
      case v1::Examples::kBytes:
        return examples.bytes().values_size();
      case v1::Examples::KIND_NOT_SET:
        break;
    }
    return 0;
  }

  const MethodDescriptor& method_;
  // Used by Cut.
  int pieces_ = 0;
  // Written by Cut before the first message begins, and afterwards used by Parse.
  std::string text_;
  int parsed_ = 0;
  int64_t rows_ = 0;
};

// ---- Artifacts

class ImportFormat final : public HttpFormat {
 public:
  explicit ImportFormat(Route route) : route_(std::move(route)) {}

  std::optional<HttpPiece> Cut(absl::string_view arrived, bool ended) override {
    if (!std::exchange(named_, true)) return HttpPiece{};
    constexpr size_t kChunk = kSentChunkBytes;
    if (arrived.size() >= kChunk || (ended && !arrived.empty())) {
      return HttpPiece{std::min(arrived.size(), kChunk)};
    }
    if (!ended || std::exchange(finished_, true)) return std::nullopt;
    return HttpPiece{};
  }

  int64_t Cost(absl::string_view body) const override {
    return 4096 + 2 * static_cast<int64_t>(body.size());
  }

  absl::Status Parse(absl::string_view body, MessageLite& message) override {
    auto& request = static_cast<v1::ImportRequest&>(message);
    if (!std::exchange(begun_, true)) {
      for (const auto& [name, value] : route_.query) {
        if (name != "digest") return MalformedHttp(name, "expected digest, or no query");
        if (value.size() == 64 && absl::c_all_of(value, absl::ascii_isxdigit)) continue;
        return MalformedHttp(name, "expected the 64 hexadecimal digits of a SHA-256");
      }
      return SetFields(route_.fields, request);
    }
    if (body.empty()) {
      request.set_digest(route_.query.empty() ? hash_.Hex() : route_.query[0].second);
      return absl::OkStatus();
    }
    hash_.Update(body);
    FillChunk(received_, std::string(body), *request.mutable_chunk());
    received_ += static_cast<int64_t>(body.size());
    return absl::OkStatus();
  }

  int64_t AnswerCost(int64_t bytes) const override { return PrintedCost(bytes); }
  HttpAnswer Write(Message& answer) override {
    return {{{"content-type", "application/json"}}, PrintJson(answer)};
  }

 private:
  const Route route_;
  // Used by Cut.
  bool named_ = false;
  bool finished_ = false;
  // Used by Parse.
  bool begun_ = false;
  Sha256 hash_;
  int64_t received_ = 0;
};

// The artifact's bytes, as they are in a file of `phimap export`.
class ExportFormat final : public HttpFormat {
 public:
  explicit ExportFormat(Route route) : route_(std::move(route)) {}

  int64_t Cost(absl::string_view body) const override {
    return 4096 + static_cast<int64_t>(body.size());
  }
  absl::Status Parse(absl::string_view body, MessageLite& message) override {
    if (!body.empty()) return MalformedHttp("body", "expected no body");
    auto& request = static_cast<v1::ExportRequest&>(message);
    PHIMAP_RETURN_IF_ERROR(SetFields(route_.query, request));
    return SetFields(route_.fields, request);
  }
  int64_t AnswerCost(int64_t bytes) const override { return 4096 + 2 * bytes; }
  bool SendsEach() const override { return true; }
  HttpAnswer Write(Message& answer) override {
    auto& chunk = static_cast<v1::ArtifactChunk&>(answer);
    HttpAnswer written;
    if (chunk.has_version()) {
      written.headers = std::vector<std::pair<std::string, std::string>>{
          {"content-type", "application/octet-stream"},
          {"content-length", absl::StrCat(chunk.artifact_size_bytes())},
          {"content-disposition", absl::StrCat("attachment; filename=\"", chunk.version().name(),
                                               "-", chunk.version().number(), ".phimap\"")},
          {"etag", absl::StrCat("\"sha256:", chunk.version().digest(), "\"")}};
    }
    written.body = std::move(*chunk.mutable_data());
    return written;
  }

 private:
  const Route route_;
};

// ---- What a request calls

std::optional<HttpRefusal> FindStream(const RequestHead& head, Route route, HttpTarget& target) {
  const MethodDescriptor& method = *route.rule->method;
  const absl::string_view content = head.Find("content-type");
  const MediaType body = MediaTypeOf(content);
  if (method.input_type() == v1::ExportRequest::descriptor()) {
    target.format = std::make_shared<ExportFormat>(std::move(route));
    return std::nullopt;
  }
  if (method.input_type() == v1::ImportRequest::descriptor()) {
    if (body != MediaType::kBytes) return WrongType("application/octet-stream", content);
    target.format = std::make_shared<ImportFormat>(std::move(route));
    return std::nullopt;
  }
  const bool json = body == MediaType::kJson;
  if (!json && body != MediaType::kCsv && body != MediaType::kNpy) {
    return WrongType(absl::StrCat(kRowFiles, ", with the rows as the body, or application/json"),
                     content);
  }
  const std::optional<MediaType> answer =
      Accepted(AllOf(head, "accept"), {MediaType::kJson, MediaType::kJsonLines});
  if (!answer.has_value()) {
    return WrongAccept("application/json and application/x-ndjson", head.Find("accept"));
  }
  const bool each = *answer == MediaType::kJsonLines;
  if (json) {
    size_t length = 0;
    if (absl::SimpleAtoi(head.Find("content-length"), &length) && length > kMaxJsonRowsBytes) {
      return HttpRefusal{JsonStreamFormat::TooLarge(), "413"};
    }
    if (absl::Status known = CheckNoRoles(route.query); !known.ok()) return HttpRefusal{known};
    target.format = std::make_shared<JsonStreamFormat>(std::move(route), each, method);
    return std::nullopt;
  }
  absl::StatusOr<ColumnRoles> roles = TakeRoles(route.query);
  if (!roles.ok()) return HttpRefusal{roles.status()};
  if (absl::Status known = CheckRoles(*roles, method); !known.ok()) return HttpRefusal{known};
  target.format = std::make_shared<FileStreamFormat>(
      std::move(route), each, body == MediaType::kCsv ? FileType::kCsv : FileType::kNpy,
      *std::move(roles));
  return std::nullopt;
}

}  // namespace

std::optional<HttpRefusal> FindApiTarget(const RequestHead& head, HttpTarget& target) {
  // HEAD is answered as GET, without the body.
  const absl::string_view verb = head.Find(":method") == "HEAD" ? "GET" : head.Find(":method");
  absl::StatusOr<Route> route = Routes::OfApi().Find(verb, head.Find(":path"));
  if (!route.ok()) {
    return HttpRefusal{route.status(), absl::IsUnimplemented(route.status()) ? "405" : ""};
  }
  target.method = route->rule->method;
  const absl::string_view encoding = head.Find("content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    return HttpRefusal{
        MakeError(Code::kInvalidArgument, reason::kHttpHeaderInvalid, "content-encoding",
                  absl::StrCat("expected a body that is not compressed, got content-encoding: ",
                               encoding)),
        "415"};
  }
  if (target.method->client_streaming() || target.method->server_streaming()) {
    return FindStream(head, *std::move(route), target);
  }
  const bool rows = IsRowAnswer(*target.method->output_type());
  const absl::string_view content = head.Find("content-type");
  const MediaType body = route->rule->has_body ? MediaTypeOf(content) : MediaType::kJson;
  const bool file = rows && (body == MediaType::kCsv || body == MediaType::kNpy);
  if (body != MediaType::kJson && !file) {
    return WrongType(rows ? "application/json, text/csv or application/x-npy" : "application/json",
                     content);
  }
  std::vector<MediaType> offered = {MediaType::kJson};
  if (rows) offered.insert(offered.end(), {MediaType::kCsv, MediaType::kNpy});
  const std::optional<MediaType> answer = Accepted(AllOf(head, "accept"), offered);
  if (!answer.has_value()) {
    return WrongAccept(
        rows ? "application/json, text/csv and application/x-npy" : "application/json",
        head.Find("accept"));
  }
  if (route->rule->has_body && !file && !route->query.empty()) {
    return HttpRefusal{
        MalformedHttp("query", "expected fields in the JSON of the body, got a query")};
  }
  absl::StatusOr<ColumnRoles> roles = file ? TakeRoles(route->query) : ColumnRoles();
  if (!roles.ok()) return HttpRefusal{roles.status()};
  if (absl::Status known = CheckRoles(*roles, *target.method); !known.ok()) {
    return HttpRefusal{known};
  }
  target.format =
      std::make_shared<UnaryFormat>(*std::move(route), body, *std::move(roles), *answer);
  return std::nullopt;
}

}  // namespace phimap
