#include "server/mapping/ttl_from_proto.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/store/records.h"

namespace phimap {

absl::StatusOr<absl::Duration> TtlFromProto(const google::protobuf::Duration& ttl,
                                            absl::string_view field) {
  // The store has a resolution of microseconds.
  const absl::Duration given = absl::Trunc(
      absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos()), absl::Microseconds(1));
  if (given >= kLeastTtl && given <= kLargestTtl) return given;
  const int64_t least = absl::ToInt64Seconds(kLeastTtl);
  const int64_t largest = absl::ToInt64Seconds(kLargestTtl);
  return MakeError(absl::StatusCode::kInvalidArgument, "FIELD_OUT_OF_RANGE", field,
                   absl::StrCat("expected ", least, " to ", largest,
                                " seconds (one minute to 36,500 days), or unset for no end; got ",
                                absl::ToInt64Seconds(given), " seconds"),
                   {{"minimum", absl::StrCat(least)},
                    {"maximum", absl::StrCat(largest)},
                    {"actual", absl::StrCat(absl::ToInt64Seconds(given))}});
}

}  // namespace phimap
