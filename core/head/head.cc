#include "core/head/head.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/plan/byte_codec.h"
#include "core/plan/plan.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/utf8.h"

// docs/formats.md describes every byte of the sections.
namespace phimap {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMaxLearnerBytes = 1 << 16;
constexpr int64_t kDigestDigits = 64;

absl::Status Invalid(absl::string_view part, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kPlanInvalid, part, what);
}

absl::Status CheckHeadCount(absl::string_view part, absl::string_view what, int64_t count,
                            int64_t expected) {
  if (count == expected) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kPlanInvalid, part,
                   absl::StrCat("expected ", expected, " ", what, ", got ", count),
                   {{"expected", absl::StrCat(expected)}, {"actual", absl::StrCat(count)}});
}

absl::Status CheckHeadNumbers(absl::string_view part, const double* numbers, int64_t count) {
  const double* const bad =
      std::find_if_not(numbers, numbers + count, [](double n) { return std::isfinite(n); });
  if (bad == numbers + count) return absl::OkStatus();
  return Invalid(
      part, absl::StrCat("number ", bad - numbers, " is ", *bad, ", expected a finite number"));
}

bool IsCanonicalInteger(absl::string_view text) {
  int64_t number = 0;
  return absl::SimpleAtoi(text, &number) && absl::StrCat(number) == text;
}

absl::Status CheckClasses(const Head& head) {
  const std::vector<std::string>& names = head.classes;
  if (head.task == HeadTask::kNumbers) {
    if (head.integer_classes)
      return Invalid("integer_classes", "a head for numbers has no classes");
    return CheckHeadCount("classes", "names, for a head for numbers",
                          static_cast<int64_t>(names.size()), 0);
  }
  const auto count = static_cast<int64_t>(names.size());
  if (count < 2 || count > kMaxPlanDimension) {
    return Invalid("classes",
                   absl::StrCat("expected 2 to ", kMaxPlanDimension, " names, got ", count));
  }
  absl::flat_hash_map<absl::string_view, size_t> places;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string field = absl::StrCat("classes[", i, "]");
    const auto size = static_cast<int64_t>(names[i].size());
    if (size < 1 || size > kMaxClassNameBytes) {
      return Invalid(field, absl::StrCat("expected a name of 1 to ", kMaxClassNameBytes,
                                         " bytes, got ", size));
    }
    if (!IsUtf8(names[i])) return Invalid(field, "expected a text in UTF-8");
    if (head.integer_classes && !IsCanonicalInteger(names[i])) {
      return Invalid(field, absl::StrCat("expected an integer, got ", Quoted(names[i])));
    }
    const auto [first, fresh] = places.emplace(names[i], i);
    if (!fresh) {
      return Invalid(field, absl::StrCat(Quoted(names[i]), " is also the name of class ",
                                         first->second, "; expected names that differ"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLink(const Head& head) {
  const Link& link = head.link;
  if (!std::isfinite(link.slope) || !(link.slope > 0) || !std::isfinite(link.offset)) {
    return Invalid("link", absl::StrCat("expected a finite slope over 0 and a finite offset, got ",
                                        link.slope, " and ", link.offset));
  }
  if (link.kind == Link::Kind::kNone) return absl::OkStatus();
  const Link::Kind fits = head.classes.size() == 2 ? Link::Kind::kPlatt : Link::Kind::kTemperature;
  if (head.task == HeadTask::kNumbers || link.kind != fits) {
    return Invalid("link", absl::StrCat("kind ", static_cast<int>(link.kind), " is not for ",
                                        head.classes.size(), " classes"));
  }
  return absl::OkStatus();
}

absl::Status CheckCalibration(const Head& head) {
  const CalibrationScores& calibration = head.calibration;
  const std::vector<double>& scores = calibration.scores;
  PHIMAP_RETURN_IF_ERROR(
      CheckHeadNumbers("calibration", scores.data(), static_cast<int64_t>(scores.size())));
  if (!std::is_sorted(scores.begin(), scores.end()) || (!scores.empty() && scores.front() < 0)) {
    return Invalid("calibration", "expected scores of at least 0 in rising order");
  }
  const bool of_classes = head.task == HeadTask::kClasses;
  PHIMAP_RETURN_IF_ERROR(CheckHeadCount("calibration", "classes",
                                        static_cast<int64_t>(calibration.classes.size()),
                                        of_classes ? static_cast<int64_t>(scores.size()) : 0));
  const auto count = static_cast<int32_t>(head.classes.size());
  for (const int32_t c : calibration.classes) {
    if (c < 0 || c >= count) {
      return Invalid("calibration",
                     absl::StrCat("expected classes of 0 to ", count - 1, ", got ", c));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckVariance(const HeadVariance& variance, int64_t features) {
  if (variance.empty()) return absl::OkStatus();
  const bool finite = std::isfinite(variance.noise) && std::isfinite(variance.scale);
  if (!finite || !(variance.noise > 0) || !(variance.scale >= 0)) {
    return Invalid("variance", absl::StrCat("expected a finite noise over 0 and a finite scale of "
                                            "at least 0, got ",
                                            variance.noise, " and ", variance.scale));
  }
  const double* const elements = variance.inverse_factor.data();
  PHIMAP_RETURN_IF_ERROR(CheckHeadCount("variance", "numbers", variance.inverse_factor.size(),
                                        TriangularProjection<double>::ElementCount(features)));
  PHIMAP_RETURN_IF_ERROR(CheckHeadNumbers("variance", elements, variance.inverse_factor.size()));
  for (int64_t k = 0, diagonal = 0; k < features; diagonal += features - k++) {
    if (!(elements[diagonal] > 0)) {
      return Invalid("variance", absl::StrCat("number ", k, " of the diagonal is ",
                                              elements[diagonal], ", expected one over 0"));
    }
  }
  return absl::OkStatus();
}

absl::Status UnknownKind(absl::string_view what, int kind, int known) {
  return MakeError(
      absl::StatusCode::kUnimplemented, reason::kFormatUnknown, "",
      absl::StrCat("the head has ", what, " ", kind, ", but this build knows only those up to ",
                   known, "; a newer phimap wrote the artifact"));
}

template <typename T>
void WriteVector(const T* values, int64_t count, ByteWriter& writer) {
  writer.Number<int64_t>(count);
  writer.AlignTo(kAlignment);
  writer.Numbers(values, count);
}

// Reads the vector that WriteVector wrote. The bytes must be there before memory is allocated.
template <typename T>
std::vector<T> ReadVector(ByteReader& reader) {
  const int64_t count = reader.Number<int64_t>();
  reader.AlignTo(kAlignment);
  const char* const from = reader.Numbers<T>(count);
  if (from == nullptr || count == 0) return {};
  std::vector<T> values(static_cast<size_t>(count));
  std::memcpy(values.data(), from, sizeof(T) * values.size());
  return values;
}

Matrix<double> ReadWeights(ByteReader& reader) {
  const int64_t features = reader.Number<int64_t>();
  const int64_t scores = reader.Number<int64_t>();
  reader.CheckRange("features", features, 1, kMaxPlanDimension);
  reader.CheckRange("scores", scores, 1, kMaxPlanDimension);
  reader.AlignTo(kAlignment);
  if (!reader.ok()) return {};
  const char* const from = reader.Numbers<double>(features * scores);
  if (from == nullptr) return {};
  Matrix<double> weights = Matrix<double>::Uninit(features, scores);
  std::memcpy(weights.data(), from, sizeof(double) * static_cast<size_t>(weights.size()));
  return weights;
}

std::vector<std::string> ReadClasses(ByteReader& reader) {
  const uint32_t count = reader.Number<uint32_t>();
  // Each name takes at least the bytes of its length.
  reader.CheckRange("classes", count, 0, reader.left() / int64_t{sizeof(uint32_t)});
  std::vector<std::string> classes;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    classes.push_back(reader.Text(kMaxClassNameBytes));
  }
  return classes;
}

bool ReadFlag(absl::string_view what, ByteReader& reader) {
  const uint8_t flag = reader.Number<uint8_t>();
  reader.CheckRange(what, flag, 0, 1);
  return flag == 1;
}

absl::Status AsDamage(const absl::Status& status) {
  if (status.ok()) return status;
  return DamagedArtifact(0, absl::StrCat("head: ", status.message()));
}

}  // namespace

absl::Status Head::Validate(int64_t features) const {
  PHIMAP_RETURN_IF_ERROR(CheckHeadCount("weights", "features", weights.rows(), features));
  PHIMAP_RETURN_IF_ERROR(CheckClasses(*this));
  const auto count = static_cast<int64_t>(classes.size());
  PHIMAP_RETURN_IF_ERROR(
      CheckHeadCount("weights", "scores", weights.cols(), count > 2 ? count : 1));
  PHIMAP_RETURN_IF_ERROR(CheckHeadCount("intercepts", "numbers",
                                        static_cast<int64_t>(intercepts.size()), weights.cols()));
  PHIMAP_RETURN_IF_ERROR(CheckHeadNumbers("weights", weights.data(), weights.size()));
  PHIMAP_RETURN_IF_ERROR(CheckHeadNumbers("intercepts", intercepts.data(), weights.cols()));
  const bool hex = std::all_of(features_digest.begin(), features_digest.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (!hex || static_cast<int64_t>(features_digest.size()) != kDigestDigits) {
    return Invalid("features_digest",
                   absl::StrCat("expected ", kDigestDigits, " hexadecimal digits, got ",
                                Quoted(features_digest)));
  }
  const auto learner_bytes = static_cast<int64_t>(learner_text.size());
  if (learner_bytes > kMaxLearnerBytes || !IsUtf8(learner_text)) {
    return Invalid("learner_text", absl::StrCat("expected a text in UTF-8 of at most ",
                                                kMaxLearnerBytes, " bytes"));
  }
  PHIMAP_RETURN_IF_ERROR(CheckLink(*this));
  PHIMAP_RETURN_IF_ERROR(CheckCalibration(*this));
  if (task == HeadTask::kClasses && !variance.empty()) {
    return Invalid("variance", "a head for classes has no variance");
  }
  return CheckVariance(variance, features);
}

int32_t ClassOf(absl::Span<const double> scores) {
  PHIMAP_CHECK(!scores.empty());
  if (scores.size() == 1) return scores[0] > 0 ? 1 : 0;
  return static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

std::string EncodeHead(const Head& head) {
  std::string out;
  ByteWriter writer(out);
  writer.Number<uint8_t>(static_cast<uint8_t>(head.task));
  writer.Number<uint8_t>(static_cast<uint8_t>(head.link.kind));
  writer.Number<uint8_t>(head.integer_classes ? 1 : 0);
  writer.Number<uint8_t>(head.folded ? 1 : 0);
  writer.Number<double>(head.link.slope);
  writer.Number<double>(head.link.offset);
  writer.Text(head.learner_text);
  writer.Text(head.features_digest);
  writer.Number<uint32_t>(static_cast<uint32_t>(head.classes.size()));
  for (const std::string& name : head.classes) writer.Text(name);
  writer.Text(head.report);
  writer.Number<int64_t>(head.weights.rows());
  writer.Number<int64_t>(head.weights.cols());
  writer.AlignTo(kAlignment);
  writer.Numbers(head.weights.data(), head.weights.size());
  WriteVector(head.intercepts.data(), static_cast<int64_t>(head.intercepts.size()), writer);
  const CalibrationScores& calibration = head.calibration;
  WriteVector(calibration.scores.data(), static_cast<int64_t>(calibration.scores.size()), writer);
  WriteVector(calibration.classes.data(), static_cast<int64_t>(calibration.classes.size()), writer);
  return out;
}

absl::StatusOr<Head> DecodeHead(absl::string_view bytes) {
  ByteReader reader(bytes, 0);
  Head head;
  const uint8_t task = reader.Number<uint8_t>();
  const uint8_t link = reader.Number<uint8_t>();
  PHIMAP_RETURN_IF_ERROR(reader.status());
  if (task > 2) return UnknownKind("task", task, 2);
  if (link > 2) return UnknownKind("link", link, 2);
  reader.CheckRange("task", task, 1, 2);
  head.task = static_cast<HeadTask>(task);
  head.link.kind = static_cast<Link::Kind>(link);
  head.integer_classes = ReadFlag("integer classes", reader);
  head.folded = ReadFlag("folded", reader);
  head.link.slope = reader.Number<double>();
  head.link.offset = reader.Number<double>();
  head.learner_text = reader.Text(kMaxLearnerBytes);
  head.features_digest = reader.Text(kDigestDigits);
  head.classes = ReadClasses(reader);
  head.report = reader.Text(reader.left());
  head.weights = ReadWeights(reader);
  head.intercepts = ReadVector<double>(reader);
  head.calibration.scores = ReadVector<double>(reader);
  head.calibration.classes = ReadVector<int32_t>(reader);
  PHIMAP_RETURN_IF_ERROR(reader.Finish());
  PHIMAP_RETURN_IF_ERROR(AsDamage(head.Validate(head.weights.rows())));
  return head;
}

std::string EncodeVariance(const HeadVariance& variance) {
  std::string out;
  if (variance.empty()) return out;
  ByteWriter writer(out);
  writer.Number<double>(variance.noise);
  writer.Number<double>(variance.scale);
  WriteVector(variance.inverse_factor.data(), variance.inverse_factor.size(), writer);
  return out;
}

absl::StatusOr<HeadVariance> DecodeVariance(absl::string_view bytes) {
  HeadVariance variance;
  if (bytes.empty()) return variance;
  ByteReader reader(bytes, 0);
  variance.noise = reader.Number<double>();
  variance.scale = reader.Number<double>();
  const int64_t count = reader.Number<int64_t>();
  reader.AlignTo(kAlignment);
  const char* const from = reader.Numbers<double>(count);
  PHIMAP_RETURN_IF_ERROR(reader.Finish());
  // The order of a triangle of `count` numbers; CheckVariance refuses a count of no triangle.
  const auto order =
      static_cast<int64_t>(std::sqrt(2 * static_cast<double>(count) + 0.25) - 0.5 + 1e-6);
  if (order < 1 || order > kMaxPlanDimension) {
    return DamagedArtifact(
        0, absl::StrCat("head variance: expected the numbers of a triangle, got ", count));
  }
  variance.inverse_factor = AlignedArray<double>(count);
  std::memcpy(variance.inverse_factor.data(), from, sizeof(double) * static_cast<size_t>(count));
  PHIMAP_RETURN_IF_ERROR(AsDamage(CheckVariance(variance, order)));
  return variance;
}

int64_t Head::longest_class_name() const {
  size_t longest = 0;
  for (const std::string& name : classes) longest = std::max(longest, name.size());
  return static_cast<int64_t>(longest);
}

HeadFacts FactsOf(const Head& head, bool has_variance) {
  const ConformalPredictor conformal(head.calibration, static_cast<int32_t>(head.classes.size()));
  return {.task = head.task,
          .learner_text = head.learner_text,
          .features_digest = head.features_digest,
          .classes = head.classes,
          .folded = head.folded,
          .has_probabilities = head.link.kind != Link::Kind::kNone,
          .has_variance = has_variance,
          .calibration_rows = conformal.rows(),
          .class_conditional = head.task == HeadTask::kClasses && conformal.class_conditional(),
          .report = head.report};
}

}  // namespace phimap
