#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/rpc/framed_message.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr int64_t kLimit = int64_t{1} << 30;

std::string Prefix(uint32_t length, char flag = 0) {
  std::string prefix(1, flag);
  for (int shift : {24, 16, 8, 0}) prefix.push_back(static_cast<char>(length >> shift));
  return prefix;
}

std::string Framed(absl::string_view message) {
  return Prefix(message.size()) + std::string(message);
}

// Feeds `stream` to the reader in chunks of `chunk_bytes` bytes, and appends each complete message
// to `messages`.
void Read(MessageReader& reader, absl::string_view stream, size_t chunk_bytes,
          std::vector<std::string>& messages) {
  while (!stream.empty()) {
    absl::string_view chunk = stream.substr(0, chunk_bytes);
    stream.remove_prefix(chunk.size());
    while (!chunk.empty()) {
      chunk.remove_prefix(reader.TakePrefix(chunk));
      if (!reader.has_prefix()) break;
      chunk.remove_prefix(reader.TakeBody(chunk));
      if (reader.complete()) messages.emplace_back(reader.Release().view());
    }
  }
}

TEST(MessageReaderTest, MessagesDoNotDependOnHowTheStreamIsCut) {
  const std::string long_message(300, 'l');
  const std::string stream =
      Framed("one") + Framed("") + Framed(long_message) + Framed("") + Framed("4");
  for (size_t chunk_bytes = 1; chunk_bytes <= stream.size(); ++chunk_bytes) {
    SCOPED_TRACE(chunk_bytes);
    MessageReader reader(kLimit);
    std::vector<std::string> messages;
    Read(reader, stream, chunk_bytes, messages);
    EXPECT_THAT(messages, ElementsAre("one", "", long_message, "", "4"));
    EXPECT_TRUE(reader.at_boundary());
  }
}

TEST(MessageReaderTest, PrefixIsKnownBeforeAnythingIsAllocated) {
  MessageReader reader(kLimit);
  const std::string stream = Prefix(0x01020304) + "body";
  EXPECT_EQ(reader.TakePrefix(stream.substr(0, 4)), 4);
  EXPECT_FALSE(reader.has_prefix());
  EXPECT_EQ(reader.TakePrefix(stream.substr(4)), 1);
  ASSERT_TRUE(reader.has_prefix());
  EXPECT_EQ(reader.length(), 16'909'060);
  EXPECT_EQ(reader.TakePrefix("body"), 0);
  EXPECT_FALSE(reader.complete());
  EXPECT_EQ(reader.capacity(), 0);
}

TEST(MessageReaderTest, FirstByteSaysWhetherTheMessageIsCompressed) {
  for (const auto& [flag, compressed] : {std::pair('\0', false), {'\1', true}, {'\xff', true}}) {
    MessageReader reader(kLimit);
    reader.TakePrefix(Prefix(0, flag));
    EXPECT_EQ(reader.compressed(), compressed) << int{flag};
  }
}

TEST(MessageReaderTest, LimitIsTheLongestMessage) {
  MessageReader reader(100);
  reader.TakePrefix(Prefix(100));
  EXPECT_FALSE(reader.too_long());
  MessageReader other(100);
  other.TakePrefix(Prefix(101));
  EXPECT_TRUE(other.too_long());
  MessageReader third(100);
  third.TakePrefix(Prefix(0xffffffff));
  EXPECT_TRUE(third.too_long());
}

TEST(MessageReaderTest, EmptyMessageIsCompleteWithItsPrefix) {
  MessageReader reader(0);
  reader.TakePrefix(Prefix(0));
  EXPECT_FALSE(reader.too_long());
  ASSERT_TRUE(reader.complete());
  EXPECT_EQ(reader.TakeBody("next"), 0);
  const MessageBytes message = reader.Release();
  EXPECT_EQ(message.view(), "");
  EXPECT_TRUE(reader.at_boundary());
}

TEST(MessageReaderTest, StreamThatEndsWithinAMessageIsNotAtABoundary) {
  MessageReader reader(kLimit);
  EXPECT_TRUE(reader.at_boundary());
  reader.TakePrefix(absl::string_view("\0", 1));
  EXPECT_FALSE(reader.at_boundary());
  reader.TakePrefix(absl::string_view("\0\0\0\2", 4));
  EXPECT_FALSE(reader.at_boundary());
  reader.TakeBody("a");
  EXPECT_FALSE(reader.at_boundary());
}

TEST(MessageReaderTest, DeclaredGigabyteCostsTwiceWhatArrives) {
  MessageReader reader(kLimit);
  reader.TakePrefix(Prefix(kLimit));
  ASSERT_FALSE(reader.too_long());
  const std::string chunk(16'384, 'x');
  size_t arrived = 0;
  while (arrived < (4 << 20)) {
    arrived += reader.TakeBody(chunk);
    ASSERT_LE(reader.capacity(), std::max<size_t>(64 << 10, 2 * arrived)) << arrived;
    ASSERT_GE(reader.capacity(), arrived);
  }
  EXPECT_FALSE(reader.complete());
}

TEST(MessageReaderTest, BufferIsNeverLongerThanTheMessage) {
  for (size_t length : {1, 100, 65'536, 65'537, 100'000, 1'000'000}) {
    SCOPED_TRACE(length);
    MessageReader reader(kLimit);
    reader.TakePrefix(Prefix(length));
    std::string sent;
    for (size_t i = 0; i < length; ++i) sent.push_back(static_cast<char>(i * 7 + i / 251));
    absl::string_view rest = sent;
    while (!rest.empty()) {
      rest.remove_prefix(reader.TakeBody(rest.substr(0, 10'000)));
      ASSERT_LE(reader.capacity(), length);
    }
    ASSERT_TRUE(reader.complete());
    EXPECT_EQ(reader.capacity(), length);
    const MessageBytes message = reader.Release();
    EXPECT_TRUE(message.view() == sent);
    EXPECT_EQ(reader.capacity(), 0);
  }
}

}  // namespace
}  // namespace phimap::testing
