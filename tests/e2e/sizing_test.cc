// The formulas under "Sizing" in docs/operations.md, against what a server takes.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"

namespace phimap::e2e {
namespace {

using ::testing::HasSubstr;

constexpr double kMiB = 1 << 20;
// The libraries, the threads and the first pages of every kind.
constexpr double kBaseBytes = 64 * kMiB;
constexpr int32_t kColumns = 256;
constexpr int64_t kRows = 10'000;
constexpr int64_t kFloatBytes = 4;

// As the guide writes them; the functions below say the same.
constexpr const char* kFormulas[] = {
    "F1  s·d·p",
    "F2  s·(d·p + d²/2)",
    "F3  s·(d·p + d·k)",
    "memory ≤ 64 MiB + 1.25·live + 2·queue_bytes + 4·callers·request + builds",
    "8·pool·(p + 1) + 16·d² + 24·d·(p + max(d/2, k)) + 24·held_out·(p + features)",
};

struct Shape {
  const char* name;
  std::string mapping;
  // Landmarks, as far as they are kept; features of F3.
  double d = 0;
  double k = 0;
};

double LiveBytes(const Shape& shape) {
  const std::string kind = shape.mapping.substr(0, 2);
  if (kind == "f1") return kFloatBytes * shape.d * kColumns;
  if (kind == "f2") return kFloatBytes * (shape.d * kColumns + shape.d * shape.d / 2);
  return kFloatBytes * (shape.d * kColumns + shape.d * shape.k);
}

// For a stream that is shorter than the pool would be.
double BuildBytes(const Shape& shape) {
  const double features = shape.k > 0 ? shape.k : shape.d;
  return 8.0 * kRows * (kColumns + 1) + 16 * shape.d * shape.d +
         24 * shape.d * (kColumns + std::max(shape.d / 2, shape.k)) +
         24.0 * kRows / 10 * (kColumns + features);
}

v1::Version MustBuild(client::Client& client, const Shape& shape) {
  GeneratedRows rows(kRows, kColumns, 1);
  const auto version = client.Build(
      {.mapping = shape.name, .mapping_text = shape.mapping, .kernel_text = "rbf(gamma=scale)"},
      rows);
  EXPECT_TRUE(version.ok()) << version.status();
  return version.value_or(v1::Version());
}

// Makes the version live: a row is enough.
void Load(const ServerProcess& server, const Shape& shape) {
  const std::vector<float> row(kColumns, 0.5f);
  const auto result = server.Connect()->Transform(
      shape.name, client::MakeRowBlock(absl::MakeConstSpan(row), kColumns));
  ASSERT_TRUE(result.ok()) << result.status();
}

// The pages of code and the buffers that a first call takes; measured 3.5 MiB.
constexpr double kFirstCallBytes = 8 * kMiB;

TEST(SizingTest, ALiveVersionTakesWhatTheFormulaSays) {
  TemporaryFolder folder;
  std::vector<Shape> shapes = {
      {"one", "f1(landmarks=8000, serving_type=float32)", 8000},
      {"two", "f2(landmarks=3000, serving_type=float32)", 3000},
      {"three", "f3(landmarks=3000, dimensions=1500, serving_type=float32)", 3000, 1500}};
  {
    ServerProcess server(folder.path());
    for (Shape& shape : shapes) {
      const v1::Version version = MustBuild(*server.Connect(), shape);
      if (version.certificate().has_rank()) shape.d = version.certificate().rank();
    }
  }
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.mapping);
    ServerProcess server(folder.path());
    const int64_t before = server.MemoryBytes();
    Load(server, shape);
    const double growth = static_cast<double>(server.MemoryBytes() - before);
    const double formula = LiveBytes(shape);
    std::cout << shape.mapping << ": formula " << formula / kMiB << " MiB, measured "
              << growth / kMiB << " MiB\n";
    EXPECT_GE(growth, 0.9 * formula);
    EXPECT_LE(growth, 1.25 * formula + kFirstCallBytes);
  }
}

// Callers whose requests and answers are twice what the queue takes, none of whom waits when it is
// refused.
TEST(SizingTest, OverloadTakesNoMoreThanTheFormulaSays) {
  constexpr double kQueueBytes = 32 * kMiB;
  constexpr int kCallers = 16;
  constexpr int kRequestRows = 512;
  TemporaryFolder folder;
  const Shape shape{"one", "f1(landmarks=2000, serving_type=float32)", 2000};
  MustBuild(*ServerProcess(folder.path()).Connect(), shape);
  ServerProcess server(folder.path(),
                       {absl::StrCat("--queue_bytes=", static_cast<int64_t>(kQueueBytes))});
  const ProcessResult bench =
      RunProcess({PHIMAP_BINARY, "--server=" + server.address(), "bench", shape.name,
                  absl::StrCat("--callers=", kCallers), absl::StrCat("--rows=", kRequestRows),
                  "--channels=4", "--seconds=1", "--warmup=0", "--timeout=60"});
  EXPECT_THAT(bench.out + bench.err, HasSubstr("RESOURCE_EXHAUSTED"));
  const double request = kRequestRows * kColumns * kFloatBytes;
  const double formula =
      kBaseBytes + 1.25 * LiveBytes(shape) + 2 * kQueueBytes + 4 * kCallers * request;
  const double peak = static_cast<double>(server.PeakMemoryBytes());
  std::cout << "overload: formula " << formula / kMiB << " MiB, measured " << peak / kMiB
            << " MiB\n";
  EXPECT_LE(peak, formula);
  EXPECT_GE(peak, formula / 4);
}

TEST(SizingTest, ABuildTakesNoMoreThanTheFormulaSays) {
  TemporaryFolder folder;
  ServerProcess server(folder.path());
  const Shape shape{"two", "f2(landmarks=3000, serving_type=float32)", 3000};
  MustBuild(*server.Connect(), shape);
  const double formula = kBaseBytes + BuildBytes(shape);
  const double peak = static_cast<double>(server.PeakMemoryBytes());
  std::cout << "build: formula " << formula / kMiB << " MiB, measured " << peak / kMiB << " MiB\n";
  EXPECT_LE(peak, formula);
  EXPECT_GE(peak, formula / 4);
}

TEST(SizingTest, TheGuideSaysTheseFormulas) {
  std::ostringstream guide;
  guide << std::ifstream(PHIMAP_SOURCE_DIR "/docs/operations.md").rdbuf();
  for (const char* formula : kFormulas) {
    EXPECT_NE(guide.str().find(formula), std::string::npos) << formula;
  }
}

}  // namespace
}  // namespace phimap::e2e
