#include "core/digest/named_columns.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Expected values: python3 -c "import hashlib, struct;
// print(int.from_bytes(hashlib.sha256(b''.join( struct.pack('<I', len(n)) + n for n in [b'a',
// 'größe'.encode()])).digest()[:8], 'little'))"
TEST(NamedColumnsTest, TheHashIsTheOneThatTheApiDescribes) {
  EXPECT_EQ(ColumnNamesHash({"a",
                             "gr\xc3\xb6\xc3\x9f"
                             "e"}),
            12647707465618955174u);
  EXPECT_EQ(ColumnNamesHash({"x1", "x2", "x3"}), 7180399303787394807u);
}

TEST(NamedColumnsTest, OrderCutAndNumberOfNamesCount) {
  EXPECT_EQ(ColumnNamesHash({}), 0u);
  EXPECT_NE(ColumnNamesHash({"a", "b"}), ColumnNamesHash({"b", "a"}));
  EXPECT_NE(ColumnNamesHash({"ab", "c"}), ColumnNamesHash({"a", "bc"}));
  EXPECT_NE(ColumnNamesHash({"a"}), ColumnNamesHash({"a", "b"}));
}

TEST(NamedColumnsTest, ManyNamesAreShownInPart) {
  EXPECT_EQ(ShownColumnNames({"a", "b"}), "\"a\", \"b\"");
  EXPECT_THAT(ShownColumnNames(std::vector<std::string>(1000, "c")), EndsWith(" and 960 more"));
  EXPECT_EQ(ShownColumnNames({"a", "b", "c"}, 2), "\"a\", \"b\" and 1 more");
}

}  // namespace
}  // namespace phimap::testing
