#include "server/http/body_rows.h"

#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "phimap/v1/predict_service.pb.h"
#include "phimap/v1/transform_service.pb.h"
#include "server/http/row_answer.h"
#include "tests/support/matchers.h"

namespace phimap {
namespace {

using ::phimap::testing::IsError;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

// Cuts a body that arrives `step` bytes at a time, as the door does.
std::vector<std::string> Pieces(FileType type, const std::string& body, size_t step) {
  BodyCutter cutter(type);
  std::vector<std::string> pieces;
  std::string arrived;
  for (size_t at = 0; at < body.size(); at += step) {
    arrived += body.substr(at, step);
    const bool ended = at + step >= body.size();
    while (const std::optional<size_t> size = cutter.Next(arrived, ended)) {
      EXPECT_GT(*size, 0U);
      EXPECT_LE(*size, arrived.size());
      pieces.push_back(arrived.substr(0, *size));
      arrived.erase(0, *size);
    }
  }
  EXPECT_EQ(arrived, "");
  return pieces;
}

std::string Joined(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

std::vector<double> Values(const v1::DenseRows& rows) {
  std::vector<double> values(rows.float64_le().size() / sizeof(double));
  std::memcpy(values.data(), rows.float64_le().data(), rows.float64_le().size());
  return values;
}

// All numbers of a CSV body, read piece by piece.
std::vector<double> Read(const std::string& body, size_t step) {
  BodyRows rows(FileType::kCsv, {});
  std::vector<double> values;
  bool header = true;
  for (const std::string& piece : Pieces(FileType::kCsv, body, step)) {
    if (std::exchange(header, false)) {
      EXPECT_TRUE(rows.ReadHeader(piece).ok());
      continue;
    }
    v1::TrainingExamples read;
    const absl::Status status = rows.Read(piece, read);
    EXPECT_TRUE(status.ok()) << status;
    for (const double value : Values(read.examples().dense())) values.push_back(value);
  }
  EXPECT_TRUE(rows.CheckEnd().ok());
  return values;
}

TEST(BodyCutterTest, EveryPieceOfCsvEndsAtARowHoweverItArrives) {
  const std::string body = "a,\"b\nb\"\r\n1,2\r\n\"3\",\"4\"\r\n5,6";
  for (size_t step = 1; step <= body.size(); ++step) {
    const std::vector<std::string> pieces = Pieces(FileType::kCsv, body, step);
    EXPECT_EQ(Joined(pieces), body);
    EXPECT_EQ(pieces[0], "a,\"b\nb\"\r\n");
    for (size_t i = 0; i + 1 < pieces.size(); ++i) EXPECT_EQ(pieces[i].back(), '\n');
    EXPECT_THAT(Read(body, step), ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

TEST(BodyCutterTest, AQuotedLineEndInACellIsNoEndOfARow) {
  BodyCutter cutter(FileType::kCsv);
  EXPECT_EQ(cutter.Next("a,b\n", false), 4U);
  EXPECT_EQ(cutter.Next("1,\"2\n", false), std::nullopt);
  EXPECT_EQ(cutter.Next("1,\"2\n\"\n", false), 7U);
}

TEST(BodyCutterTest, PiecesHaveAtMost64KiBUnlessARowIsLonger) {
  std::string body = "a\n";
  while (body.size() < (300 << 10)) body += "1\n";
  const std::string longer = absl::StrCat(std::string(100 << 10, '0'), "7\n");
  body += longer + "2\n";
  bool found = false;
  for (const std::string& piece : Pieces(FileType::kCsv, body, 50'000)) {
    found |= piece == longer;
    EXPECT_LE(piece.size(), piece == longer ? longer.size() : size_t{64 << 10});
  }
  EXPECT_TRUE(found);
}

TEST(BodyCutterTest, ARowOverTheLimitIsGivenSoThatItIsRefused) {
  BodyCutter cutter(FileType::kCsv);
  EXPECT_EQ(cutter.Next("a\n", false), 2U);
  EXPECT_EQ(cutter.Next(std::string(kMaxBodyRowBytes, '1'), false), std::nullopt);
  const std::string more(kMaxBodyRowBytes + 1, '1');
  ASSERT_EQ(cutter.Next(more, false), more.size());
  BodyRows rows(FileType::kCsv, {});
  ASSERT_TRUE(rows.ReadHeader("a\n").ok());
  v1::TrainingExamples read;
  EXPECT_THAT(rows.Read(more, read),
              IsError(Code::kInvalidArgument, "REQUEST_MALFORMED", "rows", HasSubstr("1048576")));
}

TEST(BodyRowsTest, ColumnsHaveTheirRoles) {
  ColumnRoles roles;
  roles.label = "y";
  roles.weights = "w";
  roles.groups = "g";
  roles.parts = "p";
  roles.exclude = {"id"};
  BodyRows rows(FileType::kCsv, roles);
  ASSERT_TRUE(rows.ReadHeader("id,b,y,w,g,p,a\n").ok());
  EXPECT_THAT(rows.column_names(), ElementsAre("b", "a"));
  v1::TrainingExamples read;
  ASSERT_TRUE(rows.Read("x,1,yes,2.5,u,test,-3\ny,4,\"n,o\",1,v,,5\n\n\n", read).ok());
  EXPECT_THAT(Values(read.examples().dense()), ElementsAre(1, -3, 4, 5));
  EXPECT_THAT(read.labels(), ElementsAre("yes", "n,o"));
  EXPECT_THAT(read.weights(), ElementsAre(2.5, 1));
  EXPECT_THAT(read.groups(), ElementsAre("u", "v"));
  EXPECT_THAT(read.parts(), ElementsAre(v1::TRAINING_PART_TEST, v1::TRAINING_PART_UNSPECIFIED));
  EXPECT_EQ(rows.rows(), 2);
}

TEST(BodyRowsTest, ColumnsComeInTheOrderThatIsAskedFor) {
  ColumnRoles roles;
  roles.columns = {"c", "a"};
  roles.delimiter = ';';
  BodyRows rows(FileType::kCsv, roles);
  ASSERT_TRUE(rows.ReadHeader("a;b;c\n").ok());
  v1::TrainingExamples read;
  ASSERT_TRUE(rows.Read("1;no number;3\n", read).ok());
  EXPECT_THAT(Values(read.examples().dense()), ElementsAre(3, 1));
}

TEST(BodyRowsTest, LinesAreCountedOverPieces) {
  BodyRows rows(FileType::kCsv, {});
  ASSERT_TRUE(rows.ReadHeader("\"a\n\n\",b\n").ok());
  v1::TrainingExamples read;
  ASSERT_TRUE(rows.Read("1,2\n3,4\n", read).ok());
  EXPECT_THAT(rows.Read("5,6\n7,x\n", read), IsError(Code::kInvalidArgument, "REQUEST_MALFORMED",
                                                     "rows", HasSubstr("line 7: column 2")));
}

TEST(RowAnswerTest, FeaturesAreTextsOfFloat64AndAnArray) {
  v1::TransformResponse answer;
  answer.mutable_features()->set_rows(2);
  answer.mutable_features()->set_columns(2);
  const float features[] = {0.1F, -2, 3, 1e-30F};
  answer.mutable_features()->mutable_float32_le()->assign(reinterpret_cast<const char*>(features),
                                                          sizeof(features));
  EXPECT_EQ(CsvOf(answer), "f0,f1\n0.10000000149011612,-2\n3,1.0000000031710769e-30\n");
  const std::string array = NpyOf(answer);
  EXPECT_EQ(array.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_THAT(array, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"));
  EXPECT_EQ(array.substr(128), answer.features().float32_le());
  answer.add_residuals(0.5);
  answer.add_residuals(0.25);
  EXPECT_EQ(CsvOf(answer),
            "f0,f1,residual\n0.10000000149011612,-2,0.5\n"
            "3,1.0000000031710769e-30,0.25\n");
  EXPECT_THAT(NpyOf(answer), HasSubstr("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)"));
}

TEST(RowAnswerTest, PredictionsHaveTheColumnsOfTheCommandLine) {
  v1::PredictResponse answer;
  for (const char* const name : {"a|b", "c,\"d\""}) answer.add_class_names(name);
  answer.add_labels(1);
  answer.add_labels(0);
  answer.add_sets()->add_classes(1);
  v1::PredictResponse::ClassSet& both = *answer.add_sets();
  both.add_classes(0);
  both.add_classes(1);
  EXPECT_EQ(CsvOf(answer),
            "predicted,set\n\"c,\"\"d\"\"\",\"c,\"\"d\"\"\"\na|b,\"a\\|b|c,\"\"d\"\"\"\n");
  v1::PredictResponse numbers;
  numbers.add_values(1.5);
  numbers.add_interval_lows(1);
  numbers.add_interval_highs(std::numeric_limits<double>::infinity());
  EXPECT_EQ(CsvOf(numbers), "predicted,low,high\n1.5,1,inf\n");
}

}  // namespace
}  // namespace phimap
