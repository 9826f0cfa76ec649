#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "server/admission/caller_shares.h"

namespace phimap::testing {
namespace {

CallerPointer NewCaller(bool administers) {
  auto caller = std::make_shared<CallerUse>();
  caller->administers = administers;
  return caller;
}

// Takes places until one is refused.
std::vector<SharedPlaces::Place> TakeAll(SharedPlaces& places, const CallerPointer& caller) {
  std::vector<SharedPlaces::Place> taken;
  while (std::optional<SharedPlaces::Place> place = places.Take(caller)) {
    taken.push_back(*std::move(place));
  }
  return taken;
}

TEST(SharedPlacesTest, ACallerHasHalfAndAllWithoutTheRoleAdminLeaveAnEighth) {
  SharedPlaces places(16);
  const CallerPointer one = NewCaller(false);
  const CallerPointer two = NewCaller(false);
  const CallerPointer admin = NewCaller(true);
  std::vector<SharedPlaces::Place> of_one = TakeAll(places, one);
  EXPECT_EQ(of_one.size(), 8u);
  EXPECT_EQ(TakeAll(places, two).size(), 6u);
  const std::vector<SharedPlaces::Place> of_two = TakeAll(places, two);
  EXPECT_EQ(of_two.size(), 6u);
  EXPECT_EQ(TakeAll(places, nullptr).size(), 2u);
  EXPECT_EQ(TakeAll(places, admin).size(), 2u);
  of_one.pop_back();
  EXPECT_EQ(TakeAll(places, one).size(), 1u);
}

TEST(SharedPlacesTest, AnAdministratorMayHaveAll) {
  SharedPlaces places(16);
  EXPECT_EQ(TakeAll(places, NewCaller(true)).size(), 16u);
}

TEST(SharedPlacesTest, ANewNumberIsInForceForTheNextPlaceAndTakesNoneAway) {
  SharedPlaces places(8);
  std::vector<SharedPlaces::Place> taken = TakeAll(places, NewCaller(true));
  places.SetPlaces(4);
  taken.resize(4);
  EXPECT_FALSE(places.Take(NewCaller(true)).has_value());
  taken.pop_back();
  EXPECT_TRUE(places.Take(NewCaller(true)).has_value());
  places.SetPlaces(16);
  EXPECT_EQ(places.LimitOf(NewCaller(false)), 8);
}

TEST(SharedPlacesTest, AFewPlacesAreStillOfUse) {
  SharedPlaces one(1);
  EXPECT_EQ(TakeAll(one, NewCaller(false)).size(), 1u);
  SharedPlaces two(2);
  EXPECT_EQ(TakeAll(two, NewCaller(false)).size(), 1u);
  EXPECT_EQ(TakeAll(two, NewCaller(true)).size(), 2u);
}

}  // namespace
}  // namespace phimap::testing
