#include "absl/strings/str_cat.h"
#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = grpc::StatusCode;

class MappingRpcTest : public ServerFixture {
 protected:
  MappingRpcTest() { Start(); }

  grpc::Status ListVersions(const v1::ListVersionsRequest& request,
                            v1::ListVersionsResponse* response) {
    grpc::ClientContext context;
    return mappings_->ListVersions(&context, request, response);
  }
};

TEST_F(MappingRpcTest, MappingsComeInPagesByName) {
  for (const char* name : {"c", "a", "b"}) MustBuild(name);
  std::vector<std::string> names;
  v1::ListMappingsRequest request;
  request.set_page_size(2);
  int pages = 0;
  do {
    v1::ListMappingsResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(mappings_->ListMappings(&context, request, &response).ok());
    for (const v1::Mapping& mapping : response.mappings()) names.push_back(mapping.name());
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
  EXPECT_EQ(pages, 2);
  request.set_page_token("nonsense");
  v1::ListMappingsResponse response;
  grpc::ClientContext context;
  const grpc::Status bad = mappings_->ListMappings(&context, request, &response);
  EXPECT_EQ(bad.error_code(), Code::INVALID_ARGUMENT);
  EXPECT_EQ(FactsOf(bad).field, "page_token");
}

TEST_F(MappingRpcTest, VersionsComeInPagesNewestFirstWithoutCertificates) {
  for (int i = 0; i < 3; ++i) MustBuild("a");
  v1::ListVersionsRequest request;
  request.set_mapping("a");
  request.set_page_size(2);
  v1::ListVersionsResponse first;
  ASSERT_TRUE(ListVersions(request, &first).ok());
  ASSERT_EQ(first.versions_size(), 2);
  EXPECT_EQ(first.versions(0).ref().number(), 3);
  EXPECT_FALSE(first.versions(0).has_certificate());
  request.set_page_token(first.next_page_token());
  v1::ListVersionsResponse second;
  ASSERT_TRUE(ListVersions(request, &second).ok());
  ASSERT_EQ(second.versions_size(), 1);
  EXPECT_EQ(second.versions(0).ref().number(), 1);
  EXPECT_EQ(second.next_page_token(), "");
  request.set_mapping("b");  // the page token is for mapping "a"
  EXPECT_EQ(ListVersions(request, &second).error_code(), Code::INVALID_ARGUMENT);
  request.clear_page_token();
  EXPECT_EQ(ListVersions(request, &second).error_code(), Code::NOT_FOUND);
}

TEST_F(MappingRpcTest, GetVersionHasTheCertificateWhetherLiveOrNot) {
  MustBuild("a");
  v1::GetVersionRequest request;
  request.set_reference("a");
  v1::Version stored;
  grpc::ClientContext stored_context;
  ASSERT_TRUE(mappings_->GetVersion(&stored_context, request, &stored).ok());
  v1::TransformRequest transform;
  transform.set_reference("a");
  *transform.mutable_examples() = UniformExamples(1, 3);
  v1::TransformResponse features;
  ASSERT_TRUE(Transform(transform, &features).ok());
  v1::Version live;
  grpc::ClientContext live_context;
  ASSERT_TRUE(mappings_->GetVersion(&live_context, request, &live).ok());
  EXPECT_EQ(stored.SerializeAsString(), live.SerializeAsString());
  EXPECT_EQ(live.certificate().landmarks(), 5);
}

TEST_F(MappingRpcTest, GetMappingCountsItsVersions) {
  MustBuild("a");
  MustBuild("a");
  v1::GetMappingRequest request;
  request.set_mapping("a");
  v1::Mapping mapping;
  grpc::ClientContext context;
  ASSERT_TRUE(mappings_->GetMapping(&context, request, &mapping).ok());
  EXPECT_EQ(mapping.newest_version(), 2);
  EXPECT_EQ(mapping.version_count(), 2);
  request.set_mapping("b");
  grpc::ClientContext unknown;
  EXPECT_EQ(mappings_->GetMapping(&unknown, request, &mapping).error_code(), Code::NOT_FOUND);
}

}  // namespace
}  // namespace phimap::testing
