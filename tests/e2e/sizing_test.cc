// Tests the formulas under "Sizing" in docs/operations/size.md against the memory that a server
// takes.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "phimap/v1/transform_service.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/support/matchers.h"
#include "tests/support/source_dir.h"

namespace phimap::e2e {
namespace {

constexpr double kMiB = 1 << 20;
// Memory of the libraries, the threads and the first allocations of each kind.
constexpr double kBaseBytes = 64 * kMiB;
constexpr int32_t kColumns = 256;
constexpr int64_t kRows = 10'000;
constexpr int64_t kFloatBytes = 4;
// Memory that a connection keeps for frames that it reads or sends.
constexpr double kConnectionBytes = kMiB / 2;

// The formulas, written as in docs/operations/size.md. The functions below compute their values.
constexpr const char* kFormulas[] = {
    "F1  s·d·p",
    "F2  s·(d·p + d²/2)",
    "F3  s·(d·p + d·k)",
    "memory ≤ 64 MiB + 1.25·live + memory_bytes + builds + connections·0.5 MiB",
    "8·pool·(p + 1) + 16·d² + 24·d·(p + max(d/2, k)) + 24·held_out·(p + features)",
};

struct Shape {
  const char* name;
  std::string mapping;
  // d is the number of landmarks that the mapping keeps. k is the number of features of an f3
  // mapping.
  double d = 0;
  double k = 0;
};

double LiveBytes(const Shape& shape) {
  const std::string kind = shape.mapping.substr(0, 2);
  if (kind == "f1") return kFloatBytes * shape.d * kColumns;
  if (kind == "f2") return kFloatBytes * (shape.d * kColumns + shape.d * shape.d / 2);
  return kFloatBytes * (shape.d * kColumns + shape.d * shape.k);
}

// Returns the value of the formula for a build. REQUIRES: all rows of the stream fit into the pool.
double BuildBytes(const Shape& shape) {
  const double features = shape.k > 0 ? shape.k : shape.d;
  return 8.0 * kRows * (kColumns + 1) + 16 * shape.d * shape.d +
         24 * shape.d * (kColumns + std::max(shape.d / 2, shape.k)) +
         24.0 * kRows / 10 * (kColumns + features);
}

v1::Version MustBuild(client::Client& client, const Shape& shape) {
  GeneratedRows rows(kRows, kColumns, 1);
  const auto version =
      client.Build({.name = shape.name, .spec = shape.mapping, .kernel = "rbf(gamma=scale)"}, rows);
  EXPECT_TRUE(version.ok()) << version.status();
  return version.value_or(v1::Version());
}

// Makes the server load the version, by mapping one row.
void Load(const ServerProcess& server, const Shape& shape) {
  const std::vector<float> row(kColumns, 0.5f);
  const auto result =
      server.Connect()
          ->Transform(shape.name, client::MakeRowBlock(absl::MakeConstSpan(row), kColumns))
          .value();
}

// Memory for code pages and buffers that the first call needs. Measured: 3.5 MiB.
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

// The tests below use this memory budget for requests and answers, and a version of 2 MB. For a
// request of half a megabyte, this version makes an answer of 4 MB.
constexpr int64_t kMemoryBytes = 64 << 20;
constexpr int32_t kRequestRows = 512;
const Shape& Wide() {
  static const Shape* const shape =
      new Shape{"one", "f1(landmarks=2000, serving_type=float32)", 2000};
  return *shape;
}

void ExpectWithinFormula(const char* what, const ServerProcess& server, int connections) {
  const double formula = kBaseBytes + 1.25 * LiveBytes(Wide()) + kMemoryBytes +
                         static_cast<double>(connections) * kConnectionBytes;
  const double peak = static_cast<double>(server.PeakMemoryBytes());
  std::cout << what << ": formula " << formula / kMiB << " MiB, measured " << peak / kMiB
            << " MiB\n";
  EXPECT_LE(peak, formula);
  EXPECT_GE(peak, formula / 4);
}

// A store that contains the version of Wide(). Start() starts a server on this store with the
// budget kMemoryBytes. The server does not load the version at its start.
class BudgetTest : public ::testing::Test {
 protected:
  BudgetTest() { MustBuild(*ServerProcess(folder_.path()).Connect(), Wide()); }

  std::unique_ptr<ServerProcess> Start() const {
    return std::make_unique<ServerProcess>(
        folder_.path(), std::vector<std::string>{absl::StrCat("--memory_bytes=", kMemoryBytes)});
  }

  TemporaryFolder folder_;
};

// The requests and answers of all callers together exceed the budget, and the callers do not pause
// after a refusal.
TEST_F(BudgetTest, OverloadTakesNoMoreThanTheFormulaSays) {
  const auto server = Start();
  const ProcessResult bench =
      RunProcess({PHIMAP_BINARY, "--server=" + server->address(), "bench", Wide().name,
                  "--callers=48", absl::StrCat("--rows=", kRequestRows), "--channels=4",
                  "--seconds=1", "--warmup=0", "--timeout=60"});
  EXPECT_THAT(bench.out + bench.err, HasSubstr("RESOURCE_EXHAUSTED"));
  ExpectWithinFormula("overload", *server, 4);
}

v1::DenseRows LargeRows() {
  v1::DenseRows rows;
  rows.set_rows(kRequestRows);
  rows.set_columns(kColumns);
  rows.set_float32_le(std::string(size_t{kRequestRows} * kColumns * kFloatBytes, '\0'));
  return rows;
}

// The calls arrive before their version is loaded. Each has 47 MB, so only one at a time fits into
// the budget.
TEST_F(BudgetTest, RequestsForAColdVersionTakeNoMoreThanTheFormulaSays) {
  constexpr int kCallers = 16;
  constexpr int32_t kManyRows = 45'000;
  const auto server = Start();
  const std::vector<float> rows(size_t{kManyRows} * kColumns, 0.5f);
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      // The features would not fit into a message, so the calls fail. The test thus measures only
      // the memory of the requests.
      const auto result = server->Connect()->Transform(
          Wide().name, client::MakeRowBlock(absl::MakeConstSpan(rows), kColumns));
      EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
    });
  }
  for (std::thread& caller : callers) caller.join();
  ExpectWithinFormula("cold version", *server, kCallers);
}

// The clients of 40 streams send as much as flow control allows, and read nothing. Each stream has
// up to 20 answers of 4 MB.
TEST_F(BudgetTest, StreamsThatAreNeverReadTakeNoMoreThanTheFormulaSays) {
  constexpr int kStreams = 40;
  const auto server = Start();
  Load(*server, Wide());
  const auto stub = v1::TransformService::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  v1::TransformRequest request;
  request.set_reference(Wide().name);
  *request.mutable_examples()->mutable_dense() = LargeRows();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::thread> writers;
  for (int i = 0; i < kStreams; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    writers.emplace_back([&, context = contexts.back().get()] {
      const auto stream = stub->TransformStream(context);
      v1::TransformRequest mine = request;
      for (int sent = 0; sent < 20 && stream->Write(mine); ++sent) mine.clear_reference();
      stream->Finish();
    });
  }
  // Waits until the budget was full for a round of scrapes, or the server maps no more rows.
  const auto mapped = [&] { return MetricOf(*server, "phimap_transform_rows_total"); };
  double before = 0;
  double most_held = 0;
  bool full = false;
  do {
    full = most_held >= 0.9 * kMemoryBytes;
    before = mapped();
    // Each scrape takes a round trip, during which other requests are served or refused.
    for (int i = 0; i < 200; ++i) {
      most_held = std::max(most_held, MetricOf(*server, "phimap_request_memory_bytes"));
    }
  } while (!full && (mapped() > before || most_held == 0));
  EXPECT_GE(most_held, kMemoryBytes / 2);
  for (const auto& context : contexts) context->TryCancel();
  for (std::thread& writer : writers) writer.join();
  ExpectWithinFormula("unread streams", *server, 2);
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
  guide << std::ifstream(testing::SourcePath("docs/operations/size.md")).rdbuf();
  for (const char* formula : kFormulas) {
    EXPECT_NE(guide.str().find(formula), std::string::npos) << formula;
  }
}

}  // namespace
}  // namespace phimap::e2e
