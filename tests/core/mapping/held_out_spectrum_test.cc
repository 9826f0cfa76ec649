// Tests that the spectrum in a certificate is measured on held-out rows, as everything beside it.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/certificate.h"
#include "core/certificate/spectrum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// Every row of the pool is a landmark, so that the pool's own rows leave nothing outside of the
// span, while other rows leave more than half. Both numbers of the certificate are of the 90
// held-out rows.
TEST(HeldOutSpectrumTest, WhatIsCapturedAndWhatIsLostMakeOne) {
  const Matrix<double> rows = NormalRows({.rows = 900, .cols = 6, .seed = 1});
  for (const char* text : {"f2(landmarks=810, serving_type=float64)",
                           "f3(landmarks=810, dimensions=20, serving_type=float64)"}) {
    SCOPED_TRACE(text);
    const Certificate certificate = MustBuild(SpecOf(text, "rbf(gamma=0.5)"), rows).certificate;
    ASSERT_TRUE(certificate.spectrum.has_value());
    const Spectrum& spectrum = *certificate.spectrum;
    EXPECT_TRUE(spectrum.held_out);
    EXPECT_EQ(spectrum.rows, certificate.held_out_rows);
    EXPECT_NEAR(spectrum.residual / spectrum.trace, *certificate.held_out_trace_residual, 1e-9);
    EXPECT_GT(spectrum.residual / spectrum.trace, 0.2);
    // No eigenvalue is that of a landmark: the effective dimensions in the span are fewer.
    EXPECT_LT(spectrum.effective_dimensions.back().mapping,
              0.99 * spectrum.effective_dimensions.back().kernel);
  }
}

TEST(HeldOutSpectrumTest, AtMost512RowsAreMeasured) {
  const Matrix<double> rows = NormalRows({.rows = 9000, .cols = 3, .seed = 2});
  const Certificate certificate =
      MustBuild(SpecOf("f2(landmarks=50, serving_type=float64)", "rbf(gamma=1)"), rows).certificate;
  EXPECT_EQ(certificate.held_out_rows, 900);
  ASSERT_TRUE(certificate.spectrum.has_value());
  EXPECT_EQ(certificate.spectrum->rows, kMaxSpectrumRows);
  // 512 of the 900 rows have the mean of all up to four standard errors; a share has a standard
  // deviation of at most ½.
  EXPECT_NEAR(certificate.spectrum->residual / certificate.spectrum->trace,
              *certificate.held_out_trace_residual, 4 * 0.5 * std::sqrt(1.0 / 512 - 1.0 / 900));
}

// Without held-out rows nothing is measured, and the certificate has no spectrum rather than one of
// other rows.
TEST(HeldOutSpectrumTest, WithoutHeldOutRowsThereIsNone) {
  const Certificate certificate = MustBuild(SpecOf("f2(landmarks=20)", "rbf(gamma=1)"),
                                            NormalRows({.rows = 100, .cols = 3, .seed = 3}))
                                      .certificate;
  EXPECT_LT(certificate.held_out_rows, 20);
  EXPECT_FALSE(certificate.spectrum.has_value());
  EXPECT_FALSE(certificate.held_out_trace_residual.has_value());
}

// Deciding and held-out rows come from one law, so a certificate exceeds the goal by chance alone.
// Some of many seeds exceed it and warn; the others do neither.
TEST(HeldOutSpectrumTest, ACertificateWarnsWhereItsOwnQuantileExceedsTheGoal) {
  int over = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Matrix<double> rows = NormalRows({.rows = 700, .cols = 2, .seed = 100 + seed});
    const Certificate certificate =
        MustBuild(SpecOf("f2(landmarks=auto(residual=0.3))", "rbf(gamma=2)", false, seed), rows)
            .certificate;
    bool warned = false;
    for (const std::string& warning : certificate.warnings) {
      if (warning.find("had no part in the choice") != std::string::npos) warned = true;
    }
    ASSERT_TRUE(certificate.residual_share.has_value());
    const bool exceeds = certificate.residual_share->quantile_95 > 0.3;
    EXPECT_EQ(warned, exceeds) << absl::StrCat("seed ", seed);
    over += exceeds ? 1 : 0;
  }
  EXPECT_GT(over, 0);
  EXPECT_LT(over, 40);
}

}  // namespace
}  // namespace phimap::testing
