#include "absl/strings/str_cat.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class MappingRpcTest : public ServerFixture {
 protected:
  MappingRpcTest() { Start(); }

  grpc::Status ListVersions(const v1::ListVersionsRequest& request,
                            v1::ListVersionsResponse* response) {
    return mappings_->ListVersions(NewContext(), request, response);
  }
};

TEST_F(MappingRpcTest, MappingsComeInPagesByName) {
  for (const char* name : {"c", "a", "b"}) MustBuild(name);
  std::vector<std::string> names;
  v1::ListMappingsRequest request;
  request.set_page_size(2);
  int pages = 0;
  do {
    v1::ListMappingsResponse response = Answer(&MappingStub::ListMappings, request);
    for (const v1::Mapping& mapping : response.mappings()) names.push_back(mapping.name());
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
  EXPECT_EQ(pages, 2);
}

TEST_F(MappingRpcTest, VersionsComeInPagesNewestFirstWithoutCertificates) {
  for (int i = 0; i < 3; ++i) MustBuild("a");
  auto request = Parsed<v1::ListVersionsRequest>("name: 'a' page_size: 2");
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
  request.set_name("b");  // the page token is for mapping "a"
  EXPECT_EQ(ListVersions(request, &second).error_code(), Code::INVALID_ARGUMENT);
  request.clear_page_token();
  EXPECT_EQ(ListVersions(request, &second).error_code(), Code::NOT_FOUND);
}

TEST_F(MappingRpcTest, BuildsComeInPagesNewestFirst) {
  for (const char* name : {"a", "b", "a", "a"}) MustBuild(name);
  auto request = Parsed<v1::ListBuildsRequest>("name: 'a' page_size: 2");
  std::vector<int64_t> versions;
  int pages = 0;
  do {
    v1::ListBuildsResponse response = Answer(&MappingStub::ListBuilds, request);
    for (const v1::BuildJob& build : response.builds()) {
      EXPECT_EQ(build.name(), "a");
      versions.push_back(build.version().number());
    }
    request.set_page_token(response.next_page_token());
    // A build between two pages changes nothing in the second.
    if (++pages == 1) MustBuild("a");
  } while (!request.page_token().empty());
  EXPECT_THAT(versions, ElementsAre(3, 2, 1));
  EXPECT_EQ(pages, 2);
}

TEST_F(MappingRpcTest, GetVersionHasTheCertificateWhetherLiveOrNot) {
  MustBuild("a");
  const v1::Version stored = Answer(&MappingStub::GetVersion, "reference: 'a'");
  ASSERT_TRUE(Transform(TransformOf("a", UniformExamples(1, 3))).ok());
  const v1::Version live = Answer(&MappingStub::GetVersion, "reference: 'a'");
  EXPECT_EQ(stored.SerializeAsString(), live.SerializeAsString());
  EXPECT_EQ(live.certificate().landmarks(), 5);
}

TEST_F(MappingRpcTest, GetMappingCountsItsVersions) {
  MustBuild("a");
  MustBuild("a");
  const v1::Mapping mapping = Answer(&MappingStub::GetMapping, "name: 'a'");
  EXPECT_EQ(mapping.newest_version(), 2);
  EXPECT_EQ(mapping.version_count(), 2);
}

}  // namespace
}  // namespace phimap::testing
