// Cuts a server's connection to PostgreSQL at its Nth transfer, for all N, during each change of a
// store. While the server cannot connect again, another one changes the same things. What the
// first one then reports about its change must be what happened, and sending the change again must
// not make it a second time.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/store/store.h"
#include "tests/contract/memory_blobs.h"
#include "tests/contract/publish_request.h"
#include "tests/server/store/postgres/postgres_fixture.h"
#include "tests/server/support/cutting_proxy.h"

namespace phimap::testing {
namespace {

struct CutChange {
  const char* name;
  // Makes the change to `mapping`, as the operation `id`.
  std::function<absl::Status(Store&, const std::string& mapping, const std::string& id)> make;
  // Whether the change was made. Asked before another server changes anything.
  std::function<bool(Store&, const std::string& mapping)> happened;
  // What another server does afterwards, so that the tables no longer show the change.
  std::function<void(Store&, const std::string& mapping)> move_on;
};

// The versions live for an hour, so that KeepVersion can extend their life.
PublishRequest ExpiringRequest(const std::string& mapping, const std::string& build_id) {
  PublishRequest request = PublishRequestFor(mapping, build_id);
  request.version.ttl = absl::Hours(1);
  return request;
}

int64_t Insert(Store& catalog, const std::string& mapping, const std::string& build_id) {
  const auto version =
      catalog.Publish(ExpiringRequest(mapping, build_id), absl::StrCat(mapping, build_id));
  EXPECT_TRUE(version.ok()) << version.status();
  return version.ok() ? version->number : 0;
}

void DeleteVersion(Store& catalog, const std::string& mapping, int64_t number) {
  const absl::Status deleted = catalog.DeleteVersion(mapping, number, Rollbacks::kGiveUp, "");
  EXPECT_TRUE(deleted.ok() || absl::IsNotFound(deleted)) << deleted;
}

// Every mapping has versions 1 and 2, and the alias "old" at version 1 unless the change needs
// none.
std::vector<CutChange> Changes() {
  return {
      {"SetAlias",
       [](Store& catalog, const std::string& mapping, const std::string& id) {
         return catalog.SetAlias(mapping, "prod", 2, "none", id).status();
       },
       [](Store& catalog, const std::string& mapping) {
         return catalog.GetAliasedVersion(mapping, "prod").ok();
       },
       [](Store& catalog, const std::string& mapping) {
         EXPECT_TRUE(catalog.SetAlias(mapping, "prod", 1, "", "").ok());
       }},
      {"DeleteAlias",
       [](Store& catalog, const std::string& mapping, const std::string& id) {
         return catalog.DeleteAlias(mapping, "old", "", id);
       },
       [](Store& catalog, const std::string& mapping) {
         return !catalog.GetAliasedVersion(mapping, "old").ok();
       },
       [](Store& catalog, const std::string& mapping) {
         EXPECT_TRUE(catalog.SetAlias(mapping, "old", 2, "", "").ok());
       }},
      {"DeleteVersion",
       [](Store& catalog, const std::string& mapping, const std::string& id) {
         return catalog.DeleteVersion(mapping, 2, Rollbacks::kKeep, id);
       },
       [](Store& catalog, const std::string& mapping) {
         return !catalog.GetVersion(mapping, 2).ok();
       },
       [](Store& catalog, const std::string& mapping) {
         DeleteVersion(catalog, mapping, 2);  // so that it is gone whoever deleted it
       }},
      {"DeleteMapping",
       [](Store& catalog, const std::string& mapping, const std::string& id) {
         return catalog.DeleteMapping(mapping, Occupied::kDelete, id);
       },
       [](Store& catalog, const std::string& mapping) { return !catalog.GetMapping(mapping).ok(); },
       [](Store& catalog, const std::string& mapping) { Insert(catalog, mapping, "since"); }},
      {"KeepVersion",
       [](Store& catalog, const std::string& mapping, const std::string& id) {
         return catalog.KeepVersion(mapping, 2, absl::Hours(2), id).status();
       },
       [](Store& catalog, const std::string& mapping) {
         return catalog.GetVersion(mapping, 2)->ttl == absl::Hours(2);
       },
       [](Store& catalog, const std::string& mapping) {
         EXPECT_TRUE(catalog.KeepVersion(mapping, 2, absl::Hours(3), "").ok());
       }},
      {"Publish",
       [](Store& catalog, const std::string& mapping, const std::string&) {
         return catalog.Publish(ExpiringRequest(mapping, "cut"), "cut").status();
       },
       [](Store& catalog, const std::string& mapping) {
         return catalog.GetBuild(mapping, "cut").ok();
       },
       [](Store& catalog, const std::string& mapping) { DeleteVersion(catalog, mapping, 3); }},
      {"Import",
       [](Store& catalog, const std::string& mapping, const std::string&) {
         return catalog.Import(ExpiringRequest(mapping, "").version, "cut").status();
       },
       [](Store& catalog, const std::string& mapping) {
         return catalog.GetVersion(mapping, 3).ok();
       },
       [](Store& catalog, const std::string& mapping) { DeleteVersion(catalog, mapping, 3); }},
  };
}

class LostAnswerTest : public PostgresTest, public ::testing::WithParamInterface<size_t> {
 protected:
  LostAnswerTest() : direct_(OpenDatabase(), blobs_) {}

  std::unique_ptr<Store> OpenThroughProxy() {
    const std::string uri = absl::StrReplaceAll(
        uri_, {{absl::StrCat(":", server_.port()), absl::StrCat(":", proxy_.port())}});
    auto opened = PostgresDatabase::Open(uri, {.pool = {.first_backoff = absl::Milliseconds(1),
                                                        .longest_backoff = absl::Milliseconds(2)}});
    PHIMAP_CHECK(opened.ok());
    return std::make_unique<Store>(*std::move(opened), blobs_);
  }

  CuttingProxy proxy_{server_.port()};
  const std::shared_ptr<Blobs> blobs_ = std::make_shared<MemoryBlobs>();
  Store direct_;
};

TEST_P(LostAnswerTest, AChangeIsReportedAsItHappenedAndMadeOnce) {
  const CutChange change = Changes()[GetParam()];
  int made = 0;
  bool cut = true;
  for (int n = 0; cut && !HasFailure(); ++n) {
    SCOPED_TRACE(absl::StrCat("transfer ", n));
    const std::string mapping = absl::StrCat("m", n);
    const std::string id = absl::StrCat("id-", n);
    Insert(direct_, mapping, "one");
    Insert(direct_, mapping, "two");
    if (change.name != std::string("DeleteMapping")) {
      ASSERT_TRUE(direct_.SetAlias(mapping, "old", 1, "", "").ok());
    }
    const std::unique_ptr<Store> server = OpenThroughProxy();
    proxy_.CutAt(n, /*for_good=*/true);
    absl::Status status;
    std::atomic<bool> done{false};
    std::thread caller([&] {
      status = change.make(*server, mapping, id);
      done = true;
    });
    while (!proxy_.reached() && !done) std::this_thread::yield();
    cut = proxy_.reached();
    // Nothing is under way between the server and the database now.
    const bool happened = change.happened(direct_, mapping);
    change.move_on(direct_, mapping);
    proxy_.CutAt(-1, /*for_good=*/false);
    caller.join();
    made += cut && happened;
    // A change that was cut before its COMMIT may be made after all, when the server can connect
    // again.
    const bool made_later = !happened && status.ok();
    if (made_later) {
      EXPECT_TRUE(change.happened(direct_, mapping));
    }
    EXPECT_EQ(status.ok(), happened || made_later) << status;
    if (!happened) continue;
    const Revision before = direct_.ChangesSince(Revision())->revision;
    if (change.name == std::string("Publish") || change.name == std::string("Import")) {
      continue;  // These have no id of the caller's.
    }
    EXPECT_TRUE(change.make(direct_, mapping, id).ok());
    EXPECT_EQ(direct_.ChangesSince(Revision())->revision, before);
  }
  // At least the answer of COMMIT itself was lost.
  EXPECT_GE(made, 1);
}

INSTANTIATE_TEST_SUITE_P(AllChanges, LostAnswerTest, ::testing::Range(size_t{0}, Changes().size()),
                         [](const ::testing::TestParamInfo<size_t>& info) {
                           return Changes()[info.param].name;
                         });

}  // namespace
}  // namespace phimap::testing
