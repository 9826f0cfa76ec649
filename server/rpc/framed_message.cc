#include "server/rpc/framed_message.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "server/rpc/revisions.h"
#include "server/rpc/status_trailers.h"

namespace phimap {

namespace {

// Minimum size of the buffer of a longer message. Most messages are shorter than this, and are
// allocated once with their exact length.
constexpr size_t kFirstBytes = 64 << 10;

constexpr std::array<Header, 2> kHeaders = {
    {{":status", "200"}, {"content-type", "application/grpc"}}};
constexpr std::array<Header, 1> kOk = {{{"grpc-status", "0"}}};

char* Allocate(size_t size) {
  void* const bytes = std::malloc(size);
  if (bytes == nullptr) throw std::bad_alloc();
  return static_cast<char*>(bytes);
}

}  // namespace

size_t MessageReader::TakePrefix(absl::string_view bytes) {
  const size_t taken = std::min(bytes.size(), kPrefixBytes - prefix_size_);
  std::copy_n(bytes.begin(), taken, prefix_ + prefix_size_);
  prefix_size_ += taken;
  return taken;
}

uint32_t MessageReader::length() const {
  PHIMAP_CHECK(has_prefix());
  return uint32_t{prefix_[1]} << 24 | uint32_t{prefix_[2]} << 16 | uint32_t{prefix_[3]} << 8 |
         uint32_t{prefix_[4]};
}

size_t MessageReader::TakeBody(absl::string_view bytes) {
  PHIMAP_CHECK(!too_long());
  const size_t taken = std::min<size_t>(bytes.size(), length() - size_);
  if (taken == 0) return 0;
  if (size_ + taken > capacity_) Reserve(size_ + taken);
  std::memcpy(data_.get() + size_, bytes.data(), taken);
  size_ += taken;
  return taken;
}

// Uses realloc instead of new: a large buffer then grows by remapping its pages (mremap), without a
// copy and without occupying memory twice.
void MessageReader::Reserve(size_t needed) {
  const size_t capacity = std::min<size_t>(length(), std::max(kFirstBytes, 2 * needed));
  char* grown = static_cast<char*>(std::realloc(data_.get(), capacity));
  if (grown == nullptr) throw std::bad_alloc();
  static_cast<void>(data_.release());  // realloc freed or extended it
  data_.reset(grown);
  capacity_ = capacity;
}

MessageBytes MessageReader::Release() {
  PHIMAP_CHECK(complete());
  MessageBytes message{std::move(data_), size_};
  prefix_size_ = size_ = capacity_ = 0;
  return message;
}

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
  const bool tells_id = !status.ok() || request_id.from_caller();
  if (!tells_id && headers_sent && revision.empty()) return stream.SendTrailers(kOk);
  const StatusTrailers trailers = TrailersOf(status);
  const std::string code = absl::StrCat(trailers.code);
  const std::string id = tells_id ? request_id.Text() : "";
  absl::InlinedVector<Header, 8> fields;
  if (!headers_sent) fields.assign(kHeaders.begin(), kHeaders.end());
  fields.push_back({"grpc-status", code});
  if (!trailers.message.empty()) fields.push_back({"grpc-message", trailers.message});
  if (!trailers.details_bin.empty()) {
    fields.push_back({"grpc-status-details-bin", trailers.details_bin});
  }
  if (status.ok() && !revision.empty()) fields.push_back({kRevisionKey, revision});
  if (tells_id) fields.push_back({kRequestIdKey, id});
  if (!status.ok()) fields.push_back({"phimap-request-id", id});
  // Compressed messages are answered with UNIMPLEMENTED. Every answer with this code therefore
  // states which encoding the server accepts.
  if (!headers_sent && status.code() == absl::StatusCode::kUnimplemented) {
    fields.push_back({"grpc-accept-encoding", "identity"});
  }
  headers_sent ? stream.SendTrailers(fields) : stream.SendHeaders(fields, /*end=*/true);
}

}  // namespace phimap
