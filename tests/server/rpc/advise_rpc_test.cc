#include <limits>
#include <string>

#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using ::testing::HasSubstr;
using Code = grpc::StatusCode;

class AdviseRpcTest : public ServerFixture {
 protected:
  AdviseRpcTest() { Start(); }

  static v1::AdviseRequest Question(double margin, double error, double confidence) {
    v1::AdviseRequest request;
    request.set_margin(margin);
    request.set_error(error);
    request.set_confidence(confidence);
    return request;
  }
  grpc::Status Advise(const v1::AdviseRequest& request, v1::AdviseResponse* response) {
    grpc::ClientContext context;
    return mappings_->Advise(&context, request, response);
  }
  v1::AdviseResponse MustAdvise(const v1::AdviseRequest& request) {
    v1::AdviseResponse response;
    const grpc::Status status = Advise(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  static v1::AdviseResponse::Line LineOf(const v1::AdviseResponse& response,
                                         const std::string& what, const std::string& tier) {
    for (const v1::AdviseResponse::Line& line : response.lines()) {
      if (line.what() == what && line.tier() == tier) return line;
    }
    ADD_FAILURE() << "no line " << what << ", " << tier;
    return {};
  }
};

TEST_F(AdviseRpcTest, MatchesTheGoldenTable) {
  struct {
    double margin, error, confidence;
    int64_t literal, binomial, d2, d3_literal, d3_derived, d3_exact, direct;
  } const cases[] = {{0.5, 0.1, 0.95, 560, 215, 1231, 35840, 5546, 544, 78},
                     {0.2, 0.1, 0.95, 2240, 1150, 4591, 219742, 43403, 3615, 634},
                     {0.1, 0.1, 0.95, 8240, 4307, 16591, 873440, 186200, 14584, 2624},
                     {0.1, 0.01, 0.95, 82397, 43225, 165903, 1110708, 241285, 21399, 4282}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.margin);
    const v1::AdviseResponse advice = MustAdvise(Question(c.margin, c.error, c.confidence));
    EXPECT_EQ(LineOf(advice, "F1", "literal").landmarks(), c.literal);
    EXPECT_EQ(LineOf(advice, "F2", "literal").dimensions(), c.literal);
    EXPECT_EQ(LineOf(advice, "F2", "literal").margin(), c.margin / 2);
    EXPECT_EQ(LineOf(advice, "F2", "derived").dimensions(), c.binomial);
    EXPECT_EQ(LineOf(advice, "F3", "literal").landmarks(), c.d2);
    EXPECT_EQ(LineOf(advice, "F3", "literal").dimensions(), c.d3_literal);
    EXPECT_EQ(LineOf(advice, "F3", "derived").dimensions(), c.d3_derived);
    EXPECT_EQ(LineOf(advice, "F3", "exact law").dimensions(), c.d3_exact);
    EXPECT_EQ(LineOf(advice, "projection", "exact law").dimensions(), c.direct);
    EXPECT_EQ(LineOf(advice, "projection", "literal").dimensions(), 0);
  }
}

TEST_F(AdviseRpcTest, MatchesTheOtherGoldenValues) {
  v1::AdviseRequest request = Question(0.5, 0.1, 0.95);
  request.set_points(1000);
  const v1::AdviseResponse halves = MustAdvise(request);
  EXPECT_EQ(LineOf(halves, "data set", "derived").dimensions(), 1350);
  EXPECT_EQ(LineOf(halves, "data set", "literal").dimensions(), 4093);
  request.set_classes(10);
  request.set_distortion(0.05);
  const v1::AdviseResponse classes = MustAdvise(request);
  EXPECT_EQ(LineOf(classes, "classes", "literal").dimensions(), 23169);
  EXPECT_NEAR(LineOf(classes, "classes", "literal").margin(), 0.3509391, 5e-8);
  EXPECT_THAT(LineOf(classes, "one parameter", "literal").note(), HasSubstr("0.0592117"));
  request = Question(0.5, 0.1, 0.99);
  request.set_distortion(0.1);
  request.set_kernel_error(0.1);
  const v1::AdviseResponse lengths = MustAdvise(request);
  EXPECT_EQ(LineOf(lengths, "length", "literal").dimensions(), 2355);
  EXPECT_EQ(LineOf(lengths, "length", "derived").dimensions(), 2271);
  EXPECT_EQ(LineOf(lengths, "random Fourier", "literal").dimensions(), 4239);
  EXPECT_EQ(LineOf(lengths, "random Fourier", "derived").dimensions(), 2120);
  EXPECT_NEAR(LineOf(lengths, "weak learner", "derived").success(), 0.5 * 0.0683099, 5e-8);
  request = Question(0.5, 0.1, 0.999);
  request.set_points(1000);
  request.set_distortion(0.2);
  EXPECT_EQ(LineOf(MustAdvise(request), "projected kernel", "literal").dimensions(), 2392);
}

TEST_F(AdviseRpcTest, SaysWhenF3CannotHelpAndProposesWhatThisServerBuilds) {
  const v1::AdviseResponse advice = MustAdvise(Question(0.1, 0.1, 0.95));
  EXPECT_FALSE(advice.f3_helps());
  EXPECT_THAT(advice.verdict(), HasSubstr("F3 cannot help"));
  EXPECT_EQ(advice.proposal(), "f2(landmarks=4307)");
  EXPECT_NEAR(advice.f3_helps_below_error(), 0.023, 0.0005);
  const v1::AdviseResponse more = MustAdvise(Question(0.1, 0.01, 0.95));
  EXPECT_TRUE(more.f3_helps());
  EXPECT_EQ(more.proposal(), "");
  EXPECT_THAT(more.verdict(), HasSubstr("at most 8,192"));
  EXPECT_THAT(more.to_do(), ::testing::StartsWith("Measure: "));
  EXPECT_EQ(more.to_measure(), "f2(landmarks=auto(residual=0.1))");
  EXPECT_THAT(advice.to_do(), ::testing::StartsWith("Build f2(landmarks=4307)"));
  // A number that a theorem does not give is absent, not 0.
  const v1::AdviseResponse::Line weak = LineOf(more, "weak learner", "literal");
  EXPECT_FALSE(weak.has_dimensions() || weak.has_margin() || weak.has_error() || weak.has_draws());
}

TEST_F(AdviseRpcTest, NamesTheFieldThatIsOutOfRange) {
  v1::AdviseRequest classes = Question(0.5, 0.1, 0.95);
  classes.set_classes(-2);
  struct {
    v1::AdviseRequest request;
    const char* field;
  } const cases[] = {{{}, "margin"},
                     {Question(2, 0.1, 0.95), "margin"},
                     {Question(std::numeric_limits<double>::quiet_NaN(), 0.1, 0.95), "margin"},
                     {Question(0.5, 1, 0.95), "error"},
                     {Question(0.5, 0.1, 95), "confidence"},
                     {classes, "classes"}};
  for (const auto& c : cases) {
    v1::AdviseResponse response;
    const grpc::Status status = Advise(c.request, &response);
    EXPECT_EQ(status.error_code(), Code::INVALID_ARGUMENT);
    EXPECT_EQ(FactsOf(status).field, c.field);
  }
}

}  // namespace
}  // namespace phimap::testing
