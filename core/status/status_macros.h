// Macros that return early if an absl::Status or absl::StatusOr is an error.
#ifndef PHIMAP_CORE_STATUS_STATUS_MACROS_H_
#define PHIMAP_CORE_STATUS_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status from the enclosing function unless it is OK.
#define PHIMAP_RETURN_IF_ERROR(expression)     \
  do {                                         \
    absl::Status phimap_status = (expression); \
    if (!phimap_status.ok()) [[unlikely]]      \
      return phimap_status;                    \
  } while (false)

#define PHIMAP_CONCAT_INNER(a, b) a##b
#define PHIMAP_CONCAT(a, b) PHIMAP_CONCAT_INNER(a, b)

// PHIMAP_ASSIGN_OR_RETURN(auto x, F()): returns F's status, or moves its value into x.
#define PHIMAP_ASSIGN_OR_RETURN(declaration, expression) \
  PHIMAP_ASSIGN_OR_RETURN_INNER(PHIMAP_CONCAT(phimap_or_, __LINE__), declaration, expression)
#define PHIMAP_ASSIGN_OR_RETURN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                                          \
  if (!temporary.ok()) [[unlikely]]                                       \
    return std::move(temporary).status();                                 \
  declaration = *std::move(temporary)

#endif  // PHIMAP_CORE_STATUS_STATUS_MACROS_H_
