// Checks that a request with any headers is either answered exactly once, with headers that HTTP/2
// allows, or becomes a call that ends exactly once. The first byte of an input decides whether the
// client has a certificate. Names and values of headers follow, each ended by a zero byte.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "server/rpc/transport/event_loop.h"
#include "tests/fuzz/fuzz_calls.h"

namespace phimap {
namespace {

class CheckedStream final : public Stream {
 public:
  CheckedStream(EventLoop& loop, bool certificate) : loop_(loop) {
    peer_.address = "test:";
    peer_.certificate_verified = certificate;
    if (certificate) peer_.certificate_digest = "ab";
  }

  EventLoop& loop() override { return loop_; }
  const Peer& peer() const override { return peer_; }
  void SetHandler(std::shared_ptr<StreamHandler> handler) override {
    handler_ = std::move(handler);
  }
  void SendHeaders(absl::Span<const Header> headers, bool end) override {
    PHIMAP_CHECK(!std::exchange(headers_sent_, true));
    Check(headers);
    ended_ = end;
  }
  void Send(std::shared_ptr<const OutputBytes>) override { PHIMAP_CHECK(headers_sent_ && !ended_); }
  void SendTrailers(absl::Span<const Header> trailers) override {
    PHIMAP_CHECK(headers_sent_ && !std::exchange(ended_, true));
    Check(trailers);
  }
  void Reset(ResetCode) override { ended_ = true; }
  void EndConnection() override { ended_ = true; }
  absl::Time unread_since() const override { return absl::InfiniteFuture(); }
  size_t unsent_bytes() const override { return 0; }
  void Consume(size_t) override {}
  void NoteAdmitted() override {}
  void SetWindow(size_t) override {}

  const std::shared_ptr<StreamHandler>& handler() const { return handler_; }
  bool ended() const { return ended_; }

 private:
  static void Check(absl::Span<const Header> headers) {
    for (const Header& header : headers) {
      PHIMAP_CHECK(!header.name.empty());
      for (const char c : header.value) PHIMAP_CHECK(c >= ' ' && c <= '~');
    }
  }

  EventLoop& loop_;
  Peer peer_;
  std::shared_ptr<StreamHandler> handler_;
  bool headers_sent_ = false;
  bool ended_ = false;
};

absl::string_view Next(absl::string_view& rest) {
  const absl::string_view text = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(rest.size(), text.size() + 1));
  return text;
}

RequestHead HeadOf(absl::string_view text) {
  RequestHead head;
  while (!text.empty()) {
    const absl::string_view name = Next(text);
    head.Add(name, Next(text));
  }
  head.too_large = head.list_bytes() > (16 << 10);
  return head;
}

}  // namespace
}  // namespace phimap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static phimap::FuzzCalls calls(phimap::Role::kReader);
  static const auto loop = std::make_shared<phimap::EventLoop>();
  phimap::CheckedStream stream(*loop, data[0] % 2 == 1);
  const phimap::RequestHead head =
      phimap::HeadOf({reinterpret_cast<const char*>(data) + 1, size - 1});
  calls.dispatcher.OnRequest(stream, head, /*ended=*/true);
  const std::shared_ptr<phimap::StreamHandler> handler = stream.handler();
  // A call without a handler was refused. One with a handler has ended too if its deadline is 0.
  PHIMAP_CHECK(handler != nullptr || stream.ended());
  if (handler != nullptr) {
    handler->OnRequestEnd();
    PHIMAP_CHECK(stream.ended());
    handler->OnClosed(phimap::ResetCode::kNoError);
  }
  PHIMAP_CHECK(calls.counts.begun == calls.counts.ended);
  PHIMAP_CHECK(calls.memory.held_bytes() == 0);
  return 0;
}
