#include <array>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/rpc/transport/channel.h"

namespace phimap::testing {
namespace {

std::string FrontOf(const OutputQueue& queue) {
  std::array<iovec, 64> pieces;
  const int count = queue.Front(absl::MakeSpan(pieces));
  std::string front;
  for (int i = 0; i < count; ++i) {
    front.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  }
  return front;
}

TEST(OutputQueueTest, GivesWhatWasAppendedInOrderHoweverItIsTaken) {
  std::mt19937_64 random(11);
  OutputQueue queue;
  std::string expected;
  char next = 'a';
  for (int step = 0; step < 3'000; ++step) {
    if (random() % 2 == 0) {
      const size_t size = random() % 20 == 0 ? random() % 30'000 : random() % 300;
      const std::string text(size, next);
      next = next == 'z' ? 'a' : static_cast<char>(next + 1);
      expected += text;
      if (random() % 2 == 0) {
        queue.Append(text);
      } else {
        const auto owner = std::make_shared<OutputText>("head" + text);
        queue.Append(owner, owner->bytes().substr(4));
      }
    } else {
      const std::string front = FrontOf(queue);
      ASSERT_EQ(front, expected.substr(0, front.size()));
      ASSERT_EQ(front.empty(), expected.empty());
      const size_t taken = front.empty() ? 0 : random() % (front.size() + 1);
      queue.Pop(taken);
      expected.erase(0, taken);
    }
    ASSERT_EQ(queue.size(), expected.size());
    ASSERT_EQ(queue.empty(), expected.empty());
  }
}

TEST(OutputQueueTest, KeepsLargeBytesWhereTheyAreUntilTheLastIsSent) {
  auto owner = std::make_shared<OutputText>(std::string(OutputQueue::kCopiedBytes, 'x'));
  const std::weak_ptr<OutputText> watch = owner;
  const char* const place = owner->bytes().data();
  OutputQueue queue;
  queue.Append(owner, owner->bytes());
  owner.reset();
  std::array<iovec, 1> piece;
  ASSERT_EQ(queue.Front(absl::MakeSpan(piece)), 1);
  EXPECT_EQ(piece[0].iov_base, place);
  queue.Pop(OutputQueue::kCopiedBytes - 1);
  EXPECT_FALSE(watch.expired());
  queue.Pop(1);
  EXPECT_TRUE(watch.expired());
}

TEST(OutputQueueTest, CopiesSmallBytesAndLetsTheirOwnerGo) {
  auto owner = std::make_shared<OutputText>(std::string(OutputQueue::kCopiedBytes - 1, 'x'));
  const std::weak_ptr<OutputText> watch = owner;
  OutputQueue queue;
  queue.Append(owner, owner->bytes());
  owner.reset();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(queue.size(), OutputQueue::kCopiedBytes - 1);
}

}  // namespace
}  // namespace phimap::testing
