#include "server/store/records.h"

#include <cstdint>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Texts are escaped, so that no field contains the separator.
constexpr char kSeparator = '\t';

std::string Joined(const std::vector<std::string>& fields) {
  return absl::StrJoin(fields, "\t", [](std::string* out, const std::string& field) {
    absl::StrAppend(out, absl::Utf8SafeCEscape(field));
  });
}

std::string Micros(absl::Time time) {
  return time == absl::InfiniteFuture() ? "" : absl::StrCat(absl::ToUnixMicros(time));
}

// Reads the fields of a text in their order.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view text) : fields_(absl::StrSplit(text, kSeparator)) {}

  std::string Text() {
    std::string text;
    if (next_ >= fields_.size() || !absl::CUnescape(fields_[next_++], &text)) valid_ = false;
    return text;
  }
  // Returns "" if the text was written before there was this field.
  std::string LaterText() { return next_ < fields_.size() ? Text() : ""; }
  int64_t Int() {
    int64_t number = 0;
    if (!absl::SimpleAtoi(Text(), &number)) valid_ = false;
    return number;
  }
  // Returns `if_empty` for an empty field.
  absl::Time Time(absl::Time if_empty) {
    const std::string text = Text();
    int64_t micros = 0;
    if (text.empty()) return if_empty;
    if (!absl::SimpleAtoi(text, &micros)) valid_ = false;
    return absl::FromUnixMicros(micros);
  }
  absl::Status End() const {
    if (valid_ && next_ == fields_.size()) return absl::OkStatus();
    return MakeError(absl::StatusCode::kDataLoss, reason::kDatabaseDamaged, "",
                     "a record that was kept as text cannot be read; look up what it was about");
  }

 private:
  const std::vector<std::string> fields_;
  size_t next_ = 0;
  bool valid_ = true;
};

}  // namespace

std::string TextOf(const AliasRecord& alias) {
  return Joined({alias.mapping, alias.name, absl::StrCat(alias.version), alias.digest,
                 absl::StrCat(alias.previous_version), alias.etag, Micros(alias.move_time),
                 alias.moved_by});
}

absl::StatusOr<AliasRecord> AliasFrom(absl::string_view text) {
  FieldReader reader(text);
  AliasRecord alias;
  alias.mapping = reader.Text();
  alias.name = reader.Text();
  alias.version = reader.Int();
  alias.digest = reader.Text();
  alias.previous_version = reader.Int();
  alias.etag = reader.Text();
  alias.move_time = reader.Time(absl::InfiniteFuture());
  alias.moved_by = reader.LaterText();
  PHIMAP_RETURN_IF_ERROR(reader.End());
  return alias;
}

std::string TextOf(const VersionRecord& version) {
  const bool expires = version.ttl != absl::InfiniteDuration();
  return Joined({version.mapping, absl::StrCat(version.number), version.digest,
                 absl::StrCat(version.artifact_size_bytes), Micros(version.create_time),
                 absl::StrCat(version.input_columns), absl::StrCat(version.output_columns),
                 version.serving_type, version.spec_text, version.kernel_text,
                 version.imported ? "1" : "0",
                 absl::StrCat(expires ? absl::ToInt64Microseconds(version.ttl) : 0),
                 Micros(version.expire_time), version.made_by});
}

absl::StatusOr<VersionRecord> VersionFrom(absl::string_view text) {
  FieldReader reader(text);
  VersionRecord version;
  version.mapping = reader.Text();
  version.number = reader.Int();
  version.digest = reader.Text();
  version.artifact_size_bytes = reader.Int();
  version.create_time = reader.Time(absl::InfiniteFuture());
  version.input_columns = reader.Int();
  version.output_columns = reader.Int();
  version.serving_type = reader.Text();
  version.spec_text = reader.Text();
  version.kernel_text = reader.Text();
  version.imported = reader.Int() != 0;
  if (const int64_t ttl = reader.Int(); ttl > 0) version.ttl = absl::Microseconds(ttl);
  version.expire_time = reader.Time(absl::InfiniteFuture());
  version.made_by = reader.LaterText();
  PHIMAP_RETURN_IF_ERROR(reader.End());
  return version;
}

}  // namespace phimap
