#include "core/linalg/definiteness_witness.h"

#include <gtest/gtest.h>

#include <vector>

namespace phimap {
namespace {

// [[1, c], [c, 1]] and z = (1, −1): zᵀMz = 2 − 2c, (Σ|z|√m)² = 4.
TEST(DefinitenessWitnessTest, IsTheQuadraticFormAndWhatErrorsCanMakeOfIt) {
  for (const double c : {0.5, 1 + 1e-9, 3.0}) {
    const DefinitenessWitness witness =
        WitnessOf({1, -1}, [&](int64_t i, int64_t j) { return i == j ? 1 : c; });
    EXPECT_NEAR(witness.value, 2 - 2 * c, 1e-15);
    EXPECT_DOUBLE_EQ(witness.scale, 4);
  }
  // Diagonals 4 and 9: the roots are the weights.
  const DefinitenessWitness scaled = WitnessOf({2, 1}, [](int64_t i, int64_t j) {
    return i != j ? 5.0 : i == 0 ? 4.0 : 9.0;
  });
  EXPECT_DOUBLE_EQ(scaled.value, 4 * 4 + 2 * 2 * 5 + 9);
  EXPECT_DOUBLE_EQ(scaled.scale, (2 * 2 + 3) * (2 * 2 + 3));
}

// −2e-9 of values that err by β each: 4β of error are possible.
TEST(DefinitenessWitnessTest, ProvesOnlyWhatNoErrorCanUndo) {
  const DefinitenessWitness witness{.value = -2e-9, .scale = 4};
  EXPECT_TRUE(witness.Proves(4.9e-10));
  EXPECT_FALSE(witness.Proves(5.1e-10));
  EXPECT_FALSE((DefinitenessWitness{.value = 0, .scale = 4}.Proves(1e-16)));
  EXPECT_FALSE((DefinitenessWitness{.value = -1e-16, .scale = 4}.Proves(1e-30)));
}

}  // namespace
}  // namespace phimap
