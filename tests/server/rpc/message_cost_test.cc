#include "server/rpc/message_cost.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "google/protobuf/struct.pb.h"
#include "inference/inference_service.pb.h"
#include "phimap/rpc/error_details.pb.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"
#include "phimap/v1/transform_service.pb.h"
#include "tests/server/rpc/parse_memory.h"
#include "tests/server/rpc/random_message.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Expects that the cost of `bytes` is at least the peak memory of parsing them. With `two_sided`,
// also expects that the cost is not far above the memory of the parsed message. Returns the cost.
// REQUIRES: `bytes` can be parsed.
template <typename Message>
int64_t ExpectBounded(absl::string_view bytes, bool two_sided = true) {
  static const MessageCost* const kCost = new MessageCost(*Message::descriptor());
  const absl::StatusOr<int64_t> cost = kCost->Of(bytes);
  const ParseMemory memory = MemoryOfParse(Message::default_instance(), bytes);
  EXPECT_TRUE(memory.parsed);
  EXPECT_TRUE(cost.ok()) << cost.status();
  if (!cost.ok()) return 0;
  EXPECT_GE(*cost, memory.peak);
  if (two_sided) {
    EXPECT_LE(*cost, 4 * memory.kept + 1024);
  }
  return *cost;
}

template <typename Message>
int64_t ExpectBounded(const Message& message) {
  return ExpectBounded<Message>(message.SerializeAsString());
}

template <typename Message>
void ExpectMalformed(absl::string_view bytes) {
  EXPECT_EQ(MessageCost(*Message::descriptor()).Of(bytes).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_FALSE(MemoryOfParse(Message::default_instance(), bytes).parsed);
}

std::string Repeated(absl::string_view bytes, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all.append(bytes.data(), bytes.size());
  return all;
}

// Returns a length-delimited field (wire type 2). Its length takes up to four bytes.
std::string Field(int number, absl::string_view contents) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  size_t length = contents.size();
  for (; length >= 0x80; length >>= 7) field.push_back(static_cast<char>(length | 0x80));
  field.push_back(static_cast<char>(length));
  return field.append(contents.data(), contents.size());
}

TEST(MessageCostTest, TransformIsChargedForItsRows) {
  for (int bytes : {0, 1, 15, 16, 29, 30, 31, 256, 8'192, 131'000, 131'072, 1 << 20}) {
    SCOPED_TRACE(bytes);
    v1::TransformRequest request;
    request.set_reference("letter");
    request.mutable_examples()->mutable_dense()->set_rows(1);
    request.mutable_examples()->mutable_dense()->set_columns(bytes / 4);
    request.mutable_examples()->mutable_dense()->set_float32_le(std::string(bytes, 'x'));
    EXPECT_LT(ExpectBounded(request), 1.1 * bytes + 1024);
  }
}

TEST(MessageCostTest, TinyMessagesBecomeLarge) {
  for (int count : {0, 1, 2, 3, 7, 100, 12'345}) {
    SCOPED_TRACE(count);
    ExpectBounded<inference::ModelInferRequest>(Repeated(absl::string_view("\x2a\0", 2), count));
    ExpectBounded<inference::ModelInferRequest>(Repeated(absl::string_view("\x32\0", 2), count));
  }
}

TEST(MessageCostTest, SixteenMebibytesOfTinyElementsAreOverAGibibyte) {
  const std::string bytes = Repeated(absl::string_view("\x2a\0", 2), 8 << 20);
  const MessageCost cost(*inference::ModelInferRequest::descriptor());
  EXPECT_GT(*cost.Of(bytes), int64_t{1} << 30);
}

TEST(MessageCostTest, PackedIntegersGrowEightfold) {
  for (int count : {0, 1, 2, 3, 4, 8, 9, 16, 25, 33, 57, 1'000, 65'536, 65'537, 1'000'000}) {
    SCOPED_TRACE(count);
    const std::string ones(count, '\1');
    for (int number = 1; number <= 5; ++number) {  // bool, int32, int64, uint32, uint64
      ExpectBounded<inference::InferTensorContents>(Field(number, ones));
      // The numbers arrive as two packed blocks and one element that is not packed.
      const std::string block = Field(number, ones);
      const std::string single = {static_cast<char>(number << 3), '\1'};
      ExpectBounded<inference::InferTensorContents>(block + block + single);
    }
  }
  const int64_t cost =
      ExpectBounded<inference::InferTensorContents>(Field(3, std::string(1 << 20, '\1')));
  EXPECT_GE(cost, 8 << 20);
}

TEST(MessageCostTest, LongVarintsAreOneElementEach) {
  const std::string minus_one = Repeated("\xff", 9) + '\1';
  ExpectBounded<inference::InferTensorContents>(Field(3, Repeated(minus_one, 10'000)));
}

TEST(MessageCostTest, FixedNumbersHaveTheirOwnLengthUntilTheyGrow) {
  for (int count : {0, 1, 2, 3, 100, 16'384, 16'385, 100'000}) {
    SCOPED_TRACE(count);
    const std::string floats = Field(6, std::string(4 * count, 'f'));
    const std::string doubles = Field(7, std::string(8 * count, 'f'));
    EXPECT_LT(ExpectBounded<inference::InferTensorContents>(floats), 4.1 * count + 1024);
    ExpectBounded<inference::InferTensorContents>(doubles);
    ExpectBounded<inference::InferTensorContents>(floats + doubles);
    ExpectBounded<inference::InferTensorContents>(floats + Field(6, "1234"));
    ExpectBounded<inference::InferTensorContents>(doubles +
                                                  "\x39"
                                                  "12345678");
    ExpectBounded<inference::InferTensorContents>(
        Repeated("\x35"
                 "1234",
                 count));
  }
}

TEST(MessageCostTest, TextsCostTheirObjectToo) {
  for (int bytes : {0, 1, 15, 16, 100, 5'000}) {
    for (int count : {1, 2, 3, 1'000}) {
      SCOPED_TRACE(::testing::Message() << count << " of " << bytes);
      const std::string field = Field(1, std::string(bytes, 't'));
      ExpectBounded<v1::TextExamples>(Repeated(field, count));
      ExpectBounded<v1::BytesExamples>(Repeated(field, count));
    }
  }
}

TEST(MessageCostTest, MapEntriesAreNodesOfAHashTable) {
  for (int count : {1, 2, 3, 7, 100, 10'000}) {
    for (int bytes : {5, 20, 300}) {
      SCOPED_TRACE(::testing::Message() << count << " of " << bytes);
      rpc::ErrorInfo texts;
      inference::ModelInferRequest messages;
      for (int i = 0; i < count; ++i) {
        std::string key = std::to_string(i);
        key.resize(bytes, 'k');
        (*texts.mutable_metadata())[key] = std::string(bytes, 'v');
        (*messages.mutable_parameters())[key].set_string_param(std::string(bytes, 'v'));
      }
      ExpectBounded(texts);
      ExpectBounded(messages);
    }
  }
}

TEST(MessageCostTest, MapEntriesInUnusualOrderAreParsedTwice) {
  for (int bytes : {0, 20, 1 << 20}) {
    SCOPED_TRACE(bytes);
    const std::string key = Field(1, std::string(bytes, 'k'));
    const std::string value = Field(2, Field(3, std::string(bytes, 'v')));
    for (const std::string& entry : {value + key, value, key, key + value + key, std::string()}) {
      ExpectBounded<inference::ModelInferRequest>(Field(4, entry), false);
    }
  }
}

TEST(MessageCostTest, UnknownFieldsAreKept) {
  const std::string group =
      "\xcb\x01"
      "\x08\x01\x12\x02hi\xcc\x01";
  for (int count : {1, 2, 3, 5, 1'000, 10'000}) {
    SCOPED_TRACE(count);
    ExpectBounded<inference::ServerLiveRequest>(Repeated("\x08\x01", count));
    ExpectBounded<inference::ServerLiveRequest>(
        Repeated("\x35"
                 "1234",
                 count));
    ExpectBounded<inference::ServerLiveRequest>(
        Repeated("\x39"
                 "12345678",
                 count));
    ExpectBounded<inference::ServerLiveRequest>(Repeated(Field(1, "unknown"), count));
    ExpectBounded<inference::ServerLiveRequest>(Repeated(Field(9, std::string(99, 'u')), count));
    ExpectBounded<inference::ServerLiveRequest>(Repeated(group, count));
    // The message has a field with this number, but the wire type belongs to another kind of field.
    ExpectBounded<v1::TransformRequest>(Repeated("\x08\x01", count));
  }
}

// Nesting of depth 100 is the deepest that protobuf parses.
TEST(MessageCostTest, NestingHasProtobufsLimit) {
  std::string value = "\x20\x01";  // a google.protobuf.Value that holds a bool
  // Each round wraps the value in a list, which adds 2 to the depth.
  for (int depth = 0; depth < 100; depth += 2) value = Field(6, Field(1, value));
  ExpectBounded<google::protobuf::Value>(value);
  ExpectMalformed<google::protobuf::Value>(Field(6, Field(1, value)));
  ExpectMalformed<google::protobuf::ListValue>(Field(1, value));

  ExpectBounded<inference::ServerLiveRequest>(Repeated("\x0b", 100) + Repeated("\x0c", 100));
  ExpectMalformed<inference::ServerLiveRequest>(Repeated("\x0b", 101) + Repeated("\x0c", 101));
}

TEST(MessageCostTest, FieldsThatComeAgainAreMerged) {
  const auto examples = [](int bytes) {
    return Field(3, Field(1, Field(3, std::string(bytes, 'x'))));
  };
  // Each string is slightly too long for the capacity left by the previous one, so that the
  // capacity doubles.
  ExpectBounded<v1::TransformRequest>(examples(1'000) + examples(1'001) + examples(2'003), false);
  ExpectBounded<v1::TransformRequest>(
      Field(1, std::string(1'000, 'x')) + Field(1, std::string(1'001, 'x')), false);
  // Both fields belong to the same oneof, so each replaces the other.
  const std::string numbers = Field(3, Field(1, Field(5, Field(1, std::string(800, 'x')))));
  ExpectBounded<v1::TransformRequest>(Repeated(examples(1'000) + numbers, 3), false);
}

TEST(MessageCostTest, BytesThatCannotBeParsedAreMalformed) {
  for (absl::string_view bytes : {
           absl::string_view("\0", 1),      // a tag of 0
           absl::string_view("\x02\0", 2),  // a field of number 0
           absl::string_view("\x0a"),       // no length
           absl::string_view("\x0a\x05"
                             "abc"),                       // truncated
           absl::string_view("\x0a\xff\xff\xff\xff\x0f"),  // a length of 4 GiB
           absl::string_view("\x20"),                      // a missing varint
           absl::string_view(
               "\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),  // a varint that is too long
           absl::string_view("\x0c"),      // the end of a group without its start
           absl::string_view("\x0b"),      // a group without an end
           absl::string_view("\x0b\x14"),  // the end of another group
           absl::string_view("\x0e"),      // wire type 6
           absl::string_view("\x0d"
                             "123"),                       // a truncated fixed-width number
           absl::string_view("\x80\x80\x80\x80\x80\x01"),  // a tag of six bytes
       }) {
    SCOPED_TRACE(::testing::PrintToString(bytes));
    ExpectMalformed<v1::TransformRequest>(bytes);
    ExpectMalformed<v1::TransformRequest>(Field(3, bytes));
  }
  ExpectMalformed<inference::InferTensorContents>("\x0a\x01\x80");
  ExpectMalformed<inference::InferTensorContents>(
      "\x32\x03"
      "123");
  ExpectMalformed<inference::InferTensorContents>(
      "\x3a\x04"
      "1234");
}

template <typename Message>
void ExpectRandomOnesBounded() {
  for (int seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << Message::descriptor()->full_name() << " " << seed);
    Message message;
    RandomMessage(seed).Fill(message, 3);
    ExpectBounded(message);
  }
}

TEST(MessageCostTest, MessagesOfTheApisAreBounded) {
  ExpectRandomOnesBounded<v1::TransformRequest>();
  ExpectRandomOnesBounded<v1::TransformRequest>();
  ExpectRandomOnesBounded<v1::BuildRequest>();
  ExpectRandomOnesBounded<v1::AdviseRequest>();
  ExpectRandomOnesBounded<v1::ImportRequest>();
  ExpectRandomOnesBounded<v1::Version>();
  ExpectRandomOnesBounded<v1::EvaluateRequest>();
  ExpectRandomOnesBounded<inference::ModelInferRequest>();
  ExpectRandomOnesBounded<inference::ModelInferResponse>();
  ExpectRandomOnesBounded<inference::ModelMetadataResponse>();
  ExpectRandomOnesBounded<rpc::BadRequest>();
  ExpectRandomOnesBounded<google::protobuf::Struct>();
}

// The random bytes are chosen among those that occur as tags and lengths in real messages.
TEST(MessageCostTest, RandomBytesThatParseAreBounded) {
  std::mt19937 random(1);
  const std::string alphabet(
      "\x0a\x12\x1a\x22\x2a\x32\x3a\x42\x08\x10\x18\x20\x0b\x0c\0\1\2\3\4\5\6\7", 22);
  int parsed = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string bytes(random() % 24, '\0');
    for (char& byte : bytes) byte = alphabet[random() % alphabet.size()];
    const ParseMemory memory =
        MemoryOfParse(inference::ModelInferRequest::default_instance(), bytes);
    static const MessageCost* const kCost =
        new MessageCost(*inference::ModelInferRequest::descriptor());
    const absl::StatusOr<int64_t> cost = kCost->Of(bytes);
    if (!memory.parsed) continue;
    ++parsed;
    ASSERT_TRUE(cost.ok()) << ::testing::PrintToString(bytes);
    ASSERT_GE(*cost, memory.peak) << ::testing::PrintToString(bytes);
  }
  EXPECT_GT(parsed, 1'000);
}

// A singular field that occurs again adds no memory, but takes time to parse.
TEST(MessageCostTest, CountsFieldsWhateverTheirMemory) {
  const MessageCost cost(*v1::TransformRequest::descriptor());
  v1::TransformRequest request;
  request.set_reference("r");
  const std::string field = request.SerializeAsString();
  EXPECT_TRUE(cost.OfFew(Repeated(field, 10), 10).has_value());
  EXPECT_FALSE(cost.OfFew(Repeated(field, 11), 10).has_value());
  EXPECT_EQ(*cost.Of(Repeated(field, 100'000)), *cost.Of(Repeated(field, 2)));

  v1::TransformRequest nested;
  nested.mutable_examples()->mutable_dense()->set_rows(1);  // two fields around one
  EXPECT_TRUE(cost.OfFew(nested.SerializeAsString(), 3).has_value());
  EXPECT_FALSE(cost.OfFew(nested.SerializeAsString(), 2).has_value());
  EXPECT_EQ(cost.OfFew("\x0a", 10)->status().code(), StatusCode::kInvalidArgument);
}

TEST(MessageCostTest, AllocatesNothing) {
  const MessageCost cost(*inference::ModelInferRequest::descriptor());
  const std::string bytes = Repeated(absl::string_view("\x2a\0", 2), 1'000);
  ResetPeakBytes();
  const int64_t before = HeldBytes();
  ASSERT_TRUE(cost.Of(bytes).ok());
  EXPECT_EQ(PeakBytes(), before);
}

}  // namespace
}  // namespace phimap::testing
