#include "server/calls/framed_message.h"

#include <array>
#include <cstdint>
#include <new>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/calls/revisions.h"
#include "server/calls/status_trailers.h"

namespace phimap {
namespace {

constexpr std::array<Header, 2> kHeaders = {
    {{":status", "200"}, {"content-type", "application/grpc"}}};
constexpr std::array<Header, 1> kOk = {{{"grpc-status", "0"}}};

char* Allocate(size_t size) {
  void* const bytes = std::malloc(size);
  if (bytes == nullptr) throw std::bad_alloc();
  return static_cast<char*>(bytes);
}

}  // namespace

FramedMessage::FramedMessage(size_t size, RequestMemory::Charge charge)
    : size_(size),
      bytes_(Allocate(MessageReader::kPrefixBytes + size)),
      charge_(std::move(charge)) {
  char* const prefix = bytes_.get();
  prefix[0] = 0;  // not compressed
  for (int i = 0; i < 4; ++i) prefix[1 + i] = static_cast<char>(size >> (24 - 8 * i));
}

absl::Span<const Header> AnswerHeaders() { return kHeaders; }

void SendStatus(Stream& stream, const absl::Status& status, bool headers_sent,
                const RequestId& request_id, absl::string_view revision) {
  if (status.ok() && headers_sent && revision.empty()) return stream.SendTrailers(kOk);
  const StatusTrailers trailers = TrailersOf(status);
  const std::string code = absl::StrCat(trailers.code);
  const std::string id = status.ok() ? "" : request_id.Text();
  absl::InlinedVector<Header, 6> fields;
  if (!headers_sent) fields.assign(kHeaders.begin(), kHeaders.end());
  fields.push_back({"grpc-status", code});
  if (!trailers.message.empty()) fields.push_back({"grpc-message", trailers.message});
  if (!trailers.details_bin.empty()) {
    fields.push_back({"grpc-status-details-bin", trailers.details_bin});
  }
  if (status.ok() && !revision.empty()) fields.push_back({kRevisionKey, revision});
  if (!id.empty()) fields.push_back({"phimap-request-id", id});
  // Compressed messages are answered with UNIMPLEMENTED. Every answer with this code therefore
  // states which encoding the server accepts.
  if (!headers_sent && status.code() == absl::StatusCode::kUnimplemented) {
    fields.push_back({"grpc-accept-encoding", "identity"});
  }
  headers_sent ? stream.SendTrailers(fields) : stream.SendHeaders(fields, /*end=*/true);
}

}  // namespace phimap
