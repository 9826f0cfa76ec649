#include "server/kernel_client/answer_queue.h"

namespace phimap {

AnswerQueue::AnswerQueue() : thread_([this] { Run(); }) {}

AnswerQueue::~AnswerQueue() {
  answers_.Shutdown();
  thread_.join();
}

void AnswerQueue::Run() {
  void* tag = nullptr;
  // Whether a call's end could be read: its status tells how it ended.
  bool ok = false;
  while (answers_.Next(&tag, &ok)) static_cast<Waiting*>(tag)->OnAnswer();
}

}  // namespace phimap
