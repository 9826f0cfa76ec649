// The layout that the documentation describes is the layout that the code has.
#include "tests/core/structure/include_rules.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/source_dir.h"

namespace phimap {
namespace {

using phimap::testing::Includes;
using phimap::testing::Violations;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Includes& Tree() {
  static const Includes* const tree = new Includes(phimap::testing::IncludesUnder(
      std::filesystem::canonical(phimap::testing::SourcePath()).string()));
  return *tree;
}

TEST(IncludeRulesTest, TheTreeHasNoViolation) {
  EXPECT_GT(Tree().size(), 50u);
  EXPECT_TRUE(Tree().contains("core/engine/engine.cc"));
  EXPECT_TRUE(Tree().contains("core/linalg/blas.cc"));
  EXPECT_TRUE(Tree().contains("tests/support/plans.h"));
  EXPECT_TRUE(Tree().contains("lab/phimap_lab.cc"));
  EXPECT_THAT(Violations(Tree()), IsEmpty());
}

// Each rule finds a line that breaks it, put into the real tree.
TEST(IncludeRulesTest, EachRuleFailsOnALineThatBreaksIt) {
  struct Case {
    const char* file;
    const char* includes;
    const char* says;
  };
  const Case kCases[] = {
      {"core/plan/plan.h", "grpcpp/grpcpp.h", "core/ knows nothing of it"},
      {"core/status/error.cc", "google/protobuf/message.h", "core/ knows nothing of it"},
      {"core/mapping/sample/gamma.cc", "sqlite3.h", "core/ knows nothing of it"},
      {"core/mapping/sample/gamma.cc", "libpq-fe.h", "core/ knows nothing of it"},
      {"core/engine/engine.cc", "prometheus/counter.h", "core/ knows nothing of it"},
      {"core/plan/rows.h", "phimap/v1/mapping.pb.h", "core/ knows nothing of it"},
      {"core/plan/rows.h", "inference/inference_service.pb.h", "core/ knows nothing of it"},
      {"core/plan/rows.h", "proto/phimap/v1/mapping.pb.h", "core/ knows nothing of it"},
      {"core/plan/rows.h", "server/transform/limits.h", "core/ knows nothing of it"},
      {"core/status/error.h", "core/linalg/matrix.h", "it points up"},
      {"core/linalg/matrix.h", "core/random/philox.h", "it points up"},
      {"core/engine/engine.h", "core/landmark/split.h", "it points up"},
      {"core/landmark/split.cc", "core/certificate/certificate.h", "it points up"},
      {"core/learn/learner.h", "core/engine/engine.h", "how its features came about"},
      {"core/learn/x.cc", "core/mapping/spec/build_spec.h", "how its features came about"},
      {"core/mapping/build/x.cc", "core/learn/learner.h", "it points up"},
      {"core/mapping/spec/x.cc", "core/mapping/builder/plan_pair.h", "it points up"},
      {"core/mapping/landmarks/x.cc", "core/mapping/kernel_pca/kernel_pca.h", "it points up"},
      {"core/mapping/tools/x.cc", "string", "folders alone that have a place"},
      {"core/mapping/x.cc", "string", "folders alone that have a place"},
      {"core/learn/x.cc", "core/binding/engine_binding.h", "it points up"},
      {"core/linalg/pivoted_cholesky.cc", "cblas.h", "only core/linalg/blas.cc may"},
      {"server/build/x.cc", "lapacke.h", "only core/linalg/blas.cc may"},
      {"core/kernel/kernel_block.cc", "openblas/cblas.h", "only core/linalg/blas.cc may"},
      {"core/helpers/strings.h", "string", "core/helpers has no place"},
      {"client/cli/x.cc", "server/transform/limits.h", "the server's inside"},
      {"client/cli/x.cc", "core/plan/rows.h", "status, thread and digest only"},
      {"client/cpp/x.cc", "client/files/csv_reader.h", "it points up"},
      {"client/files/x.cc", "client/cli/arguments/input_rows.h", "it points up"},
      {"client/cli/views/x.cc", "client/cli/commands/keep_command.h", "it points up"},
      {"client/cli/bench/x.cc", "client/cli/commands/command.h", "it points up"},
      {"client/cli/commands/x.cc", "client/cli/usage.h", "it points up"},
      {"server/mapping/x.cc", "client/cpp/client.h", "its clients"},
      {"server/main.cc", "client/cpp/client.h", "its clients"},
      {"server/calls/x.cc", "grpcpp/support/status.h", "only server/kernel"},
      {"server/calls/x.h", "phimap/v1/transform_service.grpc.pb.h", "only server/kernel"},
      {"server/health/x.cc", "grpc++/grpc++.h", "only server/kernel"},
      {"server/transport/x.cc", "grpc/grpc.h", "only server/kernel"},
      {"server/server.cc", "grpcpp/server_builder.h", "only server/kernel"},
      {"server/sync/mutex.h", "server/observe/log.h", "it points up"},
      {"server/schedule/x.cc", "server/transport/stream.h", "it points up"},
      {"server/transport/x.h", "server/calls/call.h", "it points up"},
      {"server/calls/x.cc", "server/serving/row_server.h", "it points up"},
      {"server/registry/x.cc", "server/build/build_manager.h", "it points up"},
      {"server/transform/x.cc", "server/mapping/page_token.h", "it points up"},
      {"server/inference/x.cc", "server/options.h", "what composes the server"},
      {"server/rpc/x.cc", "string", "server/rpc has no place"},
      {"core/plan/artifact.cc", "proto/artifact/artifact_chunk.h", "core/ knows nothing of it"},
      {"proto/artifact/x.cc", "server/store/store.h", "both ends build on it"},
      {"proto/artifact/x.h", "client/cpp/client.h", "both ends build on it"},
      {"proto/artifact/x.cc", "core/mapping/spec/build_spec.h",
       "it sees status, digest, plan and certificate only"},
      {"core/plan/plan.cc", "tests/support/plans.h", "the product knows nothing of it"},
      {"client/cli/main.cc", "bench/bars.h", "the product knows nothing of it"},
      {"bench/bars.cc", "tests/support/plans.h", "only tests see tests"},
      {"lab/learning.cc", "server/options.h", "the laboratory is a user"},
      {"lab/letter/letter_data.cc", "lab/learning.h", "it points up"},
      {"lab/learning.cc", "lab/experiments/face.h", "it points up"},
      {"bench/bars.cc", "lab/learning.h", "a benchmark needs none of it"},
      {"tests/support/plans.cc", "server/options.h", "rests on core/ alone"},
      {"tests/support/plans.cc", "tests/core/mapping/builds.h", "rests on core/ alone"},
      {"tests/core/plan/plan_test.cc", "client/cpp/client.h", "see core/ alone"},
      {"tests/client/x_test.cc", "server/options.h", "the server's inside"},
      {"core/status/error.h", "core/status/error.h", "in a circle"},
      {"core/plan/rows.h", "core/plan/examples.h", "in a circle"},
      {"server/schedule/x.cc", "core/mapping/build/version_build.h", "Transform path"},
      {"server/registry/x.h", "core/certificate/certificate.h", "Transform path"},
      {"server/serving/x.cc", "core/landmark/reservoir.h", "Transform path"},
      {"server/transform/x.cc", "core/mapping/build/version_build.h", "Transform path"},
      {"server/inference/x.cc", "core/certificate/certificate.h", "Transform path"},
  };
  for (const Case& c : kCases) {
    Includes tree = Tree();
    tree[c.file].push_back(c.includes);
    const std::vector<std::string> violations = Violations(tree);
    EXPECT_TRUE(std::any_of(violations.begin(), violations.end(),
                            [&](const std::string& v) {
                              return v.find(c.says) != std::string::npos &&
                                     v.find(c.includes) != std::string::npos;
                            }))
        << c.file << " with " << c.includes;
  }
}

TEST(IncludeRulesTest, ACircleIsNamedFromItsFirstFile) {
  const Includes tree = {{"core/plan/a.h", {"core/plan/b.h"}},
                         {"core/plan/b.h", {"core/plan/c.h", "vector"}},
                         {"core/plan/c.h", {"core/plan/b.h"}}};
  EXPECT_THAT(Violations(tree), ElementsAre("core/plan/b.h -> core/plan/c.h -> core/plan/b.h: "
                                            "files include each other in a circle"));
}

TEST(IncludeRulesTest, TransformPathIsFollowedThroughHeaders) {
  const Includes tree = {{"server/schedule/queue.cc", {"server/schedule/queue.h", "vector"}},
                         {"server/schedule/queue.h", {"server/observe/metrics.h"}},
                         {"server/observe/metrics.h", {"core/mapping/spec/build_spec.h"}}};
  EXPECT_THAT(Violations(tree),
              ElementsAre(HasSubstr("queue.cc -> server/schedule/queue.h -> "
                                    "server/observe/metrics.h -> core/mapping/spec/build_spec.h"),
                          HasSubstr("queue.h -> server/observe/metrics.h")));
}

TEST(IncludeRulesTest, WhatIsAllowedIsNotReported) {
  const Includes tree = {
      {"core/linalg/blas.cc", {"cblas.h", "lapacke.h", "core/linalg/blas.h"}},
      {"core/mapping/build/x.cc",
       {"core/certificate/certificate.h", "core/landmark/y.h", "hwy/highway.h"}},
      {"client/cli/x.cc",
       {"core/status/error.h", "proto/phimap/v1/mapping.pb.h", "grpcpp/grpcpp.h"}},
      {"server/build/x.cc", {"core/mapping/build/version_build.h", "proto/phimap/v1/mapping.pb.h"}},
      {"proto/artifact/x.cc", {"core/certificate/certificate.h", "phimap/v1/mapping.pb.h"}},
      {"client/cli/commands/x.cc", {"client/cli/views/y.h", "proto/artifact/artifact_chunk.h"}},
      {"client/cli/main.cc", {"client/cli/commands/list_command.h"}},
      {"client/cpp/x.cc", {"core/digest/sha256.h"}},
      {"server/store/x.cc", {"core/digest/sha256.h"}},
      {"server/kernel_client/x.cc",
       {"grpcpp/grpcpp.h", "server/sync/mutex.h", "server/kernel_client/y.h"}},
      {"server/health/x.h", {"grpc/health/v1/health.pb.h", "server/calls/call.h"}},
      {"server/main.cc", {"server/server.h", "server/inference/inference_service.h"}},
      {"server/schedule/x.cc", {"core/engine/engine.h", "core/kernel/kernel_program.h"}}};
  EXPECT_THAT(Violations(tree), IsEmpty());
}

TEST(IncludeRulesTest, EveryFormOfAnIncludeLineIsSeen) {
  EXPECT_THAT(phimap::testing::IncludesOf("#include \"a.h\"\n  #  include<b.h>  // why\n"
                                          "#include \"c.h\"  // IWYU\n// #include \"no.h\"\n"
                                          "#define X \"no.h\"\n#include MACRO\n#include \"open\n"),
              ElementsAre("a.h", "b.h", "c.h"));
}

}  // namespace
}  // namespace phimap
