#include "core/learn/parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/head/conformal.h"
#include "core/plan/example_block.h"
#include "core/random/stream_ids.h"
#include "core/theory/binomial.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

struct StreamRow {
  std::string content;
  std::string group = {};
  double label = 0;
  std::optional<Part> part = std::nullopt;
};

// Where the rows of a stream ended, each part sorted.
struct Outcome {
  std::array<std::vector<PartRow>, kPartCount> rows;
  PartCounts counts;
  bool operator==(const Outcome&) const = default;
};

Outcome Split(const std::vector<StreamRow>& stream, const PartsOptions& options) {
  PartSplitter splitter(options);
  Outcome outcome;
  std::vector<PartRow>& train = outcome.rows[0];
  for (const StreamRow& row : stream) {
    std::vector<PartRow> evicted;
    const bool now = splitter.Add({row.content, row.group, row.label, 1, row.part}, evicted);
    if (now) train.push_back({row.content, row.label, 1});
    train.insert(train.end(), evicted.begin(), evicted.end());
  }
  Parts parts = std::move(splitter).Finish();
  train.insert(train.end(), parts[Part::kTrain].begin(), parts[Part::kTrain].end());
  for (size_t p = 1; p < kPartCount; ++p) outcome.rows[p] = parts.rows[p];
  for (auto& rows : outcome.rows) std::sort(rows.begin(), rows.end());
  outcome.counts = parts.counts;
  return outcome;
}

// The rule of parts.h, carried out on the whole set of rows at once.
Outcome NaiveSplit(const std::vector<StreamRow>& stream, const PartsOptions& options) {
  const RandomStream lot(options.seed, StreamId::kParts);
  const SipHashKey hash_key = {lot.Bits64(0), lot.Bits64(1)};
  const double shares[] = {0, options.validate, options.calibrate_link, options.calibrate_sets,
                           options.test};
  Outcome outcome;
  double candidate_share = 0;
  int64_t parts = 0;
  for (const double share : shares) {
    if (share == 0) continue;
    candidate_share += std::max(share, 0.1) * 1.25;
    ++parts;
  }
  std::map<uint64_t, std::vector<StreamRow>> groups;
  int64_t n = 0;
  for (const StreamRow& row : stream) {
    ++n;
    groups[SipHash(hash_key, row.group.empty() ? row.content : row.group)].push_back(row);
  }
  const auto to = [&](size_t part, const std::vector<StreamRow>& rows) {
    for (const StreamRow& row : rows) outcome.rows[part].push_back({row.content, row.label, 1});
  };
  // Rule 1.
  const int64_t shelf_rows = parts * options.max_rows;
  int64_t counted_rows = 0;
  int64_t counted_bytes = 0;
  std::vector<std::vector<StreamRow>> shelf;
  bool full = false;
  for (const auto& [key, rows] : groups) {
    const auto size = static_cast<int64_t>(rows.size());
    int64_t bytes = 0;
    for (const StreamRow& row : rows) bytes += static_cast<int64_t>(row.content.size()) + 192;
    const int64_t most_rows = std::max<int64_t>(shelf_rows / 16, 1);
    const bool candidate = static_cast<double>(key) < std::min(1.0, candidate_share) * 0x1p64;
    counted_rows += std::min(size, most_rows);
    counted_bytes += std::min(bytes, options.max_bytes / 16);
    full = full || !candidate || counted_rows > shelf_rows || counted_bytes > options.max_bytes;
    if (full) {
      to(0, rows);
    } else if (size > most_rows || bytes > options.max_bytes / 16) {
      to(0, rows);
      outcome.counts.large_groups += size;
    } else {
      shelf.push_back(rows);
    }
  }
  // Rule 2.
  int64_t targets[kPartCount] = {};
  int64_t wanted = 0;
  int64_t largest = 0;
  for (size_t p = 1; p < kPartCount; ++p) {
    if (shares[p] == 0) continue;
    targets[p] = std::min<int64_t>(
        options.max_rows, std::max<int64_t>(std::floor(shares[p] * static_cast<double>(n) + 1e-9),
                                            std::min<int64_t>(100, n / 10)));
    wanted += targets[p];
    largest = std::max(largest, targets[p]);
  }
  std::vector<std::vector<StreamRow>> held;
  int64_t held_rows = 0;
  full = false;
  for (const auto& rows : shelf) {
    const auto size = static_cast<int64_t>(rows.size());
    const bool large = size > std::max<int64_t>(largest / 4, 1);
    if (large) outcome.counts.large_groups += size;
    full = full || (!large && held_rows + size > wanted);
    if (large || full) {
      to(0, rows);
      continue;
    }
    held_rows += size;
    held.push_back(rows);
  }
  // Rule 3.
  double before = 0;
  for (const auto& rows : held) {
    const double middle = before + static_cast<double>(rows.size()) / 2;
    double end = 0;
    for (const size_t p : {4, 3, 2, 1}) {
      end += static_cast<double>(targets[p]) * static_cast<double>(held_rows) /
             static_cast<double>(wanted);
      if (targets[p] == 0 || middle > end + 1e-9) continue;
      to(p, rows);
      break;
    }
    before += static_cast<double>(rows.size());
  }
  for (size_t p = 0; p < kPartCount; ++p) {
    std::sort(outcome.rows[p].begin(), outcome.rows[p].end());
    outcome.counts.rows[p] = static_cast<int64_t>(outcome.rows[p].size());
  }
  return outcome;
}

std::string Text(uint64_t number) { return "row " + std::to_string(number); }

std::vector<StreamRow> DistinctRows(int64_t n) {
  std::vector<StreamRow> rows;
  for (int64_t i = 0; i < n; ++i) {
    rows.push_back({.content = Text(i), .label = static_cast<double>(i % 3)});
  }
  return rows;
}

std::vector<StreamRow> InOrder(const std::vector<StreamRow>& rows, uint64_t seed) {
  const auto n = static_cast<int64_t>(rows.size());
  std::vector<StreamRow> ordered;
  for (const int64_t i : FirstOfPermutation(n, n, RandomStream(seed, StreamId::kLabOrder))) {
    ordered.push_back(rows[static_cast<size_t>(i)]);
  }
  return ordered;
}

// Streams of every kind: rows that differ, rows that repeat, groups of different sizes, large
// groups, and rows of different lengths.
std::vector<StreamRow> MixedRows(int64_t n, int64_t contents, int64_t groups, uint64_t seed) {
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  std::vector<StreamRow> rows;
  for (int64_t i = 0; i < n; ++i) {
    // Squares of uniform numbers: the first contents and groups are much more frequent.
    const double u = random.UniformOpen01();
    const auto content = static_cast<uint64_t>(u * u * static_cast<double>(contents));
    StreamRow row{.content = Text(content), .label = random.UniformOpen01()};
    row.content.append(content % 50, 'x');
    const double v = random.UniformOpen01();
    if (groups > 0) {
      row.group =
          "group " + std::to_string(static_cast<int64_t>(v * v * v * static_cast<double>(groups)));
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(PartsTest, PartsAreAFunctionOfTheSetOfRowsAndTheSeed) {
  struct Case {
    const char* what;
    std::vector<StreamRow> rows;
    PartsOptions options;
  };
  const Case cases[] = {
      {"no rows", {}, {}},
      {"few rows", DistinctRows(35), {.seed = 1}},
      {"rows that differ", DistinctRows(3000), {.seed = 2}},
      {"rows that repeat", MixedRows(3000, 1000, 0, 3), {.seed = 3}},
      {"few contents", MixedRows(2000, 12, 0, 4), {.seed = 4}},
      {"groups", MixedRows(3000, 100'000, 400, 5), {.seed = 5}},
      {"a limit of rows", MixedRows(3000, 2000, 0, 6), {.seed = 6, .max_rows = 64}},
      {"a limit of rows and groups", MixedRows(4000, 4000, 900, 7), {.seed = 7, .max_rows = 100}},
      {"a limit of bytes", MixedRows(3000, 3000, 0, 8), {.seed = 8, .max_bytes = 60'000}},
      {"limits and large groups",
       MixedRows(4000, 300, 0, 9),
       {.seed = 9, .max_rows = 120, .max_bytes = 50'000}},
      {"a limit of one row", DistinctRows(500), {.seed = 10, .max_rows = 1}},
      {"two parts",
       MixedRows(3000, 2500, 0, 11),
       {.seed = 11, .validate = 0, .calibrate_link = 0, .calibrate_sets = 0.2, .test = 0.5}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Outcome expected = NaiveSplit(c.rows, c.options);
    EXPECT_TRUE(Split(c.rows, c.options) == expected);
    for (uint64_t order = 0; order < 4; ++order) {
      const Outcome outcome = Split(InOrder(c.rows, order), c.options);
      EXPECT_TRUE(outcome == expected) << "order " << order;
    }
    const auto total =
        std::accumulate(expected.counts.rows.begin(), expected.counts.rows.end(), int64_t{0});
    EXPECT_EQ(total, static_cast<int64_t>(c.rows.size()));
  }
}

// What is computed from a part, in the order of its rows, has the same bits in any order of the
// stream. Equal contents have different labels here.
TEST(PartsTest, TheOrderWithinAPartIsThatOfTheSetToo) {
  const std::vector<StreamRow> rows = MixedRows(2000, 300, 0, 14);
  const auto parts = [](const std::vector<StreamRow>& stream) {
    PartSplitter splitter({.seed = 1});
    std::vector<PartRow> evicted;
    for (const StreamRow& row : stream) {
      splitter.Add({.content = row.content, .label = row.label}, evicted);
    }
    EXPECT_THAT(evicted, IsEmpty());
    return std::move(splitter).Finish().rows;
  };
  const auto expected = parts(rows);
  EXPECT_GT(expected[static_cast<size_t>(Part::kTrain)].size(), 100u);
  EXPECT_EQ(parts(InOrder(rows, 1)), expected);
}

// Rows with the largest contents first fill the shelf with rows that are later evicted.
TEST(PartsTest, AnOrderThatEvictsMostGivesTheSameParts) {
  const PartsOptions options{.seed = 1, .max_rows = 40};
  std::vector<StreamRow> rows = MixedRows(2000, 700, 0, 12);
  const Outcome expected = NaiveSplit(rows, options);
  const RandomStream lot(options.seed, StreamId::kParts);
  const SipHashKey key = {lot.Bits64(0), lot.Bits64(1)};
  std::stable_sort(rows.begin(), rows.end(), [&](const StreamRow& a, const StreamRow& b) {
    return SipHash(key, a.content) > SipHash(key, b.content);
  });
  EXPECT_TRUE(Split(rows, options) == expected);
  std::reverse(rows.begin(), rows.end());
  EXPECT_TRUE(Split(rows, options) == expected);
}

TEST(PartsTest, SizesAreThoseThatTheHeaderStates) {
  const auto sizes = [](int64_t rows) {
    const Outcome outcome = Split(DistinctRows(rows), {.seed = 1});
    EXPECT_EQ(outcome.counts.unused + outcome.counts.large_groups, 0);
    return outcome.counts.rows;
  };
  EXPECT_THAT(sizes(9), ElementsAre(9, 0, 0, 0, 0));
  EXPECT_THAT(sizes(200), ElementsAre(120, 20, 20, 20, 20));
  EXPECT_THAT(sizes(1500), ElementsAre(1500 - 450, 100, 100, 100, 150));
  EXPECT_THAT(sizes(20'000), ElementsAre(15'000, 1000, 1000, 1000, 2000));
  EXPECT_THAT(Split(DistinctRows(20'000), {.seed = 1, .max_rows = 1500}).counts.rows,
              ElementsAre(15'500, 1000, 1000, 1000, 1500));
}

// The number of candidates varies with the seed. In 10,000 seeds, of 200 rows, hardly any has fewer
// than the 80 that are wanted, and none fewer than 60: that has a probability of 1e-8 a seed.
TEST(PartsTest, HardlyAnySeedHasTooFewCandidates) {
  const std::vector<StreamRow> rows = DistinctRows(200);
  int fewer = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Outcome outcome = Split(rows, {.seed = seed});
    const int64_t held = 200 - outcome.counts[Part::kTrain];
    EXPECT_GE(held, 60);
    fewer += held < 80;
    // What there is, is divided evenly.
    for (size_t p = 1; p < kPartCount; ++p) {
      EXPECT_NEAR(static_cast<double>(outcome.counts.rows[p]), static_cast<double>(held) / 4, 1);
    }
  }
  // P[Bin(200, 1/2) < 80] = .18 %; more than 12 of 1,000 have a probability of 1e-6.
  EXPECT_LE(fewer, 12);
}

TEST(PartsTest, EqualRowsAndGroupsShareAPart) {
  const std::vector<StreamRow> rows = MixedRows(6000, 5000, 0, 13);
  std::map<std::string, size_t> part_of;
  const Outcome outcome = Split(rows, {.seed = 2});
  for (size_t p = 0; p < kPartCount; ++p) {
    EXPECT_FALSE(outcome.rows[p].empty());
    for (const PartRow& row : outcome.rows[p]) {
      EXPECT_EQ(part_of.emplace(row.content, p).first->second, p) << row.content;
    }
  }
  std::vector<StreamRow> grouped = DistinctRows(6000);
  for (size_t i = 0; i < grouped.size(); ++i) grouped[i].group = Text(i / 3);
  const Outcome by_group = Split(grouped, {.seed = 2});
  std::map<std::string, std::string> group_of;
  for (const StreamRow& row : grouped) group_of[row.content] = row.group;
  part_of.clear();
  for (size_t p = 0; p < kPartCount; ++p) {
    EXPECT_FALSE(by_group.rows[p].empty());
    for (const PartRow& row : by_group.rows[p]) {
      EXPECT_EQ(part_of.emplace(group_of[row.content], p).first->second, p) << row.content;
    }
  }
}

TEST(PartsTest, LabelsAndSeedsOfOthersHaveNoPartInIt) {
  const auto contents = [](const Outcome& outcome) {
    std::array<std::vector<std::string>, kPartCount> all;
    for (size_t p = 0; p < kPartCount; ++p) {
      for (const PartRow& row : outcome.rows[p]) all[p].push_back(row.content);
    }
    return all;
  };
  std::vector<StreamRow> rows = DistinctRows(1000);
  const auto parts = contents(Split(rows, {.seed = 3}));
  for (StreamRow& row : rows) row.label = 17 - row.label;
  EXPECT_EQ(contents(Split(rows, {.seed = 3})), parts);
  EXPECT_NE(contents(Split(rows, {.seed = 4})), parts);
}

TEST(PartsTest, APartThatIsGivenOverridesTheRule) {
  std::vector<StreamRow> rows = DistinctRows(1000);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % 4 == 0) rows[i].part = Part::kTest;
    if (i % 4 == 1) rows[i].part = Part::kTrain;
  }
  const Outcome outcome = Split(rows, {.seed = 5});
  // Of the 500 others, each part has a tenth but for test, which has the given ones alone.
  EXPECT_THAT(outcome.counts.rows, ElementsAre(250 + 350, 50, 50, 50, 250));
  std::map<std::string, std::optional<Part>> given;
  for (const StreamRow& row : rows) given[row.content] = row.part;
  for (size_t p = 0; p < kPartCount; ++p) {
    for (const PartRow& row : outcome.rows[p]) {
      const std::optional<Part> part = given[row.content];
      if (part.has_value()) {
        EXPECT_EQ(static_cast<size_t>(*part), p);
      } else {
        EXPECT_NE(p, static_cast<size_t>(Part::kTest));
      }
    }
  }
  EXPECT_TRUE(Split(InOrder(rows, 1), {.seed = 5}) == outcome);
}

TEST(PartsTest, AGivenPartThatIsFullKeepsTheSmallestHashes) {
  std::vector<StreamRow> rows = DistinctRows(500);
  for (StreamRow& row : rows) row.part = Part::kCalibrateSets;
  const PartsOptions options{.seed = 6, .max_rows = 64};
  const Outcome outcome = Split(rows, options);
  EXPECT_THAT(outcome.counts.rows, ElementsAre(0, 0, 0, 64, 0));
  EXPECT_EQ(outcome.counts.unused, 500 - 64);
  EXPECT_TRUE(Split(InOrder(rows, 1), options) == outcome);
  EXPECT_THAT(PartNotes(outcome.counts, options), Contains(HasSubstr("436 rows came with a part")));
}

// The splitter never holds more than its limits, whatever comes.
TEST(PartsTest, MemoryIsLimited) {
  const PartsOptions options{.seed = 7, .max_rows = 1000, .max_bytes = 100'000};
  PartSplitter splitter(options);
  int64_t held = 0;
  int64_t bytes = 0;
  int64_t most = 0;
  for (int64_t i = 0; i < 5000; ++i) {
    std::vector<PartRow> evicted;
    const std::string content = Text(i) + std::string(static_cast<size_t>(i % 300), 'x');
    const bool now = splitter.Add({.content = content}, evicted);
    if (!now) {
      ++held;
      bytes += static_cast<int64_t>(content.size());
    }
    for (const PartRow& row : evicted) {
      --held;
      bytes -= static_cast<int64_t>(row.content.size());
    }
    EXPECT_LE(bytes + 192 * held, options.max_bytes);
    most = std::max(most, bytes + 192 * held);
  }
  EXPECT_GT(most, options.max_bytes * 95 / 100);
}

// Whether row i is in part p, over seeds, is a draw with the probability of the part's share; and
// neighbours in the stream do not go together.
TEST(PartsTest, EveryRowIsAsLikelyAsEveryOtherInEachPart) {
  constexpr int kSeeds = 2000;
  constexpr int kRows = 60;
  const std::vector<StreamRow> rows = DistinctRows(kRows);
  std::vector<std::array<int, kPartCount>> counts(kRows);
  int together = 0;
  int64_t tested = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Outcome outcome = Split(rows, {.seed = seed});
    std::vector<bool> in_test(kRows);
    for (size_t p = 0; p < kPartCount; ++p) {
      for (const PartRow& row : outcome.rows[p]) {
        const int i = std::stoi(row.content.substr(4));
        ++counts[i][p];
        in_test[i] = in_test[i] || p == static_cast<size_t>(Part::kTest);
      }
    }
    tested += outcome.counts[Part::kTest];
    for (int i = 0; i + 1 < kRows; ++i) together += in_test[i] && in_test[i + 1];
  }
  const double share = static_cast<double>(tested) / kSeeds / kRows;
  EXPECT_NEAR(share, 0.1, 0.002);
  for (int i = 0; i < kRows; ++i) {
    for (const Part part : {Part::kTest, Part::kCalibrateSets}) {
      // Five deviations of a binomial number; 120 of them.
      EXPECT_NEAR(counts[i][static_cast<size_t>(part)], kSeeds * share,
                  5 * std::sqrt(kSeeds * share))
          << i;
    }
  }
  // Pairs of neighbours that are both tested: 59·2,000 pairs at 6·5/(60·59).
  const double pairs = kSeeds * (kRows - 1) * (6.0 * 5) / (60 * 59);
  EXPECT_NEAR(together, pairs, 6 * std::sqrt(pairs));
}

// A stream that is sorted by its scores, in which a row's score is its place, is as far from a
// random order as can be. Sets and test rows are exchangeable all the same: the tested rows that
// conform have the mean k/(n + 1) over seeds, with the variance of Beta and binomial. Parts that
// were cut from the stream by place would be off by far.
TEST(PartsTest, CalibrationAndTestRowsOfASortedStreamAreExchangeable) {
  constexpr int kSeeds = 400;
  const std::vector<StreamRow> rows = DistinctRows(500);
  double sum = 0;
  double squares = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Outcome outcome = Split(rows, {.seed = seed});
    const auto score = [](const PartRow& row) { return std::stod(row.content.substr(4)); };
    std::vector<double> calibrating;
    for (const PartRow& row : outcome.rows[static_cast<size_t>(Part::kCalibrateSets)]) {
      calibrating.push_back(score(row));
    }
    std::sort(calibrating.begin(), calibrating.end());
    const auto n = static_cast<int64_t>(calibrating.size());
    const double threshold = *ConformalPredictor({calibrating, {}}, 0).Threshold(0.8);
    double covered = 0;
    const auto& tested = outcome.rows[static_cast<size_t>(Part::kTest)];
    for (const PartRow& row : tested) covered += score(row) <= threshold;
    const double a = std::ceil(0.8 * static_cast<double>(n + 1) - 1e-9);
    const double b = static_cast<double>(n + 1) - a;
    const auto m = static_cast<double>(tested.size());
    sum += covered / m - a / (a + b);
    squares += a * b * (a + b + m) / (m * (a + b) * (a + b) * (a + b + 1));
  }
  EXPECT_NEAR(sum, 0, 5 * std::sqrt(squares));
  EXPECT_LT(5 * std::sqrt(squares) / kSeeds, 0.03);
}

TEST(PartsTest, TooFewRowsAreRefusedWithTheReason) {
  const Outcome few = Split(DistinctRows(9), {.seed = 8});
  EXPECT_THAT(CheckParts(few.counts),
              IsError(StatusCode::kInvalidArgument, reason::kRowsTooFew, "examples",
                      HasSubstr("of 9 rows, the part test has none: send more rows")));
  const Outcome equal = Split(std::vector<StreamRow>(5000, {.content = "same"}), {.seed = 8});
  EXPECT_THAT(equal.counts.rows, ElementsAre(5000, 0, 0, 0, 0));
  EXPECT_TRUE(CheckParts(Split(DistinctRows(10), {.seed = 8}).counts).ok());
  // A seed with which the only content is a candidate.
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome outcome =
        Split(std::vector<StreamRow>(5000, {.content = "same"}), {.seed = seed});
    EXPECT_EQ(outcome.counts[Part::kTrain], 5000);
    EXPECT_FALSE(CheckParts(outcome.counts).ok());
    if (outcome.counts.large_groups == 0) continue;
    EXPECT_THAT(CheckParts(outcome.counts).message(), HasSubstr("too many rows are equal"));
    EXPECT_THAT(PartNotes(outcome.counts, {}), Contains(HasSubstr("5000 rows are equal to")));
    return;
  }
  FAIL() << "no seed made the content a candidate";
}

TEST(PartsTest, NotesSayWhatIsMissing) {
  const PartsOptions options;
  EXPECT_THAT(PartNotes(Split(DistinctRows(2000), options).counts, options), IsEmpty());
  EXPECT_THAT(PartNotes(Split(DistinctRows(5), options).counts, options), SizeIs(3));
  EXPECT_THAT(PartNotes(Split(DistinctRows(120), options).counts, options),
              ElementsAre(HasSubstr("calibrate-sets has 12 rows: at a confidence over 12/13")));
}

TEST(PartsTest, OptionsOutOfRangeAreRefused) {
  EXPECT_TRUE(PartsOptions().Validate().ok());
  const auto refused = [](const PartsOptions& options, absl::string_view field) {
    EXPECT_THAT(options.Validate(), IsError(StatusCode::kInvalidArgument, reason::kFieldOutOfRange,
                                            std::string(field)));
  };
  refused({.validate = -0.1}, "parts.validate");
  refused({.test = 1}, "parts.test");
  refused({.calibrate_sets = std::nan("")}, "parts.calibrate_sets");
  refused({.validate = 0.3, .calibrate_link = 0.3, .calibrate_sets = 0.3, .test = 0.2},
          "parts.train");
  refused({.max_rows = 0}, "parts.max_rows");
  refused({.max_bytes = 0}, "parts.max_bytes");
}

TEST(PartsTest, NamesAreThoseOfAColumnOfParts) {
  for (int p = 0; p < kPartCount; ++p) {
    const auto part = static_cast<Part>(p);
    EXPECT_EQ(PartFromName(PartName(part)).value(), part);
  }
  EXPECT_THAT(PartFromName("Test").status(),
              IsError(StatusCode::kInvalidArgument, reason::kFieldInvalid, "parts",
                      HasSubstr("calibrate-sets or test, got \"Test\"")));
}

TEST(RowContentTest, EqualRowsHaveOneContentInEveryForm) {
  constexpr int64_t kColumns = 9;
  Matrix<double> rows(3, kColumns);
  for (int64_t j = 0; j < kColumns; ++j) rows(0, j) = static_cast<double>(j) + 0.5;
  rows(1, 2) = -0.0;
  rows(1, 5) = 3.25;
  Matrix<float> floats(3, kColumns);
  ExampleBlock sparse(ExampleKind::kSparse, kColumns);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) floats(i, j) = static_cast<float>(rows(i, j));
    sparse.AddRow(rows.row(i));
  }
  std::string wide, narrow, entries;
  for (int64_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    RowContent(WireRows(rows), i, wide);
    RowContent(WireRows(floats), i, narrow);
    RowContent(sparse.view(), i, entries);
    EXPECT_EQ(wide, narrow);
    EXPECT_EQ(wide, entries);
    EXPECT_EQ(wide.size(), (i == 0 ? 72 : i == 1 ? 12 : 0));
    std::vector<double> back(kColumns, 7);
    RowFromContent(wide, kColumns, back.data());
    EXPECT_THAT(back, ElementsAreArray(rows.row(i), kColumns));
  }
  const std::string text = "a text";
  const std::string* const texts[] = {&text};
  RowContent(StringsView{ExampleKind::kText, texts, 1, 6}, 0, wide);
  EXPECT_EQ(wide, text);
}

// A zero that a sparse row writes out is no difference.
TEST(RowContentTest, AWrittenZeroIsNoDifference) {
  const int64_t offsets[] = {0, 3, 4};
  const int32_t columns[] = {1, 4, 6, 4};
  const double values[] = {0, 2.5, -0.0, 2.5};
  const SparseRowsView rows{FloatType::kFloat64,
                            2,
                            100,
                            reinterpret_cast<const char*>(offsets),
                            reinterpret_cast<const char*>(columns),
                            reinterpret_cast<const char*>(values)};
  std::string first, second;
  RowContent(rows, 0, first);
  RowContent(rows, 1, second);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.size(), 12u);
}

}  // namespace
}  // namespace phimap::testing
