#include <gtest/gtest.h>

#include <vector>

#include "core/linalg/pivoted_cholesky.h"

namespace phimap::testing {
namespace {

// The matrix M = [[1, c], [c, 1]] and the vector z = (1, −1) give the value zᵀMz = 2 − 2c. The
// scale is (Σ_i |z_i|√m_ii)² = 4 for the diagonal entries m_ii of M.
TEST(DefinitenessWitnessTest, IsTheQuadraticFormAndWhatErrorsCanMakeOfIt) {
  for (const double c : {0.5, 1 + 1e-9, 3.0}) {
    const DefinitenessWitness witness =
        WitnessOf({1, -1}, [&](int64_t i, int64_t j) { return i == j ? 1 : c; });
    EXPECT_NEAR(witness.value, 2 - 2 * c, 1e-15);
    EXPECT_DOUBLE_EQ(witness.scale, 4);
  }
  // With the diagonal entries 4 and 9, the weights are their square roots.
  const DefinitenessWitness scaled = WitnessOf({2, 1}, [](int64_t i, int64_t j) {
    return i != j ? 5.0 : i == 0 ? 4.0 : 9.0;
  });
  EXPECT_DOUBLE_EQ(scaled.value, 4 * 4 + 2 * 2 * 5 + 9);
  EXPECT_DOUBLE_EQ(scaled.scale, (2 * 2 + 3) * (2 * 2 + 3));
}

// The value is −2e-9. If each entry has an error of up to β, the value has an error of up to 4β.
TEST(DefinitenessWitnessTest, ProvesOnlyWhatNoErrorCanUndo) {
  const DefinitenessWitness witness{.value = -2e-9, .scale = 4};
  EXPECT_TRUE(witness.Proves(4.9e-10));
  EXPECT_FALSE(witness.Proves(5.1e-10));
  EXPECT_FALSE((DefinitenessWitness{.value = 0, .scale = 4}.Proves(1e-16)));
  EXPECT_FALSE((DefinitenessWitness{.value = -1e-16, .scale = 4}.Proves(1e-30)));
}

}  // namespace
}  // namespace phimap::testing
