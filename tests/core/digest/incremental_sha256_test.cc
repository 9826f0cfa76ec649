#include <string>

#include "core/digest/sha256.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// The test vector of FIPS 180-2, appendix B.3: a million times "a".
TEST(IncrementalSha256Test, PiecesOfAnySizeGiveThePublishedDigest) {
  const std::string all(1'000'000, 'a');
  for (const size_t piece : {size_t{1}, size_t{63}, size_t{64}, size_t{65'537}, all.size()}) {
    Sha256 hash;
    for (size_t at = 0; at < all.size(); at += piece) {
      hash.Update(absl::string_view(all).substr(at, piece));
    }
    EXPECT_EQ(hash.Hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
        << piece;
  }
  EXPECT_EQ(Sha256().Hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace phimap::testing
