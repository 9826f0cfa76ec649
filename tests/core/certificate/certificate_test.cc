#include "core/certificate/certificate.h"

#include <cstring>
#include <string>

#include "core/random/random_stream.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

Certificate Full() {
  return {.stream_rows = 1'000'000,
          .pool_rows = 20'000,
          .held_out_rows = 2'000,
          .landmarks = 500,
          .rank = 321,
          .tolerance = 1e-5,
          .largest_residual = 0.25,
          .trace_residual = 0.125,
          .held_out_trace_residual = 0.5,
          .kernel_error = MeasuredError{1e-3, 1e-2, 1, 1999000},
          .serving_error = MeasuredError{1e-7, 1e-6, 2, 2000},
          .policy = "uniform",
          .theorem = "d ≥ (8/ε)(1/γ² + ln 1/δ)",
          .warnings = {"first", "", "third"},
          .pivots = {1, 0.5, 0x1p-20},
          .self_check = SelfCheck{1, std::string(8, 'x'), std::string(12, 'y')},
          .pool_trace_residual = 0.375,
          .spectrum = Spectrum{.rows = 512,
                               .trace = 1.5,
                               .residual = 0.0625,
                               .eigenvalues = {0.75, 0.5, 0.25},
                               .effective_dimensions = {{0.15, 2.5, 2.25}, {0.015, 2.9, 2.8}}},
          .kernel_error_half_width = 2e-4,
          .mean_squared_norm = 0.875,
          .kernel_error_interval = MeanInterval{9e-4, 12e-4},
          .kernel_error_bound = PairBound{1000, 5e-3, 0.003},
          .residual_share = ResidualShare{0.25, 0.75, 1990, 10},
          .zero_landmarks = 7,
          .serving_share = 3e-6,
          .fidelity = Fidelity{.rows = 500,
                               .smoothers = {{1, 0.0625}, {1e-2, 0.125}},
                               .gram_error = 0.01,
                               .centred_gram_error = 0.02,
                               .self_error_median = 0.03,
                               .self_error_quantile_95 = 0.04,
                               .distance_error_quantile_95 = 0.05},
          .left_out_distance = 0.75,
          .effective_rows = EffectiveRows{1900.5, 70.25},
          .residual_mass_interval = MeanInterval{0.4, 0.6},
          .serving_distance = 0.001,
          .theorem_scope = "the stream's own empirical distribution"};
}

void ExpectEqual(const std::optional<MeasuredError>& a, const std::optional<MeasuredError>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (!a.has_value()) return;
  EXPECT_EQ(a->mean, b->mean);
  EXPECT_EQ(a->max, b->max);
  EXPECT_EQ(a->scale, b->scale);
  EXPECT_EQ(a->count, b->count);
}

void ExpectEqual(const std::optional<Spectrum>& a, const std::optional<Spectrum>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (!a.has_value()) return;
  EXPECT_EQ(a->rows, b->rows);
  EXPECT_EQ(a->held_out, b->held_out);
  EXPECT_EQ(a->trace, b->trace);
  EXPECT_EQ(a->residual, b->residual);
  EXPECT_EQ(a->eigenvalues, b->eigenvalues);
  ASSERT_EQ(a->effective_dimensions.size(), b->effective_dimensions.size());
  for (size_t i = 0; i < a->effective_dimensions.size(); ++i) {
    EXPECT_EQ(a->effective_dimensions[i].lambda, b->effective_dimensions[i].lambda);
    EXPECT_EQ(a->effective_dimensions[i].kernel, b->effective_dimensions[i].kernel);
    EXPECT_EQ(a->effective_dimensions[i].mapping, b->effective_dimensions[i].mapping);
  }
}

void ExpectEqual(const std::optional<Fidelity>& a, const std::optional<Fidelity>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (!a.has_value()) return;
  EXPECT_EQ(a->rows, b->rows);
  EXPECT_EQ(a->gram_error, b->gram_error);
  EXPECT_EQ(a->centred_gram_error, b->centred_gram_error);
  EXPECT_EQ(a->self_error_median, b->self_error_median);
  EXPECT_EQ(a->self_error_quantile_95, b->self_error_quantile_95);
  EXPECT_EQ(a->distance_error_quantile_95, b->distance_error_quantile_95);
  ASSERT_EQ(a->smoothers.size(), b->smoothers.size());
  for (size_t i = 0; i < a->smoothers.size(); ++i) {
    EXPECT_EQ(a->smoothers[i].lambda, b->smoothers[i].lambda);
    EXPECT_EQ(a->smoothers[i].distance, b->smoothers[i].distance);
  }
}

void ExpectEqual(const Certificate& a, const Certificate& b) {
  EXPECT_EQ(a.stream_rows, b.stream_rows);
  EXPECT_EQ(a.pool_rows, b.pool_rows);
  EXPECT_EQ(a.held_out_rows, b.held_out_rows);
  EXPECT_EQ(a.landmarks, b.landmarks);
  EXPECT_EQ(a.rank, b.rank);
  EXPECT_EQ(a.tolerance, b.tolerance);
  EXPECT_EQ(a.largest_residual, b.largest_residual);
  EXPECT_EQ(a.trace_residual, b.trace_residual);
  EXPECT_EQ(a.held_out_trace_residual, b.held_out_trace_residual);
  ExpectEqual(a.kernel_error, b.kernel_error);
  ExpectEqual(a.serving_error, b.serving_error);
  EXPECT_EQ(a.policy, b.policy);
  EXPECT_EQ(a.theorem, b.theorem);
  EXPECT_EQ(a.warnings, b.warnings);
  EXPECT_EQ(a.pivots, b.pivots);
  EXPECT_EQ(a.pool_trace_residual, b.pool_trace_residual);
  EXPECT_EQ(a.kernel_error_half_width, b.kernel_error_half_width);
  EXPECT_EQ(a.mean_squared_norm, b.mean_squared_norm);
  EXPECT_EQ(a.zero_landmarks, b.zero_landmarks);
  EXPECT_EQ(a.theorem_scope, b.theorem_scope);
  EXPECT_EQ(a.serving_share, b.serving_share);
  ASSERT_EQ(a.residual_share.has_value(), b.residual_share.has_value());
  if (a.residual_share.has_value()) {
    EXPECT_EQ(a.residual_share->median, b.residual_share->median);
    EXPECT_EQ(a.residual_share->quantile_95, b.residual_share->quantile_95);
    EXPECT_EQ(a.residual_share->rows, b.residual_share->rows);
    EXPECT_EQ(a.residual_share->zero_rows, b.residual_share->zero_rows);
  }
  ASSERT_EQ(a.kernel_error_interval.has_value(), b.kernel_error_interval.has_value());
  if (a.kernel_error_interval.has_value()) {
    EXPECT_EQ(a.kernel_error_interval->low, b.kernel_error_interval->low);
    EXPECT_EQ(a.kernel_error_interval->high, b.kernel_error_interval->high);
  }
  ASSERT_EQ(a.kernel_error_bound.has_value(), b.kernel_error_bound.has_value());
  if (a.kernel_error_bound.has_value()) {
    EXPECT_EQ(a.kernel_error_bound->pairs, b.kernel_error_bound->pairs);
    EXPECT_EQ(a.kernel_error_bound->largest, b.kernel_error_bound->largest);
    EXPECT_EQ(a.kernel_error_bound->share, b.kernel_error_bound->share);
  }
  ExpectEqual(a.spectrum, b.spectrum);
  ExpectEqual(a.fidelity, b.fidelity);
  ASSERT_EQ(a.effective_rows.has_value(), b.effective_rows.has_value());
  if (a.effective_rows.has_value()) {
    EXPECT_EQ(a.effective_rows->kernel, b.effective_rows->kernel);
    EXPECT_EQ(a.effective_rows->error, b.effective_rows->error);
  }
  ASSERT_EQ(a.residual_mass_interval.has_value(), b.residual_mass_interval.has_value());
  if (a.residual_mass_interval.has_value()) {
    EXPECT_EQ(a.residual_mass_interval->low, b.residual_mass_interval->low);
    EXPECT_EQ(a.residual_mass_interval->high, b.residual_mass_interval->high);
  }
  EXPECT_EQ(a.serving_distance, b.serving_distance);
  EXPECT_EQ(a.left_out_distance, b.left_out_distance);
  ASSERT_EQ(a.self_check.has_value(), b.self_check.has_value());
  if (!a.self_check.has_value()) return;
  EXPECT_EQ(a.self_check->rows, b.self_check->rows);
  EXPECT_EQ(a.self_check->rows_float32_le, b.self_check->rows_float32_le);
  EXPECT_EQ(a.self_check->features_le, b.self_check->features_le);
}

template <typename T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}
std::string Field(uint16_t tag, const std::string& bytes) {
  return Bytes(tag) + Bytes(static_cast<uint32_t>(bytes.size())) + bytes;
}

TEST(CertificateTest, EveryMemberSurvives) {
  for (const bool held_out : {false, true}) {
    Certificate certificate = Full();
    certificate.spectrum->held_out = held_out;
    const std::string bytes = EncodeCertificate(certificate);
    const absl::StatusOr<Certificate> decoded = DecodeCertificate(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ExpectEqual(*decoded, certificate);
    EXPECT_EQ(EncodeCertificate(*decoded), bytes);
  }
}

TEST(CertificateTest, AbsentMembersStayAbsent) {
  const Certificate none{.stream_rows = 5, .landmarks = 5};
  const absl::StatusOr<Certificate> decoded = DecodeCertificate(EncodeCertificate(none));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ExpectEqual(*decoded, none);
  EXPECT_FALSE(decoded->rank.has_value());
  EXPECT_FALSE(decoded->kernel_error.has_value());
}

TEST(CertificateTest, TheLargestMappingFits) {
  Certificate certificate = Full();
  certificate.pivots.assign(8192, 0.5);
  ExpectEqual(*DecodeCertificate(EncodeCertificate(certificate)), certificate);
}

TEST(CertificateTest, UnknownTagsAreSkipped) {
  const std::string bytes = Bytes(uint32_t{4}) + Field(1, Bytes(int64_t{7})) +
                            Field(12, "uniform") + Field(500, "from the future") + Field(65535, "");
  const absl::StatusOr<Certificate> decoded = DecodeCertificate(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->stream_rows, 7);
  EXPECT_EQ(decoded->policy, "uniform");
}

TEST(CertificateTest, DamageIsDataLoss) {
  struct Case {
    const char* what;
    std::string bytes;
  };
  const Case kCases[] = {
      {"empty", ""},
      {"count cut off", std::string(3, '\0')},
      {"count beyond the fields", Bytes(uint32_t{1})},
      {"count huge", Bytes(uint32_t{0xffffffff})},
      {"bytes after the last field", Bytes(uint32_t{0}) + "x"},
      {"field longer than the bytes",
       Bytes(uint32_t{1}) + Bytes(uint16_t{1}) + Bytes(uint32_t{0xffffffff}) + "x"},
      {"integer of 7 bytes", Bytes(uint32_t{1}) + Field(1, "1234567")},
      {"integer of 9 bytes", Bytes(uint32_t{1}) + Field(1, "123456789")},
      {"error of 31 bytes", Bytes(uint32_t{1}) + Field(10, std::string(31, 'x'))},
      {"pivots of 12 bytes", Bytes(uint32_t{1}) + Field(15, std::string(12, 'x'))},
      {"spectrum with 65 eigenvalues",
       Bytes(uint32_t{1}) + Field(18, std::string(24, '\0') + Bytes(uint32_t{65}) +
                                          std::string(65 * 8, '\0') + Bytes(uint32_t{0}))},
      {"spectrum with fewer eigenvalues than its count says",
       Bytes(uint32_t{1}) + Field(18, std::string(24, '\0') + Bytes(uint32_t{3}) +
                                          std::string(2 * 8, '\0') + Bytes(uint32_t{0}))},
      {"tags fall", Bytes(uint32_t{2}) + Field(2, Bytes(int64_t{1})) + Field(1, Bytes(int64_t{1}))},
      {"tag twice", Bytes(uint32_t{2}) + Field(1, Bytes(int64_t{1})) + Field(1, Bytes(int64_t{1}))},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(DecodeCertificate(c.bytes).status().code(), absl::StatusCode::kDataLoss) << c.what;
  }
}

TEST(CertificateTest, EveryTruncationIsDataLoss) {
  const std::string bytes = EncodeCertificate(Full());
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_EQ(DecodeCertificate(bytes.substr(0, length)).status().code(),
              absl::StatusCode::kDataLoss)
        << length;
  }
}

// The certificate has no checksum of its own (its section of the artifact has one), so a mutation
// may decode, but only to a certificate that can be encoded again.
TEST(CertificateTest, MutatedBytesDecodeOrAreDataLoss) {
  const std::string seed = EncodeCertificate(Full());
  RandomCursor random(RandomStream(7, StreamId::kStartVectors));
  for (int iteration = 0; iteration < 50000; ++iteration) {
    std::string bytes = seed;
    for (uint64_t e = 0; e <= random.UniformBelow(3); ++e) {
      const size_t at = random.UniformBelow(bytes.size());
      switch (random.UniformBelow(3)) {
        case 0:
          bytes[at] = static_cast<char>(random.UniformBelow(256));
          break;
        case 1:
          bytes.insert(at, 1 + random.UniformBelow(8), '\0');
          break;
        default:
          bytes.erase(at, 1 + random.UniformBelow(8));
          break;
      }
    }
    const absl::StatusOr<Certificate> decoded = DecodeCertificate(bytes);
    if (decoded.ok()) {
      ASSERT_TRUE(DecodeCertificate(EncodeCertificate(*decoded)).ok()) << iteration;
    } else {
      ASSERT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << decoded.status();
    }
  }
}

}  // namespace
}  // namespace phimap
