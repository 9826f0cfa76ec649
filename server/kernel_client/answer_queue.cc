#include "server/kernel_client/answer_queue.h"

namespace phimap {

AnswerQueue::AnswerQueue() : thread_([this] { Run(); }) {}

AnswerQueue::~AnswerQueue() {
  answers_.Shutdown();
  thread_.join();
}

void AnswerQueue::Run() {
  void* tag = nullptr;
  // Of a call's end: its status tells what became of it.
  bool ok = false;
  while (answers_.Next(&tag, &ok)) static_cast<Waiting*>(tag)->OnAnswer();
}

}  // namespace phimap
