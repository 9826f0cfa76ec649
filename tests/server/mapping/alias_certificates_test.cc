#include "server/mapping/alias_certificates.h"

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(AliasCertificatesTest, FiguresAreThoseOfTheCertificateAndErrorsAreRelative) {
  Certificate certificate;
  certificate.landmarks = 500;
  certificate.rank = 499;
  certificate.trace_residual = 0.25;
  certificate.held_out_trace_residual = 0.5;
  certificate.kernel_error = {.mean = 1, .max = 4, .scale = 8, .count = 10};
  certificate.serving_error = {.mean = 0.5, .max = 1, .scale = 2, .count = 10};
  certificate.mean_squared_norm = 0.75;
  const CertificateFigures figures = FiguresOf(certificate);
  EXPECT_EQ(figures.landmarks, 500);
  EXPECT_EQ(figures.rank, 499);
  EXPECT_EQ(figures.trace_residual, 0.25);
  EXPECT_EQ(figures.held_out_trace_residual, 0.5);
  EXPECT_EQ(figures.kernel_error_mean, 0.125);
  EXPECT_EQ(figures.kernel_error_max, 0.5);
  EXPECT_EQ(figures.serving_error_mean, 0.25);
  EXPECT_EQ(figures.serving_error_max, 0.5);
  EXPECT_EQ(figures.mean_squared_norm, 0.75);
}

TEST(AliasCertificatesTest, WhatWasNotMeasuredIsAbsentAndAScaleOfZeroDividesNothing) {
  Certificate certificate;
  EXPECT_EQ(FiguresOf(certificate).landmarks, std::nullopt);
  EXPECT_EQ(FiguresOf(certificate).rank, std::nullopt);
  EXPECT_EQ(FiguresOf(certificate).kernel_error_max, std::nullopt);
  EXPECT_EQ(FiguresOf(certificate).serving_error_mean, std::nullopt);
  certificate.kernel_error = {.mean = 0, .max = 0, .scale = 0, .count = 10};
  EXPECT_EQ(FiguresOf(certificate).kernel_error_max, 0);
}

}  // namespace
}  // namespace phimap::testing
