#include "core/head/report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/plan/byte_codec.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

// Format (docs/formats.md): a count, then that many fields of tag (u16), length (u32) and bytes, in
// ascending order of tags. A field has the members of its type one after the other: numbers as they
// are, a text as its length and bytes, something optional as a byte 0, or 1 and its value. A field
// of a list has its elements up to the field's end. What is absent or empty has no field.
//
// Members() says once, for writing and for reading, which members a type has and in which order. It
// must only grow by new tags in Fields().
namespace phimap {
namespace {

constexpr int64_t kMaxFields = 1024;
constexpr int64_t kMaxFieldBytes = int64_t{1} << 22;
constexpr int64_t kMaxTextBytes = 1 << 16;

template <typename Stream>
void Members(Stream& s, PartCounts& v) {
  for (int64_t& rows : v.rows) s(rows);
  s(v.unused), s(v.large_groups);
}
template <typename Stream>
void Members(Stream& s, Estimate& v) {
  s(v.value), s(v.low), s(v.high);
}
template <typename Stream>
void Members(Stream& s, ParameterChoice::Candidate& v) {
  s(v.value), s(v.loss);
}
template <typename Stream>
void Members(Stream& s, ParameterChoice& v) {
  s(v.parameter), s(v.loss), s(v.chosen), s(v.candidates);
}
template <typename Stream>
void Members(Stream& s, TuningTrial& v) {
  s(v.spec), s(v.kernel), s(v.standardize), s(v.learner), s(v.rows);
  s(v.loss), s(v.error), s(v.microseconds);
}
template <typename Stream>
void Members(Stream& s, FoldingFigures& v) {
  s(v.rows), s(v.largest_difference), s(v.largest_bound), s(v.changed);
}
template <typename Stream>
void Members(Stream& s, Baseline& v) {
  s(v.name), s(v.error);
}
template <typename Stream>
void Members(Stream& s, Coverage& v) {
  s(v.confidence), s(v.rows), s(v.covered), s(v.low), s(v.high), s(v.mean_size);
}
template <typename Stream>
void Members(Stream& s, CertifiedTestMargin& v) {
  s(v.alpha), s(v.rows_margin), s(v.margin);
}
template <typename Stream>
void Members(Stream& s, ClassFigures::Class& v) {
  s(v.rows), s(v.predicted), s(v.correct);
}
template <typename Stream>
void Members(Stream& s, ClassFigures::Confusion& v) {
  s(v.actual), s(v.predicted), s(v.count);
}
template <typename Stream>
void Members(Stream& s, ClassFigures::ReliabilityBin& v) {
  s(v.bin), s(v.rows), s(v.correct), s(v.mean_confidence);
}
template <typename Stream>
void Members(Stream& s, ClassFigures::RocPoint& v) {
  s(v.threshold), s(v.false_positives), s(v.true_positives);
}

// The fields and their tags. Never reuse a number. `f(tag, value)` stands for one field.
template <typename F>
void Fields(F& f, TrainingReport& v) {
  f(1, v.parts);
  f(2, v.confidence);
  f(3, v.premise);
  f(4, v.coverage);
  f(5, v.class_conditional);
  f(6, v.baselines);
  f(7, v.choice);
  f(8, v.folding);
  f(9, v.notes);
  f(10, v.trials);
}
template <typename F>
void Fields(F& f, ClassFigures& v) {
  f(32, v.rows);
  f(33, v.errors);
  f(34, v.error);
  f(35, v.classes);
  f(36, v.confusion);
  f(37, v.balanced_accuracy);
  f(38, v.auc);
  f(39, v.roc);
  f(40, v.log_loss);
  f(41, v.brier);
  f(42, v.calibration_error);
  f(43, v.reliability);
  f(44, v.margins);
  f(45, v.unnormalised_margins);
  f(46, v.kernel_margins);
  f(47, v.intercept_scale);
  f(48, v.certified);
}
template <typename F>
void Fields(F& f, NumberFigures& v) {
  f(64, v.rows);
  f(65, v.rmse);
  f(66, v.mae);
  f(67, v.r_squared);
  f(68, v.residuals);
  f(69, v.standardised_error);
}
// The fields by which a reader knows what a report is of.
constexpr uint16_t kClassRows = 32;
constexpr uint16_t kNumberRows = 64;

// Writes values one after the other.
class ValueWriter {
 public:
  explicit ValueWriter(std::string& out) : writer_(out) {}

  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      writer_.Number<uint8_t>(value ? 1 : 0);
    } else if constexpr (std::is_arithmetic_v<T>) {
      if constexpr (std::is_floating_point_v<T>) {
        PHIMAP_CHECK(!std::isnan(value));
        constexpr T kLargest = std::numeric_limits<T>::max();
        writer_.Number(std::clamp(value, -kLargest, kLargest));
      } else {
        writer_.Number(value);
      }
    } else {
      Members(*this, value);
    }
  }
  void operator()(std::string& text) {
    PHIMAP_CHECK(text.size() <= kMaxTextBytes);
    writer_.Text(text);
  }
  template <typename T>
  void operator()(std::optional<T>& value) {
    writer_.Number<uint8_t>(value.has_value() ? 1 : 0);
    if (value.has_value()) (*this)(*value);
  }
  // A list is the last member of its field.
  template <typename T>
  void operator()(std::vector<T>& values) {
    for (T& value : values) (*this)(value);
  }

 private:
  ByteWriter writer_;
};

// Reads what ValueWriter wrote. Counts of rows and classes are at least 0.
class ValueReader {
 public:
  explicit ValueReader(absl::string_view bytes) : reader_(bytes, 0) {}

  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      const uint8_t flag = reader_.Number<uint8_t>();
      reader_.CheckRange("flag", flag, 0, 1);
      value = flag == 1;
    } else if constexpr (std::is_floating_point_v<T>) {
      value = reader_.Number<T>();
      if (!std::isfinite(value)) reader_.Fail("a number is not finite");
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = reader_.Number<T>();
      if (value < 0) reader_.Fail("a count is under 0");
    } else {
      Members(*this, value);
    }
  }
  void operator()(std::string& text) { text = reader_.Text(kMaxTextBytes); }
  template <typename T>
  void operator()(std::optional<T>& value) {
    bool present = false;
    (*this)(present);
    if (!present) return;
    value.emplace();
    (*this)(*value);
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    while (reader_.ok() && reader_.left() > 0) {
      values.emplace_back();
      (*this)(values.back());
    }
  }
  absl::Status Finish() { return reader_.Finish(); }

 private:
  ByteReader reader_;
};

template <typename T>
bool IsAbsent(const std::vector<T>& values) {
  return values.empty();
}
template <typename T>
bool IsAbsent(const std::optional<T>& value) {
  return !value.has_value();
}
bool IsAbsent(const std::string& text) { return text.empty(); }
template <typename T>
bool IsAbsent(const T& /*value*/) {
  return false;
}

class FieldTableWriter {
 public:
  template <typename T>
  void operator()(uint16_t tag, T& value) {
    if (IsAbsent(value)) return;
    std::string bytes;
    ValueWriter writer(bytes);
    writer(value);
    ByteWriter fields(fields_);
    fields.Number(tag);
    fields.Text(bytes);
    ++count_;
  }
  std::string Finish() && {
    std::string out;
    ByteWriter(out).Number(count_);
    return out.append(fields_);
  }

 private:
  std::string fields_;
  uint32_t count_ = 0;
};

class FieldTableReader {
 public:
  static absl::StatusOr<FieldTableReader> Read(absl::string_view bytes) {
    FieldTableReader table;
    ByteReader reader(bytes, 0);
    const int64_t count = reader.Number<uint32_t>();
    reader.CheckRange("fields of the report", count, 0, kMaxFields);
    int last_tag = -1;
    for (int64_t i = 0; i < count && reader.ok(); ++i) {
      const uint16_t tag = reader.Number<uint16_t>();
      std::string field = reader.Text(kMaxFieldBytes);
      if (tag <= last_tag) reader.Fail("fields of the report are out of order");
      last_tag = tag;
      table.fields_[tag] = std::move(field);
    }
    PHIMAP_RETURN_IF_ERROR(reader.Finish());
    return table;
  }

  bool Has(uint16_t tag) const { return fields_.contains(tag); }

  template <typename T>
  void operator()(uint16_t tag, T& value) {
    const auto found = fields_.find(tag);
    if (found == fields_.end() || !status_.ok()) return;
    ValueReader reader(found->second);
    reader(value);
    const absl::Status status = reader.Finish();
    if (status.ok()) return;
    status_ = DamagedArtifact(0, absl::StrCat("field ", tag, " of the report of ",
                                              found->second.size(), " bytes: ", status.message()));
  }
  const absl::Status& status() const { return status_; }

 private:
  std::map<uint16_t, std::string> fields_;
  absl::Status status_;
};

// Checks what readers rely on: an index of classes is one.
absl::Status CheckIndices(const ClassFigures& figures) {
  const auto count = static_cast<int64_t>(figures.classes.size());
  for (const ClassFigures::Confusion& pair : figures.confusion) {
    if (pair.actual >= count || pair.predicted >= count) {
      return DamagedArtifact(0, absl::StrCat("confusion of the classes ", pair.actual, " and ",
                                             pair.predicted, " of a report of ", count));
    }
  }
  for (const ClassFigures::ReliabilityBin& bin : figures.reliability) {
    if (bin.bin >= kReliabilityBins) {
      return DamagedArtifact(0, absl::StrCat("bin ", bin.bin, " of ", kReliabilityBins));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeReport(const TrainingReport& report) {
  PHIMAP_CHECK(!(report.classes.has_value() && report.numbers.has_value()));
  // Members() and Fields() serve for reading too, and so take what they could change.
  TrainingReport source = report;
  FieldTableWriter writer;
  Fields(writer, source);
  if (source.classes.has_value()) Fields(writer, *source.classes);
  if (source.numbers.has_value()) Fields(writer, *source.numbers);
  return std::move(writer).Finish();
}

absl::StatusOr<TrainingReport> DecodeReport(absl::string_view bytes) {
  PHIMAP_ASSIGN_OR_RETURN(FieldTableReader reader, FieldTableReader::Read(bytes));
  TrainingReport report;
  Fields(reader, report);
  if (reader.Has(kClassRows)) Fields(reader, report.classes.emplace());
  if (reader.Has(kNumberRows)) Fields(reader, report.numbers.emplace());
  PHIMAP_RETURN_IF_ERROR(reader.status());
  if (report.classes.has_value() && report.numbers.has_value()) {
    return DamagedArtifact(0, "a report is of classes or of numbers, not of both");
  }
  if (report.classes.has_value()) PHIMAP_RETURN_IF_ERROR(CheckIndices(*report.classes));
  return report;
}

}  // namespace phimap
