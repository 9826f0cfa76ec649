#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/views/console.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/error.h"
#include "core/status/exit_code.h"
#include "tests/support/matchers.h"
#include "tests/support/text_proto.h"

namespace phimap::cli {
namespace {

ProgressState Sending() {
  return {.label = "letters", .rows = 12'288, .elapsed = absl::Seconds(2)};
}

TEST(ProgressTest, ShowsRowsAndRateWhileRowsFlow) {
  EXPECT_EQ(RenderProgress(Sending(), 80), "letters  12,288 rows  6,144 rows/s  2 s");
}

TEST(ProgressTest, ShowsABarWhenTheTotalIsKnown) {
  ProgressState state = Sending();
  state.total_rows = 24'576;
  EXPECT_EQ(RenderProgress(state, 100),
            "letters  [############............] 50%  12,288 rows  6,144 rows/s  about 2 s left");
  EXPECT_EQ(RenderProgress(state, 80),
            "letters  [############............] 50%  12,288 rows  about 2 s left");
}

TEST(ProgressTest, ShowsTheShareOfTheInputWhereTheTotalIsNotKnown) {
  ProgressState state = Sending();
  state.share_read = 0.25;
  EXPECT_EQ(RenderProgress(state, 100),
            "letters  [######..................] 25%  12,288 rows  6,144 rows/s  about 6 s left");
  // After one second, it is too early to estimate the remaining time.
  state.elapsed = absl::Seconds(1);
  EXPECT_THAT(RenderProgress(state, 80), EndsWith("12,288 rows/s  1 s"));
}

TEST(ProgressTest, ShowsPhaseAndShareOnceRowsAreThrough) {
  ProgressState state = Sending();
  state.phase = "factor";
  state.fraction = 0.25;
  EXPECT_EQ(RenderProgress(state, 80),
            "letters  [######..................] 25%  12,288 rows  factor  2 s");
}

TEST(ProgressTest, ShowsTheTimeThatIsLeftOnceTheServerCanTell) {
  ProgressState state = Sending();
  state.phase = "factor";
  state.fraction = 0.25;
  state.seconds_left = 89.2;
  EXPECT_EQ(RenderProgress(state, 80),
            "letters  [######..................] 25%  12,288 rows  factor  about 1:30 left");
  for (const double nonsense : {-1.0, 1e300, std::nan(""), static_cast<double>(INFINITY)}) {
    state.seconds_left = nonsense;
    EXPECT_THAT(RenderProgress(state, 80), HasSubstr("factor  2 s"));
  }
}

TEST(ProgressTest, LeavesOutPartsThatDoNotFitAndNeverExceedsTheWidth) {
  ProgressState state = Sending();
  state.total_rows = 24'576;
  EXPECT_EQ(RenderProgress(state, 40), "letters  12,288 rows  6,144 rows/s");
  EXPECT_EQ(RenderProgress(state, 25), "letters  12,288 rows");
  for (int width = -1; width < 100; ++width) {
    EXPECT_LE(static_cast<int>(RenderProgress(state, width).size()), std::max(width, 0));
  }
}

TEST(ProgressTest, SurvivesNumbersAndWordsThatMakeNoSense) {
  ProgressState state{.label = "l", .rows = 3, .phase = "\x1b[2J", .fraction = std::nan("")};
  EXPECT_EQ(RenderProgress(state, 80), "l  [........................] 0%  3 rows  ?[2J  0 s");
  state.fraction = 7;
  EXPECT_THAT(RenderProgress(state, 80), HasSubstr("] 100%"));
}

absl::Time fake_now;
absl::Time FakeNow() { return fake_now; }

TEST(ProgressTest, DrawsInPlaceTenTimesASecondAndLeavesACleanLine) {
  std::ostringstream stream;
  {
    ProgressBar bar({.stream = &stream, .is_terminal = true, .width = 80}, &FakeNow);
    for (int i = 0; i < 10; ++i) {
      bar.Update({.label = "l", .rows = i});
      fake_now += absl::Milliseconds(50);
    }
  }
  const std::string drawn = stream.str();
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), '\r'), 5 + 1);
  EXPECT_TRUE(drawn.ends_with("\r\x1b[K"));
  EXPECT_EQ(drawn.find('\n'), std::string::npos);
}

TEST(ProgressTest, KeepEndsTheLineWithTheLastState) {
  std::ostringstream stream;
  {
    ProgressBar bar({.stream = &stream, .is_terminal = true, .width = 80}, &FakeNow);
    bar.Update({.label = "l", .rows = 1});
    bar.Update({.label = "l", .rows = 2});
    bar.Keep();
  }
  EXPECT_TRUE(stream.str().ends_with("\rl  2 rows  0 s\x1b[K\n")) << stream.str();
}

TEST(ProgressTest, WritesNothingWhereThereIsNoTerminal) {
  std::ostringstream stream;
  {
    ProgressBar bar({.stream = &stream, .is_terminal = false});
    bar.Update({.label = "l", .rows = 1});
    bar.Keep();
  }
  EXPECT_EQ(stream.str(), "");
}

v1::Version Letters() {
  return testing::Parsed<v1::Version>(R"(
      ref { name: "letters" number: 3 } output_columns: 499
      certificate {
        stream_rows: 20000 landmarks: 500 rank: 499
        kernel_error { mean: 0.0123456 max: 0.34 count: 1999000 }
        warnings: "the tolerance was reached: one landmark in 500 was dropped"
      })");
}

TEST(CertificateViewTest, DrawsEachNumberWithWhatItMeans) {
  const std::string text = RenderVersion(Letters(), 80);
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("letters@3\n"),
            HasSubstr("  rows              20,000                in the stream it was "
                      "built from\n"),
            HasSubstr("499 of 500"), HasSubstr("0.0123 / 0.34"), HasSubstr("over 1,999,000 pairs"),
            HasSubstr("  WARNING: the tolerance was reached")));
  // A value that was not measured is left out, not shown as zero.
  EXPECT_THAT(text, AllOf(Not(HasSubstr("trace residual")), Not(HasSubstr("serving error"))));
}

// A test error of 3 of 40 rows and what it stands beside; what was not measured is left out.
TEST(HeadViewTest, SaysHowWellAHeadPredictsAndBesideWhat) {
  const auto version = testing::Parsed<v1::Version>(R"pb(
    ref { name: "letters" number: 3 }
    head {
      learner: "ridge(alpha=0.1)"
      task: HEAD_TASK_CLASSES
      class_names: "A"
      class_names: "B"
      folded: true
      report {
        parts { train: 1500 validate: 20 calibrate_link: 30 calibrate_sets: 31 test: 40 }
        confidence: 0.95
        premise: "rows are drawn independently"
        classes {
          rows: 40
          errors: 3
          error { value: 0.075 low: 0.016 high: 0.204 }
          balanced_accuracy: 0.9
          classes { rows: 30 predicted: 31 correct: 29 }
          classes { rows: 10 predicted: 9 correct: 8 }
        }
        baselines { name: "the most frequent class" error: 0.25 }
        coverage { confidence: 0.9 covered: 37 rows: 40 mean_size: 1.05 }
        folding { rows: 40 changed: 1 }
      }
    })pb");
  const std::string text = RenderHead(version, 80);
  EXPECT_THAT(text, AllOf(HasSubstr("head: ridge(alpha=0.1)\n"), HasSubstr("2 classes\n"),
                          HasSubstr("1,500"), HasSubstr("3 of 40 test rows; from 1.6 to 20.4 %"),
                          HasSubstr("7.50 %"), HasSubstr("25.00 %"), HasSubstr("sets of 90 %"),
                          HasSubstr("92.50 %"), HasSubstr("folding changes 1 of 40 answers"),
                          HasSubstr("rows are drawn independently")));
  EXPECT_THAT(text,
              AllOf(Not(HasSubstr("AUC")), Not(HasSubstr("log loss")), Not(HasSubstr(" \n"))));
}

// The words are the server's; a warning and the colour of the grade are added.
TEST(CertificateViewTest, ShowsTheVerdictOfTheServerWithItsAdvice) {
  v1::Version version = Letters();
  v1::Certificate& certificate = *version.mutable_certificate();
  certificate.clear_warnings();
  const auto shown = [&] { return RenderVersion(version, 200); };
  EXPECT_THAT(shown(),
              HasSubstr("\n  verdict           not judged: the server is of an earlier release\n"));
  v1::Verdict& verdict = *certificate.mutable_verdict();
  verdict.set_reason("a learner loses 1 %");
  struct Case {
    v1::Verdict::Grade grade;
    std::string text;
    std::string color;
  };
  for (const Case& c : {Case{v1::Verdict::GRADE_GOOD, "good", "\x1b[32m"},
                        Case{v1::Verdict::GRADE_FAIR, "fair", "\x1b[33m"},
                        Case{v1::Verdict::GRADE_POOR, "poor", "\x1b[31m"},
                        Case{v1::Verdict::GRADE_NOT_JUDGED, "not judged", ""}}) {
    verdict.set_grade(c.grade);
    EXPECT_THAT(shown(), HasSubstr(absl::StrCat("\n  verdict           ", c.text,
                                                ": a learner loses 1 %\n")));
    EXPECT_THAT(shown(), Not(HasSubstr("\x1b")));
    EXPECT_THAT(RenderVersion(version, 200, /*color=*/true),
                HasSubstr(absl::StrCat(c.color, c.text)));
  }
  verdict.set_advice("more landmarks reduce it");
  certificate.add_warnings("w");
  EXPECT_THAT(
      shown(),
      HasSubstr("not judged: a learner loses 1 %; more landmarks reduce it; 1 warning below\n"));
  certificate.add_warnings("w");
  EXPECT_THAT(shown(), HasSubstr("; 2 warnings below\n"));
}

TEST(CertificateViewTest, ShowsWhatALearnerLosesAndWhereFewRowsCarryTheMeans) {
  v1::Version version = Letters();
  v1::Certificate& certificate = *version.mutable_certificate();
  certificate = testing::Merged(certificate, R"(
      fidelity { rows: 300 smoothers { lambda: 1 distance: 0.125 }
                 smoothers { lambda: 0.01 distance: 0.25 } gram_error: 0.03
                 centred_gram_error: 0.04 self_error_median: 0.05 self_error_quantile_95: 0.06 }
      effective_rows { kernel: 51 error: 50 })");
  std::string text = RenderVersion(version, 200);
  EXPECT_THAT(text, HasSubstr("learner           12.5 / 25 %"));
  EXPECT_THAT(text, HasSubstr("at λ = 1 / 0.01, over 300 new rows"));
  EXPECT_THAT(text, HasSubstr("Gram error        3 % / 4 %"));
  EXPECT_THAT(text, HasSubstr("5 % / 6 %"));
  EXPECT_THAT(text, Not(HasSubstr("effective rows")));
  certificate.mutable_effective_rows()->set_error(49);
  EXPECT_THAT(RenderVersion(version, 200), HasSubstr("effective rows    51 / 49"));
  certificate.mutable_fidelity()->clear_smoothers();
  EXPECT_THAT(RenderVersion(version, 200), HasSubstr("nothing to learn"));
}

TEST(CertificateViewTest, SaysOfWhichKernelTheErrorIs) {
  v1::Version version = Letters();
  version.mutable_certificate()->mutable_kernel_error()->set_scale(0.75);
  EXPECT_THAT(RenderVersion(version, 80), HasSubstr("pairs; the largest K(x,x) of them is 0.75\n"));
  version.set_spec_text("kpca(landmarks=500, dimensions=10, centred=true, policy=uniform)");
  EXPECT_THAT(RenderVersion(version, 80),
              HasSubstr("pairs; the largest K(x,x) of them, centred on the landmarks, is 0.75\n"));
  version.set_spec_text("kpca(landmarks=500, dimensions=10, centred=false, policy=uniform)");
  EXPECT_THAT(RenderVersion(version, 80), HasSubstr("pairs; the largest K(x,x) of them is 0.75\n"));
}

TEST(CertificateViewTest, SaysThatNothingWasMeasured) {
  v1::Version version = Letters();
  version.mutable_certificate()->clear_kernel_error();
  EXPECT_THAT(RenderVersion(version, 80), HasSubstr("not measured"));
}

TEST(CertificateViewTest, WrapsSentencesBetweenWords) {
  v1::Version version = Letters();
  version.mutable_certificate()->set_theorem(
      "with probability at least 0.99 a separator of margin 0.05 has error at most 0.02 in F(x)");
  version.mutable_certificate()->set_theorem_scope("all rows");
  const std::string text = RenderVersion(version, 60);
  const size_t start = text.find("  theorem: ");
  ASSERT_NE(start, std::string::npos);
  std::istringstream lines(text.substr(start));
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 60) << line;
}

v1::Certificate::Spectrum FallingSpectrum() {
  auto spectrum = testing::Parsed<v1::Certificate::Spectrum>("rows: 512 held_out: true trace: 2");
  for (int i = 0; i < 64; ++i) spectrum.add_eigenvalues(1.2 * std::pow(0.7, i));
  for (const double level : {0.1, 0.01}) {
    auto& dimension = *spectrum.add_effective_dimensions();
    dimension.set_lambda(2 * level);
    dimension.set_kernel(0.4 / level);
    dimension.set_mapping(0.39 / level);
  }
  return spectrum;
}

TEST(SpectrumViewTest, DrawsSharesOfTheTraceAgainstPowersOfTen) {
  const std::string text = RenderSpectrum(FallingSpectrum(), 100);
  // The eigenvalues' shares of the trace are 0.6, 0.42, 0.294, … Two of them are above 10^-½, and
  // the first six are above 10^-1.
  EXPECT_THAT(
      text, AllOf(HasSubstr("  spectrum: eigenvalues 1 to 64 of K on 512 held-out rows, shares "
                            "of their sum\n       100 % |##\n             |######\n        10 % |"),
                  HasSubstr("  over 10 %         3.9 of 4.0 effective dimensions are in the span "
                            "of the landmarks\n"),
                  HasSubstr("  over 1 %         39.0 of 40.0 effective dimensions are in the "
                            "span of the landmarks\n")));
}

TEST(SpectrumViewTest, AnEarlierReleaseMeasuredOnThePool) {
  v1::Certificate::Spectrum spectrum = FallingSpectrum();
  spectrum.clear_held_out();
  EXPECT_THAT(RenderSpectrum(spectrum, 100),
              HasSubstr("of K on 512 rows of the pool, landmarks among them, shares"));
}

TEST(SpectrumViewTest, StaysWithinItsWidthAndDrawsNothingWithoutRoom) {
  for (int width = 0; width < 100; ++width) {
    std::istringstream lines(RenderSpectrum(FallingSpectrum(), width));
    std::string line;
    while (std::getline(lines, line)) {
      if (line.find('|') != std::string::npos) {
        EXPECT_LE(static_cast<int>(line.size()), width);
      }
    }
  }
  EXPECT_EQ(RenderSpectrum(FallingSpectrum(), 10), "");
  EXPECT_EQ(RenderSpectrum({}, 100), "");
}

TEST(SpectrumViewTest, SurvivesNumbersThatMakeNoSense) {
  v1::Certificate::Spectrum spectrum = FallingSpectrum();
  for (const double trace : {0.0, -1.0, std::nan(""), 1e-300, 1e300}) {
    spectrum.set_trace(trace);
    spectrum.set_eigenvalues(1, -3);
    spectrum.set_eigenvalues(2, std::nan(""));
    const std::string text = RenderSpectrum(spectrum, 80);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 13) << text;
  }
}

TEST(CertificateViewTest, DrawsTheSpectrumAndWhatTheChoiceLeft) {
  v1::Version version = Letters();
  v1::Certificate& certificate = *version.mutable_certificate();
  certificate.set_pool_trace_residual(0.0625);
  *certificate.mutable_spectrum() = FallingSpectrum();
  EXPECT_THAT(RenderVersion(version, 80),
              AllOf(HasSubstr("  pool residual     6.25 %"),
                    HasSubstr("effective dimensions are in the span of the landmarks")));
}

TEST(CertificateViewTest, SaysOfAllPairsWhatIsApproximateAndWhatIsExact) {
  v1::Version version = testing::Merged(Letters(), R"(
      certificate { kernel_error { interval_low: 0.0119 interval_high: 0.0128
                                   pair_bound { pairs: 1000 largest: 0.00385 share: 0.0029912 } } })");
  v1::Certificate::Error& error = *version.mutable_certificate()->mutable_kernel_error();
  const std::string text = RenderVersion(version, 80);
  EXPECT_THAT(text, AllOf(HasSubstr("mean between 0.0119 and 0.0128 (95 %, approximate)\n"),
                          HasSubstr("at most 0.3 % of pairs err more than 0.0039 (95 %, exact, "
                                    "from 1,000 disjoint pairs)\n"),
                          Not(HasSubstr("±"))));
  // If no measured pair has an error, no interval is known.
  error.set_mean(0);
  error.clear_interval_low();
  error.clear_interval_high();
  error.mutable_pair_bound()->set_largest(0);
  EXPECT_THAT(RenderVersion(version, 80),
              AllOf(HasSubstr("at most 0.3 % of pairs err more than 0 (95 %, exact, from 1,000 "
                              "disjoint pairs)\n"),
                    Not(HasSubstr("mean between"))));
  // Versions that an earlier release built have a half-width in place of an interval.
  error.clear_pair_bound();
  error.set_half_width(2e-4);
  EXPECT_THAT(RenderVersion(version, 80),
              HasSubstr("mean ± 0.0002 (a normal interval of disjoint pairs, by an earlier "
                        "release)\n"));
}

TEST(CertificateViewTest, SaysTheResidualMassOfRowsAndWhichRowsTheTheoremCovers) {
  v1::Version version = Letters();
  v1::Certificate& certificate = *version.mutable_certificate();
  certificate.set_held_out_trace_residual(0.0852);
  certificate.set_tolerance(3e-5);
  EXPECT_THAT(RenderVersion(version, 80), HasSubstr("residual under which a landmark is dropped"));
  certificate = testing::Merged(certificate, R"(
      zero_landmarks: 3 theorem_scope: "the stream's own empirical distribution"
      residual_share { median: 0.015 quantile_95: 0.475 rows: 1990 zero_rows: 10 })");
  EXPECT_THAT(
      RenderVersion(version, 80),
      AllOf(HasSubstr("share of its own K(x,x) at which a landmark is dropped"),
            HasSubstr("  zero landmarks    3  "),
            HasSubstr("1.5 % / 47.5 %        median / 95 % quantile of a row's own share, over "
                      "1,990 rows\n"),
            HasSubstr("without 10 rows whose K(x,x) is only rounding\n"),
            HasSubstr("  holds for: the stream's own empirical distribution\n")));
}

TEST(CertificateViewTest, TheoremsOfEarlierReleasesAreTheirs) {
  v1::Version version = Letters();
  version.mutable_certificate()->set_theorem("d landmarks suffice");
  EXPECT_THAT(RenderVersion(version, 80),
              HasSubstr("  theorem, as an earlier release stated it: d landmarks suffice\n"));
  version.mutable_certificate()->set_theorem("none: the landmarks were given");
  EXPECT_THAT(RenderVersion(version, 80), HasSubstr("  theorem: none: the landmarks"));
}

TEST(CertificateViewTest, FitsInOneLine) {
  EXPECT_EQ(RenderVersionLine(Letters()),
            "letters@3: 499 features, rank 499 of 500, kernel error mean 0.0123, max 0.34, 1 "
            "warning");
}

TEST(JsonTextTest, KeepsProtoNamesAndZeros) {
  const auto text = JsonText(Letters()).value();
  EXPECT_THAT(
      text, AllOf(HasSubstr("\"output_columns\": 499"), HasSubstr("\"artifact_size_bytes\": \"0\""),
                  Not(HasSubstr("held_out_trace_residual"))));
  EXPECT_EQ(text.back(), '\n');
}

TEST(ExitCodeTest, EveryCanonicalCodeHasItsExitCode) {
  const int expected[] = {0, 130, 1, 2, 6, 3, 5, 5, 5, 5, 5, 2, 5, 1, 4, 1, 5};
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "m");
    EXPECT_EQ(static_cast<int>(ExitCodeOf(status)), expected[code]) << code;
  }
}

TEST(ErrorTextTest, SaysHowToStartAServerThatIsNotThere) {
  EXPECT_THAT(ErrorText(absl::UnavailableError("connection refused"), "127.0.0.1:7450", "list"),
              AllOf(HasSubstr("no server answers at 127.0.0.1:7450 (connection refused)"),
                    HasSubstr("phimapd --data_dir=DIR --listen=127.0.0.1:7450")));
  // None can be started elsewhere, or at two addresses.
  for (const char* server : {"ipv4:127.0.0.1:7450,127.0.0.1:7451", "phimap.example:7450"}) {
    EXPECT_THAT(ErrorText(absl::UnavailableError("connection refused"), server, "list"),
                AllOf(HasSubstr(server), Not(HasSubstr("--data_dir"))));
  }
  EXPECT_THAT(ErrorText(absl::UnavailableError("Peer name a:1 is not in peer certificate"),
                        "localhost:7450", "list"),
              HasSubstr("--tls_server_name=NAME"));
}

TEST(ErrorTextTest, ServerThatAnswersUnavailableSpeaksForItself) {
  const absl::Status status = MakeError(absl::StatusCode::kUnavailable, "SERVER_SHUTTING_DOWN", "",
                                        "the server is shutting down", {}, 1500);
  EXPECT_EQ(ErrorText(status, "h:1", "list"),
            "phimap: the server is shutting down\n  try again in 2 s\n");
}

absl::Status FieldError(const std::string& field, const std::string& message = "wrong",
                        std::map<std::string, std::string> metadata = {}) {
  return MakeError(absl::StatusCode::kInvalidArgument, "R", field, message, std::move(metadata));
}

TEST(ErrorTextTest, NamesTheOptionThatWasTypedForAField) {
  struct Case {
    const char* command;
    const char* field;
    const char* place;
  };
  const Case cases[] = {
      {"build", "name", "NAME: "},
      {"build", "spec", "--spec: "},
      {"build", "landmarks", "landmarks: "},
      {"sweep", "kernel", "--kernel: "},
      {"build", "kernel", "--kernel: "},
      {"build", "seed", "--seed: "},
      {"build", "examples", "--input: "},
      {"build", "column_names", "--input: "},
      {"build", "spec.column_names", "--input: "},
      {"list", "server", "--server: "},
      {"build", "kernels", "kernels: "},  // not part of kernel
      {"evaluate", "learner.epochs", "--learner: "},
      {"transform", "examples.dense.columns", "--input: "},
      {"transform", "reference", "NAME[@VERSION]: "},
      {"show", "reference", "NAME[@VERSION]: "},
      {"bench", "examples.dense.columns", "--columns: "},
      {"verify", "examples.dense.columns", "examples.dense.columns: "},
      {"build", "", ""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ErrorText(FieldError(c.field), "h:1", c.command),
              std::string("phimap: ") + c.place + "wrong\n")
        << c.command << " " << c.field;
  }
}

TEST(ErrorTextTest, SaysThatAHeaderNamesTheColumns) {
  const absl::Status status =
      MakeError(absl::StatusCode::kInvalidArgument, "COLUMN_NAMES_INVALID", "spec.column_names",
                "expected no names", {{"expected", "0"}, {"actual", "3"}});
  EXPECT_EQ(
      ErrorText(status, "h:1", "build"),
      "phimap: --input: expected no names\n  the header of a CSV file names its columns; give "
      "such rows as an npy file, which has no names\n");
  EXPECT_EQ(ErrorText(status, "h:1", ""), "phimap: spec.column_names: expected no names\n");
}

TEST(ErrorTextTest, KeepsTheFieldsForAProgram) {
  EXPECT_EQ(ErrorText(FieldError("kernel"), "h:1", ""), "phimap: kernel: wrong\n");
}

TEST(ErrorTextTest, NamesTheRowOfTheInputAndNotOfTheRequest) {
  const absl::Status status =
      FieldError("examples.dense.rows[4]", "request 2: overflow", {{"request", "2"}, {"row", "4"}});
  EXPECT_EQ(ErrorText(WithInputRow(status, 1000), "h:1", "transform"),
            "phimap: --input, row 1005: overflow\n");
  EXPECT_EQ(ErrorText(WithInputRow(absl::InternalError("m"), 1000), "h:1", "transform"),
            "phimap: m\n");
  // The prefix "request 2: " is removed only if the error's metadata contains the number of the
  // request.
  EXPECT_EQ(ErrorText(FieldError("", "request 2: m"), "h:1", "transform"),
            "phimap: request 2: m\n");
}

}  // namespace
}  // namespace phimap::cli
