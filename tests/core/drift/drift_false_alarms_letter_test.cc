#include "gtest/gtest.h"
#include "tests/core/drift/false_alarms.h"

namespace phimap::testing {
namespace {

TEST(DriftFalseAlarmsLetterTest, RaisesNoMoreThanPromised) {
  ExpectFewAlarms(BuiltData("letter.csv", "f2(landmarks=100)", "rbf(gamma=scale)"), 1);
}

}  // namespace
}  // namespace phimap::testing
