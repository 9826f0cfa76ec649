// Tests that the includes of the real tree follow the order of dependence that the documentation
// describes, and that a line that breaks a rule is found.
#include "tests/core/structure/include_rules.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/source_dir.h"

namespace phimap::testing {
namespace {

using phimap::testing::Includes;
using phimap::testing::Violations;

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

// Each case adds a line that breaks one rule to the includes of the real tree.
TEST(IncludeRulesTest, EachRuleFailsOnALineThatBreaksIt) {
  struct Case {
    const char* file;
    const char* includes;
    const char* says;
  };
  const Case kCases[] = {
      {"core/plan/plan.h", "grpcpp/grpcpp.h", "core/ must not include"},
      {"core/status/error.cc", "google/protobuf/message.h", "core/ must not include"},
      {"core/mapping/sample/gamma.cc", "sqlite3.h", "core/ must not include"},
      {"core/mapping/sample/gamma.cc", "libpq-fe.h", "core/ must not include"},
      {"core/engine/engine.cc", "prometheus/counter.h", "core/ must not include"},
      {"core/plan/rows.h", "phimap/v1/mapping.pb.h", "core/ must not include"},
      {"core/plan/rows.h", "inference/inference_service.pb.h", "core/ must not include"},
      {"core/plan/rows.h", "proto/phimap/v1/mapping.pb.h", "core/ must not include"},
      {"core/plan/rows.h", "server/transform/row_messages.h", "core/ must not include"},
      {"core/status/error.h", "core/linalg/matrix.h", "later in the order"},
      {"core/linalg/matrix.h", "core/random/random_stream.h", "later in the order"},
      {"core/engine/engine.h", "core/landmark/split.h", "later in the order"},
      {"core/landmark/split.cc", "core/certificate/certificate.h", "later in the order"},
      {"core/learn/learner.h", "core/drift/drift_test.h", "core/learn must not include"},
      {"core/learn/x.cc", "core/mapping/spec/build_spec.h", "core/learn must not include"},
      {"core/mapping/build/x.cc", "core/learn/learner.h", "later in the order"},
      {"core/mapping/spec/x.cc", "core/mapping/builder_parts/plan_pair.h", "later in the order"},
      {"core/mapping/f1_f2_f3/x.cc", "core/mapping/kernel_pca/kernel_pca.h", "later in the order"},
      {"core/mapping/tools/x.cc", "string", "only in folders that are in kMappingOrder"},
      {"core/mapping/x.cc", "string", "only in folders that are in kMappingOrder"},
      {"core/train/x.cc", "core/feature_map/feature_map.h", "later in the order"},
      {"core/linalg/pivoted_cholesky.cc", "cblas.h", "only core/linalg/blas.cc may include"},
      {"server/build/x.cc", "lapacke.h", "only core/linalg/blas.cc may include"},
      {"core/kernel/kernel_block.cc", "openblas/cblas.h", "only core/linalg/blas.cc may include"},
      {"core/helpers/strings.h", "string", "core/helpers is not in kCoreOrder"},
      {"client/cli/x.cc", "server/transform/row_messages.h", "client/ must not include server/"},
      {"client/cli/x.cc", "core/plan/rows.h", "only status, thread and digest of core/"},
      {"client/cpp/x.cc", "client/files/csv_reader.h", "later in the order"},
      {"client/files/x.cc", "client/cli/arguments/input_rows.h", "later in the order"},
      {"client/cli/views/x.cc", "client/cli/commands/commands.h", "later in the order"},
      {"client/cli/bench/x.cc", "client/cli/commands/commands.h", "later in the order"},
      {"client/cli/commands/x.cc", "client/cli/usage.h", "later in the order"},
      {"server/mapping/x.cc", "client/cpp/client.h", "server/ must not include client/"},
      {"server/main.cc", "client/cpp/client.h", "server/ must not include client/"},
      {"server/rpc/x.cc", "grpcpp/support/status.h", "only server/kernel"},
      {"server/rpc/x.h", "phimap/v1/transform_service.grpc.pb.h", "only server/kernel"},
      {"server/rpc/x.cc", "grpc++/grpc++.h", "only server/kernel"},
      {"server/rpc/transport/x.cc", "grpc/grpc.h", "only server/kernel"},
      {"server/server.cc", "grpcpp/server_builder.h", "only server/kernel"},
      {"server/observe/x.h", "server/admission/role.h", "later in the order"},
      {"server/store/x.h", "server/store/sqlite/y.h", "later in the order"},
      {"server/store/files/x.h", "server/store/sqlite/y.h", "later in the order"},
      {"server/schedule/x.cc", "server/rpc/transport/stream.h", "later in the order"},
      {"server/rpc/transport/x.h", "server/rpc/call.h", "later in the order"},
      {"server/rpc/x.cc", "server/transform/row_server.h", "later in the order"},
      {"server/registry/x.cc", "server/build/build_manager.h", "later in the order"},
      {"server/transform/x.cc", "server/mapping/request_fields.h", "later in the order"},
      {"server/inference/x.cc", "server/options.h", "must not include files at its top"},
      {"server/calls/x.cc", "string", "server/calls is not in kServerOrder"},
      {"core/plan/artifact.cc", "proto/chunk/artifact_chunk.h", "core/ must not include"},
      {"proto/artifact/x.cc", "server/store/store.h", "proto/ must not include"},
      {"proto/artifact/x.h", "client/cpp/client.h", "proto/ must not include"},
      {"proto/artifact/x.cc", "core/mapping/spec/build_spec.h",
       "only status, digest, plan, head and certificate of core/"},
      {"proto/artifact/x.cc", "proto/calls/specs.h", "later in the order"},
      {"client/cpp/x.cc", "client/local/local_job.h", "later in the order"},
      {"client/cpp/x.cc", "core/feature_map/feature_map.h",
       "only status, thread and digest of core/"},
      {"client/cpp/x.cc", "core/thread/mutex.h", "the C++ client must not reach"},
      {"client/cpp/x.cc", "core/status/command_line.h", "the C++ client must not reach"},
      {"client/cpp/x.h", "proto/artifact/head_description.h", "the C++ client must not reach"},
      {"client/cpp/x.h", "inference/inference_service.pb.h", "the C++ client must not reach"},
      {"client/cpp/x.h", "grpc/health/v1/health.pb.h", "the C++ client must not reach"},
      {"core/digest/sha256.h", "core/thread/mutex.h", "artifact_calls.cc -> core/digest/sha256.h"},
      {"proto/chunk/x.cc", "core/plan/byte_codec.h", "only status and digest of core/"},
      {"client/cli/arguments/x.cc", "client/cli/local/local_maps.h", "later in the order"},
      {"core/plan/plan.cc", "tests/support/plans.h", "the product must not include"},
      {"client/cli/main.cc", "bench/bars.h", "the product must not include"},
      {"bench/bars.cc", "tests/support/plans.h", "only tests may include tests/"},
      {"lab/learning.cc", "server/options.h", "lab/ must not include server/ or bench/"},
      {"lab/letter/letter_data.cc", "lab/learning.h", "later in the order"},
      {"lab/learning.cc", "lab/experiments/face.h", "later in the order"},
      {"bench/bars.cc", "lab/learning.h", "bench/ must not include"},
      {"tests/support/plans.cc", "server/options.h", "tests/support may include only"},
      {"tests/support/plans.cc", "tests/core/mapping/builds.h", "tests/support may include only"},
      {"tests/core/plan/plan_test.cc", "client/cpp/client.h", "tests/core must not include"},
      {"tests/client/x_test.cc", "server/options.h", "tests/client must not include server/"},
      {"core/status/error.h", "core/status/error.h", "in a cycle"},
      {"core/plan/rows.h", "core/plan/examples.h", "in a cycle"},
      {"server/schedule/x.cc", "core/mapping/build/version_build.h", "serves Transform"},
      {"server/registry/x.h", "core/certificate/certificate.h", "serves Transform"},
      {"server/transform/x.cc", "core/landmark/reservoir.h", "serves Transform"},
      {"server/transform/x.cc", "core/mapping/build/version_build.h", "serves Transform"},
      {"server/inference/x.cc", "core/certificate/certificate.h", "serves Transform"},
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
        << c.file << " including " << c.includes << ": expected '" << c.says << "'";
  }
}

TEST(IncludeRulesTest, ACircleIsNamedFromItsFirstFile) {
  const Includes tree = {{"core/plan/a.h", {"core/plan/b.h"}},
                         {"core/plan/b.h", {"core/plan/c.h", "vector"}},
                         {"core/plan/c.h", {"core/plan/b.h"}}};
  EXPECT_THAT(Violations(tree), ElementsAre("core/plan/b.h -> core/plan/c.h -> core/plan/b.h: "
                                            "files include each other in a cycle"));
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
      {"client/cli/commands/x.cc", {"client/cli/views/y.h", "proto/chunk/artifact_chunk.h"}},
      {"client/cli/main.cc", {"client/cli/commands/commands.h"}},
      {"client/cpp/x.cc",
       {"core/digest/sha256.h", "core/status/error.h", "proto/chunk/artifact_chunk.h",
        "phimap/v1/mapping.pb.h", "grpcpp/grpcpp.h"}},
      {"server/store/x.cc", {"core/digest/sha256.h"}},
      {"server/kernel_client/x.cc",
       {"grpcpp/grpcpp.h", "core/thread/mutex.h", "server/kernel_client/y.h"}},
      {"server/rpc/x.h", {"grpc/health/v1/health.pb.h", "server/rpc/call.h"}},
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
}  // namespace phimap::testing
