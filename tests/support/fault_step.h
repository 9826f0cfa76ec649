// How thoroughly tests go that fail each operation of some work in turn.
#ifndef PHIMAP_TESTS_SUPPORT_FAULT_STEP_H_
#define PHIMAP_TESTS_SUPPORT_FAULT_STEP_H_

namespace phimap::testing {

// A sanitizer looks at the code that cleans up, which is the same for many operations, and runs it
// several times as slowly. So its build fails every fifth operation; the plain build fails each.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kFaultStep = 5;
#else
inline constexpr int kFaultStep = 1;
#endif

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_FAULT_STEP_H_
