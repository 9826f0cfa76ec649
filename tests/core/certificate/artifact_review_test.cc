#include "core/certificate/artifact_review.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/head/report.h"
#include "core/linalg/panel_product.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/artifact_surgery.h"
#include "tests/support/certified_artifact.h"
#include "tests/support/heads.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

void ExpectRefused(const std::string& artifact, const char* reason) {
  EXPECT_THAT(ReviewArtifact(artifact).status(), IsError(StatusCode::kDataLoss, reason));
}

TEST(ArtifactReviewTest, AnArtifactOfOurOwnStandsUpToIt) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    const ReviewedArtifact review =
        ReviewArtifact(
            CertifiedArtifact({.serving_type = type, .columns = 5, .w = WKind::kTriangular}))
            .value();
    EXPECT_EQ(review.provenance.kernel_text, "rbf(gamma=0.5)");
    EXPECT_EQ(review.certificate.stream_rows, 100);
    EXPECT_EQ(review.input_columns, 5);
    EXPECT_EQ(review.output_columns, 7);
    EXPECT_EQ(review.serving_type, type);
    EXPECT_EQ(review.reference_vectors,
              VectorTargetFuses() ? ReferenceVectors::kVerified : ReferenceVectors::kNotComparable);
  }
}

TEST(ArtifactReviewTest, AnArtifactWithoutReferenceVectorsIsToldApart) {
  const absl::StatusOr<ReviewedArtifact> review = ReviewArtifact(
      CertifiedArtifact({}, {.certificate = [](Certificate& c) { c.self_check.reset(); }}));
  ASSERT_TRUE(review.ok()) << review.status();
  EXPECT_EQ(review->reference_vectors, ReferenceVectors::kAbsent);
}

TEST(ArtifactReviewTest, EveryTextHasToBeReadable) {
  for (const char* hostile : {"\x1b[2J", "\xff",
                              "safe\xe2\x80\xae"
                              "dorp"}) {
    const auto with = [&](const std::function<void(Provenance&)>& provenance,
                          const std::function<void(Certificate&)>& certificate) {
      return CertifiedArtifact({}, {.provenance = provenance, .certificate = certificate});
    };
    ExpectRefused(with([&](Provenance& p) { p.spec_text = hostile; }, nullptr), "TEXT_UNREADABLE");
    ExpectRefused(with([&](Provenance& p) { p.kernel_text += hostile; }, nullptr),
                  "TEXT_UNREADABLE");
    ExpectRefused(with(nullptr, [&](Certificate& c) { c.policy = hostile; }), "TEXT_UNREADABLE");
    ExpectRefused(with(nullptr, [&](Certificate& c) { c.theorem += hostile; }), "TEXT_UNREADABLE");
    ExpectRefused(with(nullptr,
                       [&](Certificate& c) {
                         c.warnings = {"good", hostile};
                       }),
                  "TEXT_UNREADABLE");
  }
}

TEST(ArtifactReviewTest, ATextCannotMakeUpLinesOfItsOwn) {
  const char* const spoof = "f2()\n  digest  0000";
  ExpectRefused(CertifiedArtifact({}, {.provenance = [&](Provenance& p) { p.spec_text = spoof; }}),
                "TEXT_UNREADABLE");
  ExpectRefused(
      CertifiedArtifact({}, {.provenance = [&](Provenance& p) { p.kernel_text = spoof; }}),
      "TEXT_UNREADABLE");
  ExpectRefused(CertifiedArtifact({}, {.certificate = [&](Certificate& c) { c.policy = spoof; }}),
                "TEXT_UNREADABLE");
  // A theorem may contain line breaks, because it is shown as a wrapped paragraph.
  EXPECT_TRUE(ReviewArtifact(CertifiedArtifact(
                                 {}, {.certificate = [&](Certificate& c) { c.theorem = spoof; }}))
                  .ok());
}

TEST(ArtifactReviewTest, ACertificateHasToBeSmall) {
  const auto with_bytes = [](int64_t bytes) {
    return CertifiedArtifact({}, {.certificate = [bytes](Certificate& c) {
                               for (int64_t left = bytes; left > 0; left -= 1 << 19) {
                                 c.warnings.emplace_back(std::min<int64_t>(left, 1 << 19), 'x');
                               }
                             }});
  };
  EXPECT_TRUE(ReviewArtifact(with_bytes(kMaxReviewedCertificateBytes - 4096)).ok());
  ExpectRefused(with_bytes(kMaxReviewedCertificateBytes), "CERTIFICATE_TOO_LARGE");
}

TEST(ArtifactReviewTest, NumbersThatNoBuildCanHaveMeasuredAreRefused) {
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::function<void(Certificate&)>> lies = {
      [](Certificate& c) { c.stream_rows = -1; },
      [](Certificate& c) { c.pool_rows = c.stream_rows + 1; },
      [](Certificate& c) { c.held_out_rows = -1; },
      [](Certificate& c) { c.landmarks = -7; },
      [](Certificate& c) { c.rank = int64_t{1} << 60; },
      [](Certificate& c) { c.tolerance = kNan; },
      [](Certificate& c) { c.largest_residual = -1; },
      [](Certificate& c) { c.trace_residual = kNan; },
      [](Certificate& c) { c.held_out_trace_residual = -0.1; },
      [](Certificate& c) { c.kernel_error = {.mean = kNan, .max = 1, .scale = 1, .count = 1}; },
      [](Certificate& c) { c.kernel_error = {.mean = 0, .max = -1e300, .scale = 1, .count = 1}; },
      [](Certificate& c) { c.kernel_error = {.mean = 2, .max = 1, .scale = 1, .count = 1}; },
      [](Certificate& c) { c.kernel_error_interval = {.low = -1, .high = 1}; },
      [](Certificate& c) { c.kernel_error_interval = {.low = 0, .high = kNan}; },
      [](Certificate& c) {
        c.kernel_error = {.mean = 2, .max = 3, .scale = 1, .count = 1};
        c.kernel_error_interval = {.low = 0, .high = 1};
      },
      [](Certificate& c) {
        c.kernel_error = {.mean = 2, .max = 3, .scale = 1, .count = 1};
        c.kernel_error_interval = {.low = 2.5, .high = 3};
      },
      [](Certificate& c) { c.kernel_error_bound = {.pairs = c.held_out_rows, .share = 0.1}; },
      [](Certificate& c) { c.kernel_error_bound = {.pairs = 0, .largest = -1, .share = 0.1}; },
      [](Certificate& c) { c.kernel_error_bound = {.pairs = 0, .largest = 1, .share = 1.5}; },
      [](Certificate& c) { c.kernel_error_bound = {.pairs = 0, .largest = 1, .share = kNan}; },
      [](Certificate& c) { c.serving_error = {.mean = 0, .max = 1, .scale = -1, .count = 1}; },
      [](Certificate& c) { c.serving_error = {.mean = 0, .max = 1, .scale = 1, .count = -1}; },
      [](Certificate& c) { c.pivots.assign(c.landmarks + 1, 1.0); },
      [](Certificate& c) { c.pivots = {kNan}; },
  };
  for (size_t i = 0; i < lies.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectRefused(CertifiedArtifact({}, {.certificate = lies[i]}), "CERTIFICATE_INVALID");
  }
}

TEST(ArtifactReviewTest, ReferenceVectorsOfAnotherShapeAreRefusedBeforeTheyRun) {
  const std::vector<std::function<void(SelfCheck&)>> edits = {
      [](SelfCheck& s) { s.rows = 1; }, [](SelfCheck& s) { s.rows = 3; },
      [](SelfCheck& s) { s.rows_float32_le.pop_back(); },
      [](SelfCheck& s) { s.features_le.push_back('\0'); },
      [](SelfCheck& s) { s.rows_float32_le.clear(); },
      // More reference vectors than allowed. Without the limit, checking many short vectors could
      // take hours.
      [](SelfCheck& s) {
        s.rows = 5;
        s.rows_float32_le.assign(5 * 5 * 4, '\0');
        s.features_le.assign(5 * 7 * 4, '\0');
      },
      [](SelfCheck& s) {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        std::memcpy(s.rows_float32_le.data() + 4, &nan, 4);
      }};
  for (size_t i = 0; i < edits.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectRefused(
        CertifiedArtifact({}, {.certificate = [&](Certificate& c) { edits[i](*c.self_check); }}),
        "SELF_CHECK_SHAPE_MISMATCH");
  }
}

TEST(ArtifactReviewTest, AnArtifactWhoseReferenceVectorsDoNotComeOutIsRefused) {
  if (!VectorTargetFuses()) GTEST_SKIP() << "no fused multiply-add, so the bits differ";
  // One bit is wrong in the last feature of the second row.
  const std::string other_bit =
      CertifiedArtifact({}, {.certificate = [](Certificate& c) {
                          c.self_check->features_le[c.self_check->features_le.size() - 4] ^= 1;
                        }});
  ExpectRefused(other_bit, "SELF_CHECK_FAILED");
  EXPECT_THAT(std::string(ReviewArtifact(other_bit).status().message()),
              HasSubstr("feature 6 of reference vector 1"));
  // An artifact that combines the certificate of one plan with another plan, with valid checksums.
  const std::string one = CertifiedArtifact({.seed = 1});
  const std::string other = CertifiedArtifact({.seed = 2});
  const std::string mixed =
      WithSection(one, 2, other.substr(SectionOffset(other, 2), SectionSize(other, 2)));
  ExpectRefused(mixed, "SELF_CHECK_FAILED");
}

TEST(ArtifactReviewTest, ReferenceVectorsWhoseFeaturesOverflowAreRefused) {
  if (!VectorTargetFuses()) GTEST_SKIP() << "no fused multiply-add, so the bits differ";
  const std::string artifact = CertifiedArtifact(
      {.kernel = "poly(degree=9, gamma=1, coef0=1)"}, {.certificate = [](Certificate& c) {
        const float huge = 1e30f;
        for (size_t at = 0; at < c.self_check->rows_float32_le.size(); at += 4) {
          std::memcpy(c.self_check->rows_float32_le.data() + at, &huge, 4);
        }
      }});
  ExpectRefused(artifact, "SELF_CHECK_FAILED");
}

TEST(ArtifactReviewTest, AHeadOfTheArtifactsOwnFeaturesStandsUpToIt) {
  const std::string features = CertifiedArtifact({.w = WKind::kTriangular});
  for (const HeadShape& shape :
       {HeadShape{.features = 7}, HeadShape{.features = 7, .classes = 2, .folded = false},
        HeadShape{.features = 7, .classes = 0, .variance = true}}) {
    const absl::StatusOr<ReviewedArtifact> review =
        ReviewArtifact(MustWithHead(features, MakeHead(shape)));
    EXPECT_TRUE(review.ok()) << review.status();
  }
}

TEST(ArtifactReviewTest, AHeadThatIsNotOneOfTheseFeaturesIsRefused) {
  const std::string features = CertifiedArtifact({.w = WKind::kTriangular});
  Head head = MakeHead({.features = 7});
  // Of another version: CertifiedArtifact of another seed has another digest.
  head.features_digest =
      FeaturesDigest(CertifiedArtifact({.w = WKind::kTriangular, .seed = 2})).value();
  ExpectRefused(WithHead(features, EncodeHead(head), "").value(), "ARTIFACT_MALFORMED");
  ExpectRefused(WithHead(features, "\1", "").value(), "ARTIFACT_MALFORMED");
  // Of other shapes: features, and a variance of other features.
  ExpectRefused(MustWithHead(features, MakeHead({.features = 8})), "ARTIFACT_MALFORMED");
  Head numbers = MakeHead({.features = 7, .classes = 0});
  numbers.variance = std::move(MakeHead({.features = 8, .classes = 0, .variance = true}).variance);
  ExpectRefused(MustWithHead(features, std::move(numbers)), "ARTIFACT_MALFORMED");
  // A product of W and the weights that overflows float32, where it is to be folded.
  Head large = MakeHead({.features = 7});
  large.weights(0, 0) = 1e60;
  EXPECT_FALSE(ReviewArtifact(MustWithHead(features, std::move(large))).ok());
}

TEST(ArtifactReviewTest, TheTextsOfAHeadHaveToBeReadable) {
  const std::string features = CertifiedArtifact({.w = WKind::kTriangular});
  for (const char* hostile : {"\x1b[2J", "two\nlines"}) {
    Head head = MakeHead({.features = 7});
    head.classes[1] = hostile;
    ExpectRefused(MustWithHead(features, std::move(head)), "TEXT_UNREADABLE");
    head = MakeHead({.features = 7});
    head.learner_text = hostile;
    ExpectRefused(MustWithHead(features, std::move(head)), "TEXT_UNREADABLE");
  }
  // Every text of the report: a message that holds one that is no UTF-8 is read by no client.
  for (const char* hostile : {"\x1b[2J", "two\nlines", "\xc3"}) {
    for (int text = 0; text < 8; ++text) {
      TrainingReport report;
      if (text == 0) report.premise = hostile;
      if (text == 1) report.notes = {hostile};
      if (text == 2) report.baselines = {Baseline{.name = hostile, .error = {}}};
      if (text == 3)
        report.choice = ParameterChoice{.parameter = hostile, .loss = "", .candidates = {}};
      if (text == 4)
        report.choice = ParameterChoice{.parameter = "", .loss = hostile, .candidates = {}};
      if (text >= 5) report.trials.emplace_back();
      if (text == 5) report.trials[0].spec = hostile;
      if (text == 6) report.trials[0].kernel = hostile;
      if (text == 7) report.trials[0].learner = hostile;
      Head head = MakeHead({.features = 7});
      head.report = EncodeReport(report);
      SCOPED_TRACE(text);
      ExpectRefused(MustWithHead(features, std::move(head)), "TEXT_UNREADABLE");
    }
  }
}

TEST(ArtifactReviewTest, DamageAndNewerFormatsAreTheDecodersWords) {
  std::string damaged = CertifiedArtifact();
  damaged[damaged.size() / 2] ^= 1;
  ExpectRefused(damaged, "ARTIFACT_MALFORMED");
  ExpectRefused("PHIMAP", "ARTIFACT_MALFORMED");
  std::string newer = CertifiedArtifact();
  WriteAt<uint32_t>(newer, 8, kArtifactFormat + 1);
  FixChecksums(newer);
  EXPECT_EQ(ReviewArtifact(newer).status().code(), StatusCode::kUnimplemented);
}

// Mutates an artifact and restores its checksums. Nothing may crash, and an artifact that passes
// the review must contain only readable text and have a small certificate.
TEST(ArtifactReviewTest, MutatedArtifactsAreRefusedOrHarmless) {
  const std::string seed = CertifiedArtifact({.columns = 3, .feature_count = 4});
  RandomCursor random(RandomStream(20240502, StreamId::kStartVectors));
  int accepted = 0;
  for (int iteration = 0; iteration < 5000; ++iteration) {
    std::string bytes = seed;
    const int section = static_cast<int>(random.UniformBelow(5));
    std::string content = bytes.substr(SectionOffset(bytes, section), SectionSize(bytes, section));
    const int64_t edits = 1 + static_cast<int64_t>(random.UniformBelow(3));
    for (int64_t e = 0; e < edits && !content.empty(); ++e) {
      content[random.UniformBelow(content.size())] = static_cast<char>(random.UniformBelow(256));
    }
    bytes = WithSection(bytes, section, content);
    const absl::StatusOr<ReviewedArtifact> review = ReviewArtifact(bytes);
    if (!review.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(review.status()) || absl::IsUnimplemented(review.status()) ||
                  absl::IsFailedPrecondition(review.status()))
          << review.status();
      continue;
    }
    ++accepted;
  }
  EXPECT_GT(accepted, 100);  // mutations of the certificate's numbers are accepted
}

}  // namespace
}  // namespace phimap::testing
