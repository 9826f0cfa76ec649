#include "core/certificate/certificate.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/plan/byte_codec.h"
#include "core/status/status_macros.h"

// Format (docs/formats.md): a count, then that many fields of tag (u16), length (u32) and bytes, in
// ascending order of tags.
namespace phimap {
namespace {

// Field tags of the format. Never reuse a number.
enum Tag : uint16_t {
  kStreamRows = 1,
  kPoolRows = 2,
  kHeldOutRows = 3,
  kLandmarks = 4,
  kRank = 5,
  kTolerance = 6,
  kLargestResidual = 7,
  kTraceResidual = 8,
  kHeldOutTraceResidual = 9,
  kKernelError = 10,
  kServingError = 11,
  kPolicy = 12,
  kTheorem = 13,
  kWarnings = 14,
  kPivots = 15,
  kSelfCheck = 16,
  kPoolTraceResidual = 17,
  kSpectrum = 18,
  kKernelErrorHalfWidth = 19,
  kMeanSquaredNorm = 20,
  kLandmarkRows = 21,
  kKernelErrorInterval = 22,
  kKernelErrorBound = 23,
  kResidualShare = 24,
  kZeroLandmarks = 25,
  kTheoremScope = 26,
  kServingShare = 27,
  kFidelity = 28,
  kEffectiveRows = 29,
  kResidualMassInterval = 30,
  kServingDistance = 31,
  kAim = 32,
  kKernelRank = 33,
  kHeldOutSpectrum = 40,
  kLeftOutDistance = 41,
};

constexpr int64_t kMaxFields = 1024;
constexpr int64_t kMaxFieldBytes = 1 << 20;
constexpr int64_t kMaxSelfCheckRows = 1 << 16;

class FieldWriter {
 public:
  template <typename... T>
  void Numbers(Tag tag, T... values) {
    std::string bytes;
    ByteWriter writer(bytes);
    (writer.Number(values), ...);
    Field(tag, bytes);
  }
  template <typename T>
  void Number(Tag tag, T value) {
    Numbers(tag, value);
  }
  template <typename T>
  void Number(Tag tag, const std::optional<T>& value) {
    if (value.has_value()) Number(tag, *value);
  }
  // Writes the field if there is a value.
  template <typename T>
  void Encoded(Tag tag, const std::optional<T>& value, std::string (*encode)(const T&)) {
    if (value.has_value()) Field(tag, encode(*value));
  }
  void Error(Tag tag, const std::optional<MeasuredError>& error) {
    if (!error.has_value()) return;
    Numbers(tag, error->mean, error->max, error->scale, error->count);
  }
  template <typename T>
  void List(Tag tag, const std::vector<T>& values) {
    std::string bytes;
    ByteWriter(bytes).Numbers(values.data(), values.size());
    Field(tag, bytes);
  }
  void Field(Tag tag, absl::string_view bytes) {
    ByteWriter writer(fields_);
    writer.Number<uint16_t>(tag);
    writer.Text(bytes);
    ++count_;
  }
  std::string Finish() && {
    std::string out;
    ByteWriter(out).Number<uint32_t>(count_);
    absl::StrAppend(&out, fields_);
    return out;
  }

 private:
  std::string fields_;
  uint32_t count_ = 0;
};

template <typename T>
void Read(ByteReader& field, std::optional<T>& out) {
  out = field.Number<T>();
}

void Read(ByteReader& field, std::optional<MeasuredError>& out) {
  MeasuredError error;
  error.mean = field.Number<double>();
  error.max = field.Number<double>();
  error.scale = field.Number<double>();
  error.count = field.Number<int64_t>();
  out = error;
}

void Read(ByteReader& field, std::optional<MeanInterval>& out) {
  MeanInterval interval;
  interval.low = field.Number<double>();
  interval.high = field.Number<double>();
  out = interval;
}

void Read(ByteReader& field, std::optional<PairBound>& out) {
  PairBound bound;
  bound.pairs = field.Number<int64_t>();
  bound.largest = field.Number<double>();
  bound.share = field.Number<double>();
  out = bound;
}

// Reads the rest of the field as a list of numbers into `out`.
template <typename T>
void ReadList(ByteReader& field, std::vector<T>& out) {
  const int64_t count = field.left() / static_cast<int64_t>(sizeof(T));
  const char* bytes = field.Numbers<T>(count);
  out.resize(count);
  if (count > 0) std::memcpy(out.data(), bytes, sizeof(T) * static_cast<size_t>(count));
}

void Read(ByteReader& field, std::optional<SelfCheck>& out) {
  SelfCheck check;
  check.rows = field.Number<int64_t>();
  field.CheckRange("rows of the self-check", check.rows, 1, kMaxSelfCheckRows);
  check.rows_float32_le = field.Text(kMaxFieldBytes);
  check.features_le = field.Text(kMaxFieldBytes);
  out = std::move(check);
}

void Read(ByteReader& field, std::optional<Spectrum>& out) {
  Spectrum spectrum;
  spectrum.rows = field.Number<int64_t>();
  spectrum.trace = field.Number<double>();
  spectrum.residual = field.Number<double>();
  const int64_t eigenvalues = field.Number<uint32_t>();
  field.CheckRange("eigenvalues of the spectrum", eigenvalues, 0, kMaxEigenvalues);
  for (int64_t i = 0; i < eigenvalues && field.ok(); ++i) {
    spectrum.eigenvalues.push_back(field.Number<double>());
  }
  const int64_t dimensions = field.Number<uint32_t>();
  field.CheckRange("effective dimensions of the spectrum", dimensions, 0, kMaxEigenvalues);
  for (int64_t i = 0; i < dimensions && field.ok(); ++i) {
    EffectiveDimension dimension;
    dimension.lambda = field.Number<double>();
    dimension.kernel = field.Number<double>();
    dimension.mapping = field.Number<double>();
    spectrum.effective_dimensions.push_back(dimension);
  }
  out = std::move(spectrum);
}

void ReadHeldOutSpectrum(ByteReader& field, Certificate& out) {
  Read(field, out.spectrum);
  out.spectrum->held_out = true;
}

void Read(ByteReader& field, std::optional<ResidualShare>& out) {
  ResidualShare share;
  share.median = field.Number<double>();
  share.quantile_95 = field.Number<double>();
  share.rows = field.Number<int64_t>();
  share.zero_rows = field.Number<int64_t>();
  out = share;
}

void Read(ByteReader& field, std::optional<EffectiveRows>& out) {
  EffectiveRows rows;
  rows.kernel = field.Number<double>();
  rows.error = field.Number<double>();
  out = rows;
}

void Read(ByteReader& field, Aim& out) {
  const uint8_t aim = field.Number<uint8_t>();
  // An aim that only a newer release knows is none that this one can judge by.
  out = aim <= static_cast<uint8_t>(Aim::kClasses) ? static_cast<Aim>(aim) : Aim::kUnknown;
}

constexpr int64_t kMaxSmoothers = 16;

void Read(ByteReader& field, std::optional<Fidelity>& out) {
  Fidelity fidelity;
  fidelity.rows = field.Number<int64_t>();
  fidelity.gram_error = field.Number<double>();
  fidelity.centred_gram_error = field.Number<double>();
  fidelity.self_error_median = field.Number<double>();
  fidelity.self_error_quantile_95 = field.Number<double>();
  fidelity.distance_error_quantile_95 = field.Number<double>();
  const int64_t smoothers = field.Number<uint32_t>();
  field.CheckRange("smoothers of the fidelity", smoothers, 0, kMaxSmoothers);
  for (int64_t i = 0; i < smoothers && field.ok(); ++i) {
    SmootherDistance smoother;
    smoother.lambda = field.Number<double>();
    smoother.distance = field.Number<double>();
    fidelity.smoothers.push_back(smoother);
  }
  out = std::move(fidelity);
}

std::string FidelityBytes(const Fidelity& fidelity) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.Number(fidelity.rows);
  writer.Number(fidelity.gram_error);
  writer.Number(fidelity.centred_gram_error);
  writer.Number(fidelity.self_error_median);
  writer.Number(fidelity.self_error_quantile_95);
  writer.Number(fidelity.distance_error_quantile_95);
  writer.Number(static_cast<uint32_t>(fidelity.smoothers.size()));
  for (const SmootherDistance& smoother : fidelity.smoothers) {
    writer.Number(smoother.lambda);
    writer.Number(smoother.distance);
  }
  return bytes;
}

std::string SelfCheckBytes(const SelfCheck& check) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.Number(check.rows);
  writer.Text(check.rows_float32_le);
  writer.Text(check.features_le);
  return bytes;
}

std::string ResidualShareBytes(const ResidualShare& share) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.Number(share.median);
  writer.Number(share.quantile_95);
  writer.Number(share.rows);
  writer.Number(share.zero_rows);
  return bytes;
}

std::string SpectrumBytes(const Spectrum& spectrum) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.Number(spectrum.rows);
  writer.Number(spectrum.trace);
  writer.Number(spectrum.residual);
  writer.Number(static_cast<uint32_t>(spectrum.eigenvalues.size()));
  for (const double value : spectrum.eigenvalues) writer.Number(value);
  writer.Number(static_cast<uint32_t>(spectrum.effective_dimensions.size()));
  for (const EffectiveDimension& dimension : spectrum.effective_dimensions) {
    writer.Number(dimension.lambda);
    writer.Number(dimension.kernel);
    writer.Number(dimension.mapping);
  }
  return bytes;
}

void Read(ByteReader& field, int64_t& out) { out = field.Number<int64_t>(); }

template <typename T>
void Read(ByteReader& field, std::vector<T>& out) {
  ReadList(field, out);
}

template <auto kMember>
void ReadMember(ByteReader& field, Certificate& out) {
  Read(field, out.*kMember);
}

// A field in binary form, and the function that reads it.
struct NumberField {
  uint16_t tag;
  void (*read)(ByteReader& field, Certificate& out);
};
constexpr NumberField kNumberFields[] = {
    {kStreamRows, ReadMember<&Certificate::stream_rows>},
    {kPoolRows, ReadMember<&Certificate::pool_rows>},
    {kHeldOutRows, ReadMember<&Certificate::held_out_rows>},
    {kLandmarks, ReadMember<&Certificate::landmarks>},
    {kRank, ReadMember<&Certificate::rank>},
    {kTolerance, ReadMember<&Certificate::tolerance>},
    {kLargestResidual, ReadMember<&Certificate::largest_residual>},
    {kTraceResidual, ReadMember<&Certificate::trace_residual>},
    {kHeldOutTraceResidual, ReadMember<&Certificate::held_out_trace_residual>},
    {kKernelError, ReadMember<&Certificate::kernel_error>},
    {kServingError, ReadMember<&Certificate::serving_error>},
    {kPivots, ReadMember<&Certificate::pivots>},
    {kLandmarkRows, ReadMember<&Certificate::landmark_rows>},
    {kSelfCheck, ReadMember<&Certificate::self_check>},
    {kPoolTraceResidual, ReadMember<&Certificate::pool_trace_residual>},
    {kSpectrum, ReadMember<&Certificate::spectrum>},
    {kHeldOutSpectrum, ReadHeldOutSpectrum},
    {kKernelErrorHalfWidth, ReadMember<&Certificate::kernel_error_half_width>},
    {kKernelErrorInterval, ReadMember<&Certificate::kernel_error_interval>},
    {kKernelErrorBound, ReadMember<&Certificate::kernel_error_bound>},
    {kMeanSquaredNorm, ReadMember<&Certificate::mean_squared_norm>},
    {kResidualShare, ReadMember<&Certificate::residual_share>},
    {kZeroLandmarks, ReadMember<&Certificate::zero_landmarks>},
    {kServingShare, ReadMember<&Certificate::serving_share>},
    {kFidelity, ReadMember<&Certificate::fidelity>},
    {kEffectiveRows, ReadMember<&Certificate::effective_rows>},
    {kResidualMassInterval, ReadMember<&Certificate::residual_mass_interval>},
    {kServingDistance, ReadMember<&Certificate::serving_distance>},
    {kAim, ReadMember<&Certificate::aim>},
    {kKernelRank, ReadMember<&Certificate::kernel_rank>},
    {kLeftOutDistance, ReadMember<&Certificate::left_out_distance>},
};

// A field of text, and the member that holds it.
struct TextField {
  uint16_t tag;
  std::string Certificate::*text;
};
constexpr TextField kTextFields[] = {
    {kTheoremScope, &Certificate::theorem_scope},
    {kPolicy, &Certificate::policy},
    {kTheorem, &Certificate::theorem},
};

// Stores one field in `out`. Returns true if the field is binary; the caller must then check that
// the whole field was read. Returns false for text, and for an unknown tag, which is ignored.
bool ReadField(uint16_t tag, const std::string& bytes, ByteReader& field, Certificate& out) {
  for (const NumberField& known : kNumberFields) {
    if (known.tag != tag) continue;
    known.read(field, out);
    return true;
  }
  for (const TextField& known : kTextFields) {
    if (known.tag == tag) out.*known.text = bytes;
  }
  if (tag == kWarnings) out.warnings.push_back(bytes);
  return false;
}

bool IsHeldOut(const std::optional<Spectrum>& spectrum) {
  return spectrum.has_value() && spectrum->held_out;
}

// Writes the fields of what a learner loses, and those after them.
void WriteLearning(const Certificate& certificate, FieldWriter& writer) {
  writer.Encoded(kFidelity, certificate.fidelity, FidelityBytes);
  if (const auto& rows = certificate.effective_rows) {
    writer.Numbers(kEffectiveRows, rows->kernel, rows->error);
  }
  if (const auto& interval = certificate.residual_mass_interval) {
    writer.Numbers(kResidualMassInterval, interval->low, interval->high);
  }
  writer.Number(kServingDistance, certificate.serving_distance);
  if (certificate.aim != Aim::kUnknown) {
    writer.Number(kAim, static_cast<uint8_t>(certificate.aim));
  }
  writer.Number(kKernelRank, certificate.kernel_rank);
  if (IsHeldOut(certificate.spectrum)) {
    writer.Encoded(kHeldOutSpectrum, certificate.spectrum, SpectrumBytes);
  }
  writer.Number(kLeftOutDistance, certificate.left_out_distance);
}

}  // namespace

std::string EncodeCertificate(const Certificate& certificate) {
  FieldWriter writer;
  writer.Number(kStreamRows, certificate.stream_rows);
  writer.Number(kPoolRows, certificate.pool_rows);
  writer.Number(kHeldOutRows, certificate.held_out_rows);
  writer.Number(kLandmarks, certificate.landmarks);
  writer.Number(kRank, certificate.rank);
  writer.Number(kTolerance, certificate.tolerance);
  writer.Number(kLargestResidual, certificate.largest_residual);
  writer.Number(kTraceResidual, certificate.trace_residual);
  writer.Number(kHeldOutTraceResidual, certificate.held_out_trace_residual);
  writer.Error(kKernelError, certificate.kernel_error);
  writer.Error(kServingError, certificate.serving_error);
  writer.Field(kPolicy, certificate.policy);
  writer.Field(kTheorem, certificate.theorem);
  for (const std::string& warning : certificate.warnings) writer.Field(kWarnings, warning);
  writer.List(kPivots, certificate.pivots);
  writer.Encoded(kSelfCheck, certificate.self_check, SelfCheckBytes);
  writer.Number(kPoolTraceResidual, certificate.pool_trace_residual);
  if (!IsHeldOut(certificate.spectrum))
    writer.Encoded(kSpectrum, certificate.spectrum, SpectrumBytes);
  writer.Number(kKernelErrorHalfWidth, certificate.kernel_error_half_width);
  writer.Number(kMeanSquaredNorm, certificate.mean_squared_norm);
  if (!certificate.landmark_rows.empty()) writer.List(kLandmarkRows, certificate.landmark_rows);
  if (const auto& interval = certificate.kernel_error_interval) {
    writer.Numbers(kKernelErrorInterval, interval->low, interval->high);
  }
  if (const auto& bound = certificate.kernel_error_bound) {
    writer.Numbers(kKernelErrorBound, bound->pairs, bound->largest, bound->share);
  }
  writer.Encoded(kResidualShare, certificate.residual_share, ResidualShareBytes);
  writer.Number(kZeroLandmarks, certificate.zero_landmarks);
  if (!certificate.theorem_scope.empty()) writer.Field(kTheoremScope, certificate.theorem_scope);
  writer.Number(kServingShare, certificate.serving_share);
  WriteLearning(certificate, writer);
  return std::move(writer).Finish();
}

absl::StatusOr<Certificate> DecodeCertificate(absl::string_view bytes) {
  ByteReader reader(bytes, 0);
  Certificate certificate;
  const int64_t count = reader.Number<uint32_t>();
  reader.CheckRange("fields of the certificate", count, 0, kMaxFields);
  int last_tag = 0;
  for (int64_t i = 0; i < count && reader.ok(); ++i) {
    const uint16_t tag = reader.Number<uint16_t>();
    const std::string field_bytes = reader.Text(kMaxFieldBytes);
    if (tag < last_tag || (tag == last_tag && tag != kWarnings)) {
      reader.Fail("fields of the certificate are out of order");
    }
    last_tag = tag;
    if (!reader.ok()) break;
    ByteReader field(field_bytes, 0);
    if (ReadField(tag, field_bytes, field, certificate) && !field.Finish().ok()) {
      reader.Fail(absl::StrCat("field ", tag, " of the certificate has ", field_bytes.size(),
                               " bytes, which is not the length of its type"));
    }
  }
  PHIMAP_RETURN_IF_ERROR(reader.Finish());
  return certificate;
}

}  // namespace phimap
