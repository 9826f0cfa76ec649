#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

constexpr int kDraws = 1 << 20;

// The first eight numbers of a stream, which must never change (invariant I1).
struct Golden {
  uint64_t seed;
  StreamId stream;
  uint64_t bits[8];
  double uniform[8];
  uint64_t below[8];  // below 3·2^62, for which a quarter of the draws is rejected
  double normal[8];
};
const Golden kGolden[] = {
    {0x0,
     StreamId::kReservoir,
     {0xf08d6eaa844515e1, 0x83f875f00f19c053, 0xd9c77dedca7cf69e, 0x6d658f407e66d954,
      0xbe4bbd74c5fa1393, 0xa9b66da0357557cc, 0xa003a1da22686e8f, 0x33c36e5e50f1eac8},
     {0x1.e11add55088a3p-1, 0x1.07f0ebe01e339p-1, 0x1.b38efbdb94f9fp-1, 0x1.b5963d01f99b6p-2,
      0x1.7c977ae98bf43p-1, 0x1.536cdb406aeabp-1, 0x1.400743b444d0dp-1, 0x1.9e1b72f2878f4p-3},
     {0xb46a12ffe333d068, 0x62fa58740b53503e, 0xa3559e7257ddb8f6, 0x5d0179661da5d492,
      0x8eb8ce17947b8eae, 0xa7d29fd86461959f, 0x7802b96399ce52eb, 0x1926f576e94381d3},
     {0x1.8d49f46dce2bcp+0, 0x1.3e91006bfb1f3p-5, 0x1.0a18d52edbdf6p+0, -0x1.7723b0d7637dcp-3,
      0x1.4eb009ee8b3f3p-1, 0x1.ae978d09dadbap-2, 0x1.466fb6a8bf82cp-2, -0x1.aae5ffb5a07bp-1}},
    {0x1,
     StreamId::kSplit,
     {0x8cedc5d3e73404cf, 0x0a0afddd3f071736, 0xdb04b052b7b4c173, 0x0e0b3cf344541f91,
      0x5a8567b393ef3e55, 0x7e9e77d3a12d4446, 0x663eff4fde08bf52, 0xbdd5e5488759c4e2},
     {0x1.19db8ba7ce681p-1, 0x1.415fbba7e0e3p-5, 0x1.b60960a56f699p-1, 0x1.c1679e688a83p-5,
      0x1.6a159ece4fbcep-2, 0x1.fa79df4e84b52p-2, 0x1.98fbfd3f7822ep-2, 0x1.7babca910eb39p-1},
     {0x69b2545eed67039b, 0x07883e65ef455168, 0xa443843e09c79116, 0x0a886db6733f17ac,
      0x43e40dc6aef36ebf, 0x5ef6d9deb8e1f334, 0x4caf3f7be6868f7d, 0x8e606bf6658353a9},
     {0x1.03f53c060c806p-3, -0x1.c27b05a2b94cbp+0, 0x1.0f7c9ba47b30cp+0, -0x1.99765973d5d2fp+0,
      -0x1.80a3aa1c956e5p-2, -0x1.bb199de4f7d6p-7, -0x1.050575a865c16p-2, 0x1.4bd5dc684fc59p-1}},
    {0x2a,
     StreamId::kLandmarks,
     {0x72148a910a51a6b2, 0x99205bc7b918c659, 0x1d91b19b85a8df3c, 0x3faa46e6a9b1302c,
      0xe58a6d8c5229c193, 0x9e988ed9821f0d02, 0xb83e95863d0acc33, 0x5c5dfb0ae363ba7b},
     {0x1.c8522a442946ap-2, 0x1.3240b78f72319p-1, 0x1.d91b19b85a8d8p-4, 0x1.fd5237354d89cp-3,
      0x1.cb14db18a4539p-1, 0x1.3d311db3043e1p-1, 0x1.707d2b0c7a159p-1, 0x1.7177ec2b8d8eep-2},
     {0x558f67ecc7bd3d05, 0x72d844d5cad294c2, 0xb13b75a39ba7a093, 0x906481b9a494695f,
      0xac27d2293d9f512e, 0x76f26b23219749c1, 0x8a2ef024adc81926, 0x45467c482a8acbdc},
     {-0x1.1800d24500022p-3, 0x1.fd0dcf1bdf552p-3, -0x1.32a0b14bcc579p+0, -0x1.5b72fd770c535p-1,
      0x1.433d63f55e291p+0, 0x1.378258dccbde7p-2, 0x1.29f7598772792p-1, -0x1.6cd927605b88p-2}},
    {0xdeadbeefcafef00d,
     StreamId::kProjection,
     {0xf16c904f1bb17971, 0x1a5c74a6a0604351, 0x5857d17dcf1abfe3, 0x34c05b4f50a6273a,
      0x5727554cf5d5f362, 0x1914e9ff7b503ba7, 0x4197dad2041b3a26, 0xb171dd1d48997ba1},
     {0x1.e2d9209e3762fp-1, 0x1.a5c74a6a06048p-4, 0x1.615f45f73c6aep-2, 0x1.a602da7a85314p-3,
      0x1.5c9d5533d757ep-2, 0x1.914e9ff7b5038p-4, 0x1.065f6b48106cep-2, 0x1.62e3ba3a9132fp-1},
     {0xb5116c3b54c51b14, 0x13c5577cf848327c, 0x4241dd1e5b540fea, 0x2790447b7c7c9d6b,
      0x415d7ff9b8607689, 0x12cfaf7f9c7c2cbd, 0x3131e41d83146b9c, 0x851565d5f6731cb8},
     {0x1.94bd75864df64p+0, -0x1.43c94b6c391b7p+0, -0x1.982d6df58ff6fp-2, -0x1.a3ed142fc57d4p-1,
      -0x1.a51f361e2803ap-2, -0x1.4b0d7a4c271fbp+0, -0x1.4f607027ee39bp-1, 0x1.0272a8174a4dfp-1}},
    {0x7,
     StreamId::kGammaPairs,
     {0xe4004707356ef799, 0x80b68a5d6ef5b09a, 0x1185adf093e8b666, 0xe4f32fe23d0365aa,
      0xf067c294d8bf218e, 0xa61b11da9b487511, 0xd15c55fc6e5bf2ec, 0x7c25694bcad98875},
     {0x1.c8008e0e6addfp-1, 0x1.016d14baddeb7p-1, 0x1.185adf093e8b8p-4, 0x1.c9e65fc47a06dp-1,
      0x1.e0cf8529b17e5p-1, 0x1.4c3623b53690fp-1, 0x1.a2b8abf8dcb7fp-1, 0x1.f095a52f2b662p-2},
     {0xab003545681339b2, 0x6088e7c613384473, 0x0d2442746eee88cc, 0xabb663e9adc28c3f,
      0xb44dd1efa28f592a, 0x7c944d63f47657cc, 0x9e0e145ce2cd6ff1, 0x5d1c0ef8d8232657},
     {0x1.3ad981582aac9p+0, 0x1.c9909b153a75p-8, -0x1.7cca7f870fcbfp+0, 0x1.3ffacd68f497ep+0,
      0x1.8c104760ca002p+0, 0x1.87646ddbed199p-2, 0x1.d06b841469c0bp-1, -0x1.3533253ccd22dp-5}},
};

TEST(RandomStreamTest, NumbersNeverChange) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.seed);
    const RandomStream stream(golden.seed, golden.stream);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(stream.Bits64(i), golden.bits[i]) << i;
      EXPECT_EQ(stream.UniformOpen01(i), golden.uniform[i]) << i;
      EXPECT_EQ(stream.UniformBelow(i, uint64_t{3} << 62), golden.below[i]) << i;
      EXPECT_EQ(stream.Normal(i), golden.normal[i]) << i;
    }
  }
}

TEST(RandomStreamTest, LayoutIsTheDocumentedOne) {
  const uint64_t seed = 0x0123456789abcdef;
  const uint64_t index = 0xfedcba9876543210;
  const PhiloxBlock block =
      Philox4x32({0x89abcdef, 0x01234567},
                 {static_cast<uint32_t>(index >> 1), static_cast<uint32_t>(index >> 33), 4, 0});
  const RandomStream stream(seed, StreamId::kProjection);
  EXPECT_EQ(stream.Bits64(index), block[0] | (uint64_t{block[1]} << 32));
  EXPECT_EQ(stream.Bits64(index + 1), block[2] | (uint64_t{block[3]} << 32));
}

TEST(RandomStreamTest, CursorReadsTheStreamInOrder) {
  const RandomStream stream(5, StreamId::kSplit);
  RandomCursor cursor(stream, 10);
  EXPECT_EQ(cursor.Bits64(), stream.Bits64(10));
  EXPECT_EQ(cursor.UniformOpen01(), stream.UniformOpen01(11));
  EXPECT_EQ(cursor.UniformBelow(7), stream.UniformBelow(12, 7));
  EXPECT_EQ(cursor.Normal(), stream.Normal(13));
  EXPECT_EQ(cursor.position(), 14);
}

// Tests n uniform numbers. Their mean is 1/2 ± 6·√(1/12/n) and their variance 1/12 ± 6·√(1/180/n),
// with six standard deviations each. D is the Kolmogorov–Smirnov distance from the uniform
// distribution. P(D > t) ≤ 2·exp(−2nt²) (Massart). For t = √(ln(1e9)/(2n)) this probability is
// 2e-9, as for six standard deviations on two sides. The seed is fixed, so a failure is a bug and
// not bad luck.
TEST(RandomStreamTest, UniformHasItsMomentsAndDistribution) {
  const RandomStream stream(11, StreamId::kReservoir);
  std::vector<double> values(kDraws);
  double sum = 0, sum_squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    values[i] = stream.UniformOpen01(i);
    ASSERT_GT(values[i], 0);
    ASSERT_LT(values[i], 1);
    sum += values[i] - 0.5;
    sum_squares += (values[i] - 0.5) * (values[i] - 0.5);
  }
  EXPECT_LE(std::abs(sum / kDraws), 6 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_LE(std::abs(sum_squares / kDraws - 1.0 / 12), 6 * std::sqrt(1.0 / 180 / kDraws));
  std::sort(values.begin(), values.end());
  double distance = 0;
  for (int i = 0; i < kDraws; ++i) {
    distance = std::max({distance, (i + 1.0) / kDraws - values[i], values[i] - 1.0 * i / kDraws});
  }
  EXPECT_LE(distance, std::sqrt(std::log(1e9) / (2.0 * kDraws)));
}

// For n normal numbers, the variances of the first four sample moments are 1/n, 2/n, 15/n and 96/n.
// The expected moments are 0, 1, 0 and 3. Each may deviate by six standard deviations.
TEST(RandomStreamTest, NormalHasItsFirstFourMoments) {
  const RandomStream stream(12, StreamId::kProjection);
  double moment[5] = {};
  for (int i = 0; i < kDraws; ++i) {
    double power = 1;
    const double value = stream.Normal(i);
    for (int k = 1; k <= 4; ++k) moment[k] += (power *= value) / kDraws;
  }
  EXPECT_LE(std::abs(moment[1]), 6 * std::sqrt(1.0 / kDraws));
  EXPECT_LE(std::abs(moment[2] - 1), 6 * std::sqrt(2.0 / kDraws));
  EXPECT_LE(std::abs(moment[3]), 6 * std::sqrt(15.0 / kDraws));
  EXPECT_LE(std::abs(moment[4] - 3), 6 * std::sqrt(96.0 / kDraws));
}

// Correlates the numbers of a stream with three others: the number at the next index, that of
// another stream, and that of the next seed. The correlation of n independent pairs has the
// standard deviation 1/√n.
TEST(RandomStreamTest, NeighboursAreUncorrelated) {
  const RandomStream stream(1, StreamId::kReservoir);
  const RandomStream other_stream(1, StreamId::kSplit);
  const RandomStream other_seed(2, StreamId::kReservoir);
  double next = 0, across_streams = 0, across_seeds = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = stream.Normal(i);
    next += value * stream.Normal(i + 1) / kDraws;
    across_streams += value * other_stream.Normal(i) / kDraws;
    across_seeds += value * other_seed.Normal(i) / kDraws;
  }
  const double six_sigma = 6 / std::sqrt(1.0 * kDraws);
  EXPECT_LE(std::abs(next), six_sigma);
  EXPECT_LE(std::abs(across_streams), six_sigma);
  EXPECT_LE(std::abs(across_seeds), six_sigma);
}

// For n = 3·2^62, a quarter of the draws is rejected. Without rejection, every third number would
// be twice as likely as the others, and the counts of the remainders by 3 would show this. If each
// of N draws has probability p, their count has variance N·p·(1−p).
TEST(RandomStreamTest, UniformBelowIsUnbiasedWhereRejectionMatters) {
  const RandomStream stream(13, StreamId::kSplit);
  const uint64_t n = uint64_t{3} << 62;
  int remainder_counts[3] = {};
  int part_counts[3] = {};
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t value = stream.UniformBelow(i, n);
    ASSERT_LT(value, n);
    ++remainder_counts[value % 3];
    ++part_counts[value >> 62];
  }
  const double six_sigma = 6 * std::sqrt(kDraws * (1.0 / 3) * (2.0 / 3));
  for (int count : remainder_counts) EXPECT_NEAR(count, kDraws / 3.0, six_sigma);
  for (int count : part_counts) EXPECT_NEAR(count, kDraws / 3.0, six_sigma);
}

TEST(RandomStreamTest, UniformBelowOneIsZero) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(RandomStream(9, StreamId::kSplit).UniformBelow(i, 1), 0);
}

}  // namespace
}  // namespace phimap::testing
