#include "server/rpc/call.h"

#include <algorithm>
#include <string>

#include "tests/server/rpc/call_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class CallsTest : public CallTest {};

TEST_F(CallsTest, UnaryCallIsAnswered) {
  auto& answer = Answer(kUnary, Named("x"));
  EXPECT_EQ(answer.headers[":status"], "200");
  EXPECT_EQ(answer.headers["content-type"], "application/grpc");
  EXPECT_EQ(CodeOf(answer), 0);
  EXPECT_TRUE(answer.has_trailers);
  // The message has SERVING in field 1, as the varint 1.
  EXPECT_EQ(answer.body, GrpcFrame("\x08\x01"));
  EXPECT_EQ(answer.data_frames, 1);
}

TEST_F(CallsTest, ErrorHasItsMessagePercentEncodedInOneFrame) {
  auto& answer = Answer(kUnary, Named("fail"));
  EXPECT_EQ(CodeOf(answer), kNotFound);
  EXPECT_EQ(ReasonOf(answer), "NOT_THERE");
  EXPECT_EQ(answer.headers["grpc-message"], "service: 100 %25 %C3%A4%0A");
  EXPECT_FALSE(answer.has_trailers);
}

TEST_F(CallsTest, MessageThatComesByteByByteIsOneMessage) {
  const int32_t stream = client_->Call(kUnary);
  for (const char byte : Named("x")) {
    client_->Send(stream, std::string(1, byte));
    ASSERT_TRUE(client_->RoundTrip());
  }
  client_->Send(stream, "", /*end=*/true);
  ASSERT_TRUE(client_->AwaitEnd(stream));
  EXPECT_EQ(CodeOf(client_->answer(stream)), 0);
}

TEST_F(CallsTest, MessagesThatCannotBeTakenAreRefusedInWords) {
  const std::string large(kMaxMessageBytes + 1, '\0');
  struct Case {
    const char* what;
    std::string body;
    int code;
    const char* reason;
  };
  const Case cases[] = {
      {"compressed without saying how", GrpcFrame("\x0a\x01x", /*compressed=*/true), kInternal,
       "ENCODING_MISSING"},
      {"too large", GrpcFrame(large), kResourceExhausted, "MESSAGE_TOO_LARGE"},
      {"too large, of which nothing comes", GrpcFrame(large).substr(0, 5), kResourceExhausted,
       "MESSAGE_TOO_LARGE"},
      {"no message", "", kUnimplemented, "MESSAGE_COUNT_WRONG"},
      {"two messages", Named("x") + Named("y"), kUnimplemented, "MESSAGE_COUNT_WRONG"},
      {"half a message too many", Named("x") + Named("y").substr(0, 3), kUnimplemented,
       "MESSAGE_COUNT_WRONG"},
      {"cut off in the prefix", Named("x").substr(0, 4), kInvalidArgument, "REQUEST_TRUNCATED"},
      {"cut off in the message", Named("x").substr(0, 7), kInvalidArgument, "REQUEST_TRUNCATED"},
      {"no message of its type", GrpcFrame("\x0a\x05x"), kInvalidArgument, "REQUEST_MALFORMED"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    auto& answer = Answer(kUnary, c.body);
    EXPECT_EQ(CodeOf(answer), c.code);
    EXPECT_EQ(ReasonOf(answer), c.reason);
  }
  EXPECT_EQ(log_.messages, 0);
}

// Each pair of bytes is an unknown field. Parsed, it takes more than ten times as much memory. A
// message of half a million such fields is refused before it is parsed, although nothing else uses
// the budget of 8 MiB.
TEST_F(CallsTest, AMessageThatGrowsBeyondTheBudgetIsRefusedBeforeItIsParsed) {
  const auto fields = [](int count) {
    std::string message;
    for (int i = 0; i < count; ++i) message.append("\x10\x00", 2);
    return GrpcFrame(message);
  };
  EXPECT_EQ(CodeOf(Answer(kUnary, fields(50'000))), 0);
  auto& refused = Answer(kUnary, fields(kMaxMessageBytes / 2));
  EXPECT_EQ(CodeOf(refused), kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), "MESSAGE_TOO_LARGE");
  EXPECT_EQ(log_.messages, 1);
}

TEST_F(CallsTest, LargestMessageIsTaken) {
  // The 4 bytes subtracted are the field's tag and its length, which takes three bytes.
  const std::string text(kMaxMessageBytes - 4, 'x');
  auto& answer = Answer(kUnary, Named(text));
  EXPECT_EQ(CodeOf(answer), 0);
  EXPECT_EQ(log_.messages, 1);
  EXPECT_EQ(CodeOf(Answer(kUnary, Named(text + "x"))), kResourceExhausted);
}

// The second message comes when the first has long been read.
TEST_F(CallsTest, SecondMessageToAUnaryCallRefusesIt) {
  const int32_t stream = client_->Call(kUnary);
  client_->Send(stream, Named("x"), /*end=*/false);
  ASSERT_TRUE(client_->RoundTrip());
  EXPECT_EQ(log_.messages, 0);
  client_->Send(stream, Named("y"), /*end=*/true);
  ASSERT_TRUE(client_->AwaitEnd(stream));
  EXPECT_EQ(CodeOf(client_->answer(stream)), kUnimplemented);
  EXPECT_EQ(ReasonOf(client_->answer(stream)), "MESSAGE_COUNT_WRONG");
  EXPECT_EQ(log_.messages, 0);
}

TEST_F(CallsTest, CancelOfTheClientEndsTheCallOnce) {
  const int32_t stream = client_->Call(kUnary);
  client_->Send(stream, Named("wait"), /*end=*/true);
  ASSERT_TRUE(RunUntil([&] { return log_.messages == 1; }));
  EXPECT_EQ(log_.ended, 0);
  client_->Reset(stream);
  ASSERT_TRUE(RunUntil([&] { return log_.ended == 1; }));
  EXPECT_EQ(log_.last_end, StatusCode::kCancelled);
}

TEST_F(CallsTest, CancelBeforeTheMessageIsComplete) {
  const int32_t stream = client_->Call(kUnary);
  client_->Send(stream, Named("wait").substr(0, 6));
  ASSERT_TRUE(RunUntil([&] { return log_.begun == 1; }));
  client_->Reset(stream);
  ASSERT_TRUE(RunUntil([&] { return log_.ended == 1; }));
  EXPECT_EQ(log_.messages, 0);
}

TEST_F(CallsTest, EndOfTheConnectionEndsItsCalls) {
  for (int i = 0; i < 10; ++i) client_->Send(client_->Call(kUnary), Named("wait"), /*end=*/true);
  ASSERT_TRUE(RunUntil([&] { return log_.messages == 10; }));
  client_.reset();
  server_->AwaitNoConnections();
  EXPECT_EQ(log_.ended, 10);
}

TEST_F(CallsTest, DeadlineEndsTheCall) {
  auto& answer = Answer(kUnary, Named("wait"), {{"grpc-timeout", "30m"}});
  EXPECT_EQ(CodeOf(answer), kDeadlineExceeded);
  EXPECT_EQ(log_.ended, 1);
}

TEST_F(CallsTest, DeadlineOfZeroEndsACallThatIsAnsweredAtOnce) {
  for (const std::string none : {"0n", "0H", "1n"}) {
    EXPECT_EQ(CodeOf(Answer(kUnary, Named("x"), {{"grpc-timeout", none}})), kDeadlineExceeded)
        << none;
  }
  EXPECT_EQ(log_.messages, 0);
}

TEST_F(CallsTest, DeadlineEndsACallWhoseMessageDoesNotCome) {
  const int32_t stream = client_->Call(kUnary, {{"grpc-timeout", "30m"}});
  ASSERT_TRUE(client_->AwaitEnd(stream));
  EXPECT_EQ(CodeOf(client_->answer(stream)), kDeadlineExceeded);
}

TEST_F(CallsTest, StreamAnswersEachMessageInOrder) {
  const int32_t stream = client_->Call(kStream);
  std::string body;
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    body += ToHost(std::to_string(i));
    ServerReflectionResponse response;
    response.set_valid_host(std::to_string(i));
    expected += GrpcFrame(response.SerializeAsString());
  }
  client_->Send(stream, body, /*end=*/true);
  ASSERT_TRUE(client_->AwaitEnd(stream));
  EXPECT_EQ(client_->answer(stream).body, expected);
  EXPECT_EQ(CodeOf(client_->answer(stream)), 0);
}

TEST_F(CallsTest, StreamsOfLargeMessagesPassThroughTheBudget) {
  // Eight such messages at once would need twice the memory budget.
  const std::string host(kMaxMessageBytes - 100, 'h');
  std::vector<int32_t> streams;
  for (int i = 0; i < 8; ++i) {
    streams.push_back(client_->Call(kStream));
    client_->Send(streams.back(), ToHost(host) + ToHost(host), /*end=*/true);
  }
  for (const int32_t stream : streams) {
    ASSERT_TRUE(client_->AwaitEnd(stream));
    EXPECT_EQ(CodeOf(client_->answer(stream)), 0);
    EXPECT_GT(client_->answer(stream).body.size(), 2 * log_.answer_bytes);
  }
  EXPECT_EQ(log_.messages, 16);
}

// A parsed message takes 1 MiB, and reading the next message needs 2 MiB. If streams kept the
// messages that they have answered, seven streams would fill the 8 MiB.
TEST_F(CallsTest, StreamsThatAreSilentHoldNoMemory) {
  const std::string host(kMaxMessageBytes - 100, 'h');
  std::vector<int32_t> streams;
  for (int i = 0; i < 20; ++i) {
    const int32_t stream = client_->Call(kStream);
    streams.push_back(stream);
    client_->Send(stream, ToHost(host));
    ASSERT_TRUE(client_->RunUntil([&] {
      return client_->answer(stream).body.size() > log_.answer_bytes;
    })) << i;
  }
  ASSERT_TRUE(client_->RoundTrip());
  // The pool destroys the last messages, and returns their charge after that.
  for (int i = 0; i < 10'000 && memory_.held_bytes() >= (64 << 10); ++i) client_->RoundTrip();
  EXPECT_LT(memory_.held_bytes(), 64 << 10);
  for (const int32_t stream : streams) client_->Send(stream, "", /*end=*/true);
  for (const int32_t stream : streams) ASSERT_TRUE(client_->AwaitEnd(stream));
}

TEST_F(CallsTest, StreamWithoutMessagesEndsWell) {
  EXPECT_EQ(CodeOf(Answer(kStream, "")), 0);
  EXPECT_EQ(log_.messages, 0);
}

TEST_F(CallsTest, StreamIsAnsweredUpToAMessageThatCannotBeTaken) {
  auto& answer = Answer(kStream, ToHost("a") + GrpcFrame("x", /*compressed=*/true));
  EXPECT_EQ(CodeOf(answer), kInternal);
  EXPECT_EQ(ReasonOf(answer), "ENCODING_MISSING");
  EXPECT_EQ(log_.messages, 1);
  EXPECT_FALSE(answer.body.empty());
}

// Tests of messages that have arrived only in part, while other messages wait for memory.
class HalfMessageTest : public CallsTest {
 protected:
  static constexpr auto kTime = absl::Milliseconds(400);

  HalfMessageTest() {
    environment_.half_message_time = kTime;
    environment_.slowest_bytes_per_second = 10;
  }

  // Sends only the beginning of a message. Returns once the message is charged to the memory
  // budget.
  int32_t BeginHalf() {
    const int64_t before = memory_.held_bytes();
    const int32_t stream = client_->Call(kStream);
    client_->Send(stream, Whole().substr(0, 1000));
    EXPECT_TRUE(RunUntil([&] { return memory_.held_bytes() > before + kMaxMessageBytes; }));
    return stream;
  }
  std::string Whole() { return ToHost(std::string(kMaxMessageBytes - 100, 'h')); }
  // Returns once the time `timeout` has passed. The server runs its timers meanwhile.
  void Pass(const std::string& timeout) {
    EXPECT_EQ(CodeOf(Answer(kUnary, Named("wait"), {{"grpc-timeout", timeout}})),
              kDeadlineExceeded);
  }
  bool Ended(int32_t stream) { return client_->answer(stream).ended; }
};

TEST_F(HalfMessageTest, IsLeftInPeaceWhileNobodyWaitsForMemoryAndGivesWayThen) {
  // Each unfinished message holds a little over a quarter of the memory budget.
  const int32_t halves[] = {BeginHalf(), BeginHalf(), BeginHalf()};
  Pass("1000m");
  for (const int32_t half : halves) EXPECT_FALSE(Ended(half));
  const int32_t waits = client_->Call(kStream);
  client_->Send(waits, Whole(), /*end=*/true);
  ASSERT_TRUE(client_->AwaitEnd(waits));
  EXPECT_EQ(CodeOf(client_->answer(waits)), 0);
  ASSERT_TRUE(
      client_->RunUntil([&] { return Ended(halves[0]) || Ended(halves[1]) || Ended(halves[2]); }));
  for (const int32_t half : halves) {
    if (!Ended(half)) continue;
    EXPECT_EQ(CodeOf(client_->answer(half)), kDeadlineExceeded);
    EXPECT_EQ(ReasonOf(client_->answer(half)), "REQUEST_TOO_SLOW");
  }
}

TEST_F(HalfMessageTest, GivesWayToWhoWasRefused) {
  const int32_t half = BeginHalf();
  const auto others =
      memory_.TakeUnconditionally(nullptr, memory_.max_bytes() - memory_.held_bytes());
  auto& refused = Answer(kUnary, Named(std::string(1000, 'x')));
  EXPECT_EQ(ReasonOf(refused), "REQUEST_MEMORY_FULL");
  ASSERT_TRUE(client_->AwaitEnd(half));
  EXPECT_EQ(ReasonOf(client_->answer(half)), "REQUEST_TOO_SLOW");
  EXPECT_EQ(memory_.held_bytes(), others.bytes());
}

// Who holds over half of the budget is looked at after a fifth of the time, in the order in which
// the messages began: first one that keeps four times the pace that is wanted, 1 MiB in six times
// this time, and then one that stands still.
TEST_F(HalfMessageTest, ThatGoesOnComingIsLeftInPeace) {
  // So long that a pause of this test's thread does not slow the message down too much.
  constexpr auto kLong = absl::Seconds(4);
  environment_.half_message_time = kLong;
  const int32_t fills = BeginHalf();
  const int32_t comes = BeginHalf();
  const int32_t stands = BeginHalf();
  const auto others =
      memory_.TakeUnconditionally(nullptr, memory_.max_bytes() - memory_.held_bytes() - (64 << 10));
  // The memory that is left suffices only for the small calls that Pass makes.
  const int32_t waits = client_->Call(kStream);
  client_->Send(waits, Whole());
  const std::string rest = Whole().substr(1000);
  const absl::Time began = absl::Now();
  size_t sent = 0;
  while (!Ended(stands)) {
    ASSERT_LT(sent, rest.size()) << "the message that stands still was left in peace";
    const double due =
        4 * absl::FDivDuration(absl::Now() - began, 6 * kLong) * static_cast<double>(rest.size());
    const size_t until = std::min(rest.size(), static_cast<size_t>(due));
    if (until > sent) client_->Send(comes, rest.substr(sent, until - sent));
    sent = std::max(sent, until);
    Pass("20m");
  }
  EXPECT_EQ(ReasonOf(client_->answer(stands)), "REQUEST_TOO_SLOW");
  EXPECT_FALSE(Ended(comes)) << client_->answer(comes).headers["grpc-message"];
  client_->Send(comes, rest.substr(sent), /*end=*/true);
  ASSERT_TRUE(client_->AwaitEnd(comes));
  EXPECT_EQ(CodeOf(client_->answer(comes)), 0);
  client_->Reset(waits);
  client_->Reset(fills);
}

// The client takes a thousand bytes at a time: it reads something in each period, but an answer of
// 1 MiB would hold its memory for many of them.
TEST_F(HalfMessageTest, AnAnswerThatIsReadSlowlyGivesWayToWhoWasRefused) {
  log_.answer_bytes = kMaxMessageBytes;
  RawHttp2Client reader(server_->Connect(), {.consumes = false});
  const int32_t slow = reader.Call(kStream);
  reader.Send(slow, Whole(), /*end=*/true);
  ASSERT_TRUE(reader.RunUntil([&] { return reader.answer(slow).body.size() == 65535; }));
  const auto read = [&] {
    reader.AddWindow(slow, 1000);
    Pass("20m");
    EXPECT_TRUE(reader.RoundTrip());
  };
  for (const absl::Time until = absl::Now() + 3 * kTime; absl::Now() < until;) read();
  EXPECT_FALSE(reader.answer(slow).ended) << "nobody waits for its memory";

  const auto others =
      memory_.TakeUnconditionally(nullptr, memory_.max_bytes() - memory_.held_bytes() - (64 << 10));
  const int32_t waits = client_->Call(kStream);
  client_->Send(waits, Whole(), /*end=*/true);
  while (!reader.answer(slow).ended) {
    ASSERT_LT(reader.answer(slow).body.size(), kMaxMessageBytes / 2) << "it was left to read on";
    read();
  }
  EXPECT_EQ(reader.answer(slow).reset, NGHTTP2_CANCEL);
  client_->Reset(waits);
}

TEST_F(CallsTest, SilentStreamIsEnded) {
  log_.idle_limit = absl::Milliseconds(50);
  const int32_t stream = client_->Call(kStream);
  client_->Send(stream, ToHost("a"));
  ASSERT_TRUE(client_->AwaitEnd(stream));
  EXPECT_EQ(CodeOf(client_->answer(stream)), kDeadlineExceeded);
  EXPECT_EQ(ReasonOf(client_->answer(stream)), "STREAM_IDLE");
  EXPECT_EQ(log_.messages, 1);
}

TEST_F(CallsTest, StreamThatIsNeverSilentForLongButSlowIsEnded) {
  log_.idle_limit = absl::Milliseconds(200);
  // If 2^30 bytes per second are required, a message of a few bytes is due at once. If 1 byte per
  // second is required, the message may take seconds.
  for (const auto& [pace, code] : {std::pair{int64_t{1} << 30, kDeadlineExceeded}, {1, 0}}) {
    log_.slowest_bytes_per_second = pace;
    const int32_t stream = client_->Call(kStream);
    const auto ended = [&] { return client_->answer(stream).ended; };
    // Each message is sent as soon as the one before is answered: the stream is never silent for
    // 200 ms, although it lasts longer than 200 ms.
    const absl::Time enough = absl::Now() + (code == 0 ? absl::Seconds(1) : absl::Seconds(60));
    while (absl::Now() < enough && !ended()) {
      const size_t answered = client_->answer(stream).body.size();
      client_->Send(stream, ToHost("a"));
      client_->RunUntil([&] { return client_->answer(stream).body.size() > answered || ended(); });
    }
    client_->Send(stream, "", /*end=*/true);
    ASSERT_TRUE(client_->AwaitEnd(stream));
    EXPECT_EQ(CodeOf(client_->answer(stream)), code);
    if (code != 0) {
      EXPECT_EQ(ReasonOf(client_->answer(stream)), "STREAM_TOO_SLOW");
    }
  }
}

TEST_F(CallsTest, StreamWhoseAnswersAreNotTakenIsBroken) {
  log_.idle_limit = absl::Milliseconds(50);
  RawHttp2Client reader(server_->Connect(), {.stream_window = 1000, .consumes = false});
  const int32_t stream = reader.Call(kStream);
  reader.Send(stream, ToHost(std::string(10'000, 'h')));
  ASSERT_TRUE(reader.AwaitEnd(stream));
  EXPECT_EQ(reader.answer(stream).reset, NGHTTP2_CANCEL);
  EXPECT_EQ(log_.last_end, StatusCode::kDeadlineExceeded);
}

TEST_F(CallsTest, ServerThatGoesEndsAllCalls) {
  const int32_t unary = client_->Call(kUnary);
  client_->Send(unary, Named("wait"), /*end=*/true);
  ASSERT_TRUE(RunUntil([&] { return log_.messages == 1; }));
  server_->Run([] { Call::CancelAllCalls(); });
  ASSERT_TRUE(client_->AwaitEnd(unary));
  EXPECT_EQ(ReasonOf(client_->answer(unary)), "SERVER_SHUTTING_DOWN");
}

}  // namespace
}  // namespace phimap::testing
