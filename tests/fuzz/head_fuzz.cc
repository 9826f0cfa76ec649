// Decodes bytes as the head of a version, as its report, and as its variance, which come with an
// artifact that nobody vouches for. What is decoded must be encoded to the same bytes again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/head/head.h"
#include "core/head/report.h"
#include "core/status/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto report = phimap::DecodeReport(bytes); report.ok()) {
    const std::string again = phimap::EncodeReport(*report);
    const auto same = phimap::DecodeReport(again);
    PHIMAP_CHECK(same.ok() && *same == *report);
  }
  if (const auto head = phimap::DecodeHead(bytes); head.ok()) {
    PHIMAP_CHECK(phimap::EncodeHead(*head) == bytes);
    // What a server shows of it.
    if (const auto report = phimap::DecodeReport(head->report); report.ok()) {
      PHIMAP_CHECK(phimap::DecodeReport(phimap::EncodeReport(*report)).ok());
    }
  }
  if (const auto variance = phimap::DecodeVariance(bytes); variance.ok()) {
    PHIMAP_CHECK(phimap::EncodeVariance(*variance) == bytes);
  }
  return 0;
}
