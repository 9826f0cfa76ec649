// Plans of every kind for the tests of heads, rows for them, and the scores that the arithmetic
// prescribes.
#ifndef PHIMAP_TESTS_CORE_HEAD_HEAD_PLANS_H_
#define PHIMAP_TESTS_CORE_HEAD_HEAD_PLANS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/head/head.h"
#include "core/head/head_program.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "core/plan/plan.h"

namespace phimap::testing {

// Makes the same plan at each call, because plans cannot be copied.
struct NamedPlan {
  std::string name;
  std::function<Plan()> make;
};

// Returns plans of every kind of input, feature and projection stage, of strings and of values of a
// remote kernel. Their sizes leave partial panels and blocks, and some of their sums are longer
// than one chain.
std::vector<NamedPlan> PlansOfEveryKind(FloatType type);

// A plan whose rows are the values of a remote kernel, so that a test chooses z. W is m×d.
template <typename T>
Plan PlanOfValues(const Matrix<T>& w);

// Returns the plan without W: its features are z − μ.
Plan WithoutW(Plan plan);
// Returns W in float64, dense; the identity if there is none.
Matrix<double> DenseW(const Plan& plan);

// Random rows of the kind that an engine takes.
class ExampleRows {
 public:
  ExampleRows(const Engine& engine, int64_t count);
  ExamplesView view() const;

 private:
  Matrix<float> numbers_;
  std::vector<std::string> strings_;
  std::vector<const std::string*> places_;
};

// Returns the features of the rows, widened to float64. Ends the program on an error.
Matrix<double> MustTransformExamples(const Engine& engine, const ExamplesView& rows);
// Returns the scores of rows. Ends the program on an error.
Matrix<double> MustScore(const HeadProgram& program, const ExamplesView& rows);

// Return the scores as head_program.h defines them, by chains of arithmetic 1 written out: folded,
// from the features of the plan's stages before W, and unfolded, from the plan's features.
Matrix<double> FoldedScoresByDefinition(const NamedPlan& plan, const Head& head,
                                        const ExamplesView& rows);
Matrix<double> UnfoldedScoresByDefinition(const NamedPlan& plan, const Head& head,
                                          const ExamplesView& rows);

// Load the two programs of a plan and a head. End the test program on an error.
HeadProgram MustFold(const NamedPlan& plan, const Head& head);
HeadProgram MustNotFold(const NamedPlan& plan, const Head& head);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_HEAD_HEAD_PLANS_H_
