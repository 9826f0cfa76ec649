#include "core/certificate/certificate.h"

#include <cstring>
#include <string>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
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
    const Certificate decoded = DecodeCertificate(bytes).value();
    EXPECT_TRUE(decoded == certificate);
    EXPECT_EQ(EncodeCertificate(decoded), bytes);
  }
}

TEST(CertificateTest, AbsentMembersStayAbsent) {
  const Certificate none{.stream_rows = 5, .landmarks = 5};
  const Certificate decoded = DecodeCertificate(EncodeCertificate(none)).value();
  EXPECT_TRUE(decoded == none);
  EXPECT_FALSE(decoded.rank.has_value());
  EXPECT_FALSE(decoded.kernel_error.has_value());
}

TEST(CertificateTest, TheLargestMappingFits) {
  Certificate certificate = Full();
  certificate.pivots.assign(8192, 0.5);
  EXPECT_TRUE(*DecodeCertificate(EncodeCertificate(certificate)) == certificate);
}

TEST(CertificateTest, UnknownTagsAreSkipped) {
  const std::string bytes = Bytes(uint32_t{4}) + Field(1, Bytes(int64_t{7})) +
                            Field(12, "uniform") + Field(500, "from the future") + Field(65535, "");
  const Certificate decoded = DecodeCertificate(bytes).value();
  EXPECT_EQ(decoded.stream_rows, 7);
  EXPECT_EQ(decoded.policy, "uniform");
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
    EXPECT_EQ(DecodeCertificate(c.bytes).status().code(), StatusCode::kDataLoss) << c.what;
  }
}

TEST(CertificateTest, EveryTruncationIsDataLoss) {
  const std::string bytes = EncodeCertificate(Full());
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_EQ(DecodeCertificate(bytes.substr(0, length)).status().code(), StatusCode::kDataLoss)
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
      ASSERT_EQ(decoded.status().code(), StatusCode::kDataLoss) << decoded.status();
    }
  }
}

}  // namespace
}  // namespace phimap::testing
