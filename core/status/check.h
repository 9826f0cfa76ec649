// CHECK: for our own bugs. A condition that can be false because of a caller's input or of the
// world is a Status instead.
#ifndef PHIMAP_CORE_STATUS_CHECK_H_
#define PHIMAP_CORE_STATUS_CHECK_H_

#include <cstdio>
#include <cstdlib>

// Aborts with the condition and its place when it is false; active in every build type.
#define PHIMAP_CHECK(condition)                                                          \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

#endif  // PHIMAP_CORE_STATUS_CHECK_H_
