#include "server/inference/inference_repository.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Number of mappings or versions read at a time.
constexpr int kPage = 1000;

// Adds the versions in ascending order. The store returns them in descending order, a page at a
// time.
absl::Status AddVersions(Store& store, const std::string& mapping,
                         std::vector<IndexedVersion>& versions) {
  const auto first = static_cast<std::ptrdiff_t>(versions.size());
  std::optional<int64_t> before;
  do {
    const absl::StatusOr<std::vector<VersionRecord>> page =
        store.ListVersions(mapping, before, kPage);
    // The mapping was deleted after it was listed.
    if (absl::IsNotFound(page.status())) break;
    PHIMAP_RETURN_IF_ERROR(page.status());
    for (const VersionRecord& record : *page) versions.push_back({mapping, record.number});
    before = page->size() < kPage ? std::nullopt : std::optional<int64_t>(page->back().number);
  } while (before.has_value());
  std::reverse(versions.begin() + first, versions.end());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<IndexedVersion>> AllVersions(Store& store) {
  std::vector<IndexedVersion> versions;
  std::string after;
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<MappingRecord> page,
                            store.ListMappings(after, kPage));
    for (const MappingRecord& mapping : page) {
      PHIMAP_RETURN_IF_ERROR(AddVersions(store, mapping.name, versions));
    }
    if (page.size() < kPage) return versions;
    after = page.back().name;
  }
}

}  // namespace

absl::StatusOr<inference::RepositoryIndexResponse> RepositoryIndexOf(
    const inference::RepositoryIndexRequest& request, absl::Span<const IndexedVersion> versions) {
  if (!request.repository_name().empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "PARAMETER_NOT_SUPPORTED",
                     "repository_name",
                     absl::StrCat("the only repository has no name: expected an empty name, got ",
                                  Quoted(request.repository_name())),
                     {{"actual", Excerpt(request.repository_name())}});
  }
  inference::RepositoryIndexResponse response;
  for (const IndexedVersion& version : versions) {
    const bool ready = version.unavailable_because.empty();
    if (request.ready() && !ready) continue;
    auto& model = *response.add_models();
    model.set_name(version.mapping);
    model.set_version(absl::StrCat(version.number));
    model.set_state(ready ? "READY" : "UNAVAILABLE");
    model.set_reason(version.unavailable_because);
  }
  return response;
}

absl::Status ReadRepositoryIndex(Store& store, const inference::RepositoryIndexRequest& request,
                                 inference::RepositoryIndexResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<IndexedVersion> versions, AllVersions(store));
  PHIMAP_ASSIGN_OR_RETURN(*response, RepositoryIndexOf(request, versions));
  return absl::OkStatus();
}

}  // namespace phimap
