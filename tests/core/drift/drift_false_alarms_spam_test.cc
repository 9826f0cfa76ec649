#include "gtest/gtest.h"
#include "tests/core/drift/false_alarms.h"

namespace phimap::testing {
namespace {

TEST(DriftFalseAlarmsSpamTest, RaisesNoMoreThanPromised) {
  ExpectFewAlarms(BuiltData("spam.csv", "fourier(dimensions=100)", "rbf(gamma=scale)"), 2);
}

}  // namespace
}  // namespace phimap::testing
