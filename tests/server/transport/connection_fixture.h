// A server of one connection whose streams do what their paths say.
#ifndef PHIMAP_TESTS_SERVER_TRANSPORT_CONNECTION_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_TRANSPORT_CONNECTION_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/transport/connection.h"
#include "tests/server/support/loop_server.h"

namespace phimap::testing {

class AnswerText final : public OutputBytes {
 public:
  explicit AnswerText(std::string text) : text_(std::move(text)) {}
  absl::string_view bytes() const override { return text_; }

 private:
  const std::string text_;
};

inline constexpr Header kOk[] = {{":status", "200"}};
inline constexpr Header kDone[] = {{"done", "yes"}};

// Events that a stream received. Lives on the loop's thread, as do all that follow.
struct Told {
  std::string path;
  size_t data_bytes = 0;
  bool request_ended = false;
  int sent = 0;
  int closed = 0;
  ResetCode code = ResetCode::kNoError;
};

// Does what its path says.
class ScriptedStream final : public StreamHandler {
 public:
  ScriptedStream(Stream& stream, Told& told) : stream_(&stream), told_(told) {
    if (told_.path == "/reset") stream_->Reset(ResetCode::kRefusedStream);
    if (told_.path == "/reset" || told_.path == "/silent") return;
    stream_->SendHeaders(kOk, /*end=*/false);
    // /large/BYTES
    if (told_.path.rfind("/large/", 0) == 0) {
      stream_->Send(
          std::make_shared<AnswerText>(std::string(std::stoul(told_.path.substr(7)), 'x')));
    }
    // /megabytes/COUNT, one over and over: the loop's times are those of its turns, and a turn that
    // fills a hundred is taken for a client that waits.
    if (told_.path.rfind("/megabytes/", 0) == 0) {
      const auto megabyte = std::make_shared<AnswerText>(std::string(1'000'000, 'x'));
      for (size_t i = std::stoul(told_.path.substr(11)); i > 0; --i) stream_->Send(megabyte);
    }
  }

  void OnData(absl::string_view bytes) override {
    told_.data_bytes += bytes.size();
    if (told_.path == "/hold") return;
    stream_->Consume(bytes.size());
    if (told_.path == "/echo") stream_->Send(std::make_shared<AnswerText>(std::string(bytes)));
  }
  void OnRequestEnd() override {
    told_.request_ended = true;
    if (told_.path == "/echo" || told_.path == "/count") stream_->SendTrailers(kDone);
  }
  void OnSent() override { ++told_.sent; }
  void OnClosed(ResetCode code) override {
    ++told_.closed;
    told_.code = code;
    stream_ = nullptr;
  }

 private:
  Stream* stream_;
  Told& told_;
};

class ScriptedAcceptor final : public StreamAcceptor {
 public:
  void OnRequest(Stream& stream, const RequestHead& head, bool) override {
    told.push_back(std::make_unique<Told>());
    told.back()->path = std::string(head.Find(":path"));
    heads.push_back(head);
    if (head.too_large) return stream.SendHeaders(kOk, /*end=*/true);
    stream.SetHandler(std::make_shared<ScriptedStream>(stream, *told.back()));
  }
  std::vector<std::unique_ptr<Told>> told;
  std::vector<RequestHead> heads;
};

class ConnectionTest : public ::testing::Test {
 protected:
  void Serve(const ConnectionLimits& limits = {}) {
    server_ = std::make_unique<LoopServer>(acceptor_, limits);
  }
  // Events that the i-th stream has received by now.
  Told ToldTo(size_t i) {
    Told told;
    server_->Run([&] { told = *acceptor_.told.at(i); });
    return told;
  }
  // Several turns of the loop: each handles kEventsPerTurn events at most, and these are events.
  void Settle() {
    for (int i = 0; i < 5 * EventLoop::kEventsPerTurn; ++i) server_->Run([] {});
  }
  size_t Streams() {
    size_t count = 0;
    server_->Run([&] { count = acceptor_.told.size(); });
    return count;
  }

  ScriptedAcceptor acceptor_;
  std::unique_ptr<LoopServer> server_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_TRANSPORT_CONNECTION_FIXTURE_H_
